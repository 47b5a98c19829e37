#!/usr/bin/env python3
"""Checks the rules that a compiler does not: layers, wrappers, budgets, banned calls, header comments.

    tools/lint.py            checks the whole checkout; one line a finding, exit code 1 if there is any
    tools/lint.py --self-test
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# A folder may include itself and these.
LAYERS = {
    "base": set(),
    "compute": {"base"},
    "text": {"base"},
    "model": {"base", "compute", "text"},
    "vision": {"base", "compute"},
    "engine": {"base", "compute", "text", "model", "vision"},
    "server": {"base", "engine"},
}

# A third-party header may be included only by these files (exact names, or a prefix with *).
WRAPPERS = {
    "cjson/": ["base/json.c"],
    "openssl/": ["base/hash.c"],
    "cblas": ["compute/gemm.c"],
    "pcre2": ["text/pretokenizer.c"],
    "utf8proc": ["base/unicode.c", "base/utf8.c"],
    "png.h": ["vision/image_png.c"],
    "jpeglib": ["vision/image_jpeg*"],
    "jerror": ["vision/image_jpeg.c"],
    "libavcodec/": ["vision/media_av*", "vision/video.c"],
    "libavformat/": ["vision/media_av*", "vision/video.c"],
    "libavutil/": ["vision/media_av*", "vision/video.c"],
    "libswscale/": ["vision/media_av*", "vision/video.c"],
    "webp/": ["vision/video_webp.c"],
    "curl/": ["server/fetch.c"],
    "sqlite3": ["server/database.c"],
    "zlib": ["server/assets*", "tools/embed*"],
    "libwebsockets": ["server/http*", "server/ws*", "server/net*", "server/loop*"],
}

BANNED_CALLS = ["strcpy", "strcat", "sprintf", "vsprintf", "strtok", "gets", "atoi", "atol", "atof", "rand",
                "srand", "system", "alloca"]

FILE_LINES = 800
FUNCTION_LINES = 120
LINE_COLUMNS = 140

# Long tables and generated or vendored text are not for people to read line by line.
NOT_OURS = ("web/vendor/", "assets/", "tests/data/", "tests/fuzz/seeds/", "node_modules/")
TEXT_TYPES = (".c", ".h", ".py", ".js", ".mjs", ".css", ".html", ".cmake", ".sh", ".cu")


def c_code_only(text):
    """The text with comments, strings and character constants blanked; line breaks stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(pattern, blank, text, flags=re.S)


def matches(path, patterns):
    return any(path.startswith(p[:-1]) if p.endswith("*") else path == p for p in patterns)


def check_includes(path, text):
    folder = path.split("/")[0]
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if not found:
            continue
        kind, name = found.groups()
        if kind == '"' and folder in LAYERS:
            target = name.split("/")[0] if "/" in name else None
            if target is None:
                yield number, f'include "{name}" by its path from the root'
            elif target in LAYERS and target != folder and target not in LAYERS[folder]:
                yield number, f"{folder}/ must not include {name}"
        for prefix, allowed in WRAPPERS.items():
            if name.startswith(prefix) and not path.startswith("tests/") and not matches(path, allowed):
                yield number, f"<{name}> belongs in {' or '.join(allowed)} only"


def check_functions(code):
    """Functions over the budget. A function begins at a '{' in column 0 and ends at a '}' there."""
    start = None
    for number, line in enumerate(code.splitlines(), 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start is not None:
            if number - start - 1 > FUNCTION_LINES:
                yield start, f"a function of {number - start - 1} lines; at most {FUNCTION_LINES}"
            start = None


def check_banned(code):
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(BANNED_CALLS) + r")\s*\(")
    for number, line in enumerate(code.splitlines(), 1):
        for found in pattern.finditer(line):
            yield number, f"{found.group(1)}() is banned"


def check_header(path, text):
    if not text.startswith("/* "):
        yield 1, "a header starts with a comment: purpose, thread, ownership, a usage line"
    guard = "PARLEY_" + re.sub(r"\W", "_", path).upper()
    if f"#ifndef {guard}\n#define {guard}\n" not in text:
        yield 1, f"the include guard is {guard}"


def check_text(path, text):
    is_c = path.endswith((".c", ".h"))
    if is_c and text.count("\n") > FILE_LINES:
        yield 1, f"{text.count(chr(10))} lines; at most {FILE_LINES}"
    for number, line in enumerate(text.splitlines(), 1):
        if "\t" in line:
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "space at the end of the line"
        if is_c and len(line) > LINE_COLUMNS:
            yield number, f"{len(line)} columns; at most {LINE_COLUMNS}"
        if re.search(r"\b(TODO|FIXME|XXX)\b", line) and path != "tools/lint.py":
            yield number, "a note to oneself: do it or drop it"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no line break at the end of the file"


def check_file(path, text):
    """(line, message) for everything wrong with one file."""
    yield from check_text(path, text)
    if path.endswith((".c", ".h")):
        code = c_code_only(text)
        yield from check_includes(path, text)
        yield from check_functions(code)
        yield from check_banned(code)
    if path.endswith(".h"):
        yield from check_header(path, text)


def our_files():
    """Paths from the root: what git tracks or would track; without git, everything but build products."""
    try:
        listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                                 capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listing = []
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [f for f in folders if f not in ("build", ".git", "node_modules")]
            listing += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return sorted(p for p in set(listing)
                  if p.endswith(TEXT_TYPES) and not any(part in p for part in NOT_OURS)
                  and os.path.isfile(os.path.join(ROOT, p)))


def self_test():
    long_function = "void f(void)\n{\n" + "    x();\n" * (FUNCTION_LINES + 1) + "}\n"
    cases = [
        ("model/a.c", '#include "vision/image.h"\n', "must not include"),
        ("base/a.c", '#include "compute/pool.h"\n', "must not include"),
        ("server/a.c", '#include "model/model.h"\n', "must not include"),
        ("engine/a.c", '#include "server/http.h"\n', "must not include"),
        ("engine/a.c", '#include "model/model.h"\n', None),
        ("base/a.c", '#include "bytes.h"\n', "by its path"),
        ("model/a.c", "#include <cjson/cJSON.h>\n", "belongs in base/json.c"),
        ("base/json.c", "#include <cjson/cJSON.h>\n", None),
        ("text/pretokenizer.c", "#include <pcre2.h>\n", None),
        ("base/a.c", "int x = strcpy(a, b);\n", "banned"),
        ("base/a.c", "/* strcpy(a, b) */ int strcpy_like(void);\n", None),
        ("base/a.c", 'const char *s = "system(x)";\n', None),
        ("base/a.c", "int x = snprintf(a, 1, b);\n", None),
        ("base/a.c", long_function, "a function of"),
        ("base/a.c", "int x;\n" * (FILE_LINES + 1), "lines; at most"),
        ("base/a.c", "int x; \n", "space at the end"),
        ("base/a.c", "\tint x;\n", "a tab"),
        ("base/a.c", "/* TO" "DO later */\n", "note to oneself"),
        ("base/a.c", "int " + "x" * LINE_COLUMNS + ";\n", "columns"),
        ("base/a.h", "#ifndef PARLEY_BASE_A_H\n#define PARLEY_BASE_A_H\n#endif\n", "starts with a comment"),
        ("base/a.h", "/* a: x. */\n#ifndef A_H\n#define A_H\n#endif\n", "include guard"),
        ("base/a.h", "/* a: x. */\n#ifndef PARLEY_BASE_A_H\n#define PARLEY_BASE_A_H\n#endif\n", None),
    ]
    failures = 0
    for path, text, expected in cases:
        findings = [message for _, message in check_file(path, text)]
        good = not findings if expected is None else any(expected in message for message in findings)
        if not good:
            print(f"self-test: {path} {text[:60]!r}: expected {expected!r}, got {findings}")
            failures += 1
    return failures


def main(arguments):
    if arguments == ["--self-test"]:
        return 1 if self_test() else 0
    n_findings = 0
    for path in our_files():
        try:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            print(f"{path}:1: not UTF-8")
            n_findings += 1
            continue
        for number, message in check_file(path, text):
            print(f"{path}:{number}: {message}")
            n_findings += 1
    return 1 if n_findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
