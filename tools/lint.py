#!/usr/bin/env python3
"""Checks the rules that a compiler does not: rooms, circles and READMEs, wrappers, budgets, banned calls, header comments.

    tools/lint.py            checks the whole checkout; one line a finding, exit code 1 if there is any
    tools/lint.py --self-test
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Every room (a folder with C files) and the rooms that it may include beside itself. docs/architecture.md says why.
COMPUTE = ["compute/formats", "compute/kernels", "compute"]
TEXT = ["text/tokenizer", "text/jinja", "text/grammar"]
MODEL = ["model/checkpoint", "model/config", "model"]
VISION = ["vision/image", "vision", "vision/video"]
ROOMS = {
    "base": [],
    "compute/formats": ["base"],
    "compute/kernels": ["base", "compute/formats"],
    "compute": ["base", "compute/formats", "compute/kernels"],
    "text/tokenizer": ["base"],
    "text/jinja": ["base", "text/tokenizer"],
    "text/grammar": ["base", "text/tokenizer"],
    "model/checkpoint": ["base", "compute/formats", "compute", "text/tokenizer"],
    "model/config": ["base"],
    "model": ["base", *COMPUTE, *TEXT, "model/checkpoint", "model/config"],
    "vision/image": ["base", *COMPUTE],
    "vision": ["base", *COMPUTE, "vision/image"],
    "vision/video": ["base", *COMPUTE, "vision/image", "vision"],
    "engine/cache": ["base", *COMPUTE, "model", "vision"],
    "engine/draft": ["base", *COMPUTE, "text/tokenizer", "model"],
    "engine/sparse": ["base", *COMPUTE, "text/tokenizer", "model/config", "model"],
    "engine": ["base", *COMPUTE, *TEXT, *MODEL, *VISION, "engine/cache", "engine/draft", "engine/sparse"],
    "server": ["base"],
    "server/net": ["base", "server"],
    "server/media": ["base", "engine", "server"],
    "server/history": ["base", "server", "server/media"],
    "server/mcp": ["base", "server", "server/media"],
    "server/protocol/output": ["base", "engine"],
    "server/protocol": ["base", "engine", "server", "server/media", "server/mcp", "server/protocol/output"],
    "server/protocol/dialects": ["base", "engine", "server", "server/media", "server/mcp", "server/protocol/output",
                                 "server/protocol"],
    "server/upstream": ["base", "engine", "server", "server/media", "server/protocol/output", "server/protocol"],
    "server/hub": ["base", "server", "server/media"],
    "server/chat": ["base", "engine", "server", "server/media", "server/upstream"],
    "server/service": ["base", "engine", "server", "server/net", "server/media", "server/history",
                       "server/mcp", "server/protocol/output", "server/protocol", "server/protocol/dialects",
                       "server/upstream", "server/hub"],
    "server/cli": ["base", "engine", "server", "server/media", "server/hub", "server/chat", "server/mcp",
                   "server/protocol/output",
                   "server/service"],
}
ROOM_FILES = 40
README_LINES = 15

# A third-party header may be included only by these files (exact names, or a prefix with *).
WRAPPERS = {
    "cjson/": ["base/json.c"],
    "openssl/": ["base/hash.c"],
    "cblas": ["compute/gemm.c"],
    "pcre2": ["text/tokenizer/pretokenizer.c"],
    "utf8proc": ["base/unicode.c", "base/utf8.c"],
    "png.h": ["vision/image/image_png.c"],
    "jpeglib": ["vision/image/image_jpeg*"],
    "jerror": ["vision/image/image_jpeg.c"],
    "libavcodec/": ["vision/image/media_av*", "vision/video/video.c"],
    "libavformat/": ["vision/image/media_av*", "vision/video/video.c"],
    "libavutil/": ["vision/image/media_av*", "vision/video/video.c"],
    "libswscale/": ["vision/image/media_av*", "vision/video/video.c"],
    "webp/": ["vision/video/video_webp.c"],
    # a file on a thread that waits for it; many streams on one thread
    "curl/": ["server/media/fetch.c", "server/http_client.c"],
    "histedit": ["server/chat/chat_line.c"],
    "libxml/": ["server/mcp/mcp_html.c"],
    "sqlite3": ["server/history/database.c"],
    "zlib": ["server/service/assets.c", "tools/embed*"],
    "libwebsockets": ["server/net/net*"],
}

# Headers that only the files of one module share, each with its module: those two may include each other.
PRIVATE = {
    "base/json_source": "base/json",
    "compute/context": "compute/nn",
    "text/grammar/dfa_private": "text/grammar/dfa",
    "text/grammar/grammar_private": "text/grammar/grammar",
    "text/grammar/json_schema_private": "text/grammar/json_schema",
    "model/model_parts": "model/model",
    "model/seq_layout": "model/seq_state",
    "model/checkpoint/gguf_config_job": "model/checkpoint/gguf_config",
    "vision/image/image_codec": "vision/image/image",
    "vision/vit_parts": "vision/vit",
    "engine/engine_private": "engine/engine",
    "engine/cache/disk_cache_state": "engine/cache/disk_cache",
    "server/net/net_lws": "server/net/net",
    "server/history/history_state": "server/history/history_store",
    "server/service/serve_state": "server/service/serve",
    "server/mcp/mcp_state": "server/mcp/mcp",
    "server/upstream/upstream_state": "server/upstream/upstream",
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


def included(text):
    """(line, "<" or '"', name) of every #include."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1), found.group(2)


def check_includes(path, text):
    room = os.path.dirname(path)
    for number, kind, name in included(text):
        if kind == '"' and room in ROOMS:
            target = os.path.dirname(name)
            if not target:
                yield number, f'include "{name}" by its path from the root'
            elif target != room and target not in ROOMS[room]:
                yield number, f"{room}/ must not include {name}"
        for prefix, allowed in WRAPPERS.items():
            if name.startswith(prefix) and not path.startswith("tests/") and not matches(path, allowed):
                yield number, f"<{name}> belongs in {' or '.join(allowed)} only"


def circles(graph):
    """Groups of nodes that reach each other. graph: {node: set of nodes}."""
    found, index, low, stack = [], {}, {}, []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def is_pair(group):
    """A module and the private header that its files share."""
    return len(group) == 2 and any(PRIVATE.get(one) == other for one in group for other in group)


def check_rooms(files):
    """(path, line, message) for what no file shows alone. files: {path: text} of the C files."""
    graph, per_room = {}, {}
    for path, text in files.items():
        module, room = os.path.splitext(path)[0], os.path.dirname(path)
        if path.split("/")[0] not in {r.split("/")[0] for r in ROOMS}:
            continue
        per_room.setdefault(room, []).append(path)
        if room not in ROOMS:
            yield path, 1, f"{room}/ is no room of tools/lint.py"
        for _, kind, name in included(text):
            target = os.path.splitext(name)[0]
            if kind == '"' and target != module:
                graph.setdefault(module, set()).add(target)
    for room, paths in per_room.items():
        if len(paths) > ROOM_FILES:
            yield room, 1, f"{len(paths)} source files; at most {ROOM_FILES} in a room"
    for group in circles({room: set(others) for room, others in ROOMS.items()}):
        yield "tools/lint.py", 1, f"rooms in a circle: {', '.join(group)}"
    for group in circles(graph):
        if not is_pair(group):
            yield group[0], 1, f"these include each other in a circle: {', '.join(group)}"


def check_readmes(read):
    """(path, line, message) for rooms without a short README. read: path to text, or None where there is no file."""
    for room in ROOMS:
        path = f"{room}/README.md"
        text = read(path)
        if text is None:
            yield path, 1, "a room has a README: its purpose, what it may include, which file to read first"
        elif text.count("\n") > README_LINES:
            yield path, 1, f"{text.count(chr(10))} lines; at most {README_LINES}"


def read_text(path):
    """A file of the checkout as text; None where there is none."""
    try:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


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
        ("model/a.c", '#include "vision/image/image.h"\n', "must not include"),
        ("model/checkpoint/a.c", '#include "model/weights.h"\n', "must not include"),
        ("server/protocol/a.c", '#include "server/net/net.h"\n', "must not include"),
        ("base/a.c", '#include "compute/pool.h"\n', "must not include"),
        ("server/a.c", '#include "model/model.h"\n', "must not include"),
        ("engine/a.c", '#include "server/http.h"\n', "must not include"),
        ("engine/a.c", '#include "model/model.h"\n', None),
        ("base/a.c", '#include "bytes.h"\n', "by its path"),
        ("model/a.c", "#include <cjson/cJSON.h>\n", "belongs in base/json.c"),
        ("base/json.c", "#include <cjson/cJSON.h>\n", None),
        ("text/tokenizer/pretokenizer.c", "#include <pcre2.h>\n", None),
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
    circle_cases = [
        ({"base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/a.h"\n'}, "in a circle: base/a, base/b"),
        ({"base/a.c": '#include "base/b.h"\n', "base/b.c": '#include "base/c.h"\n',
          "base/c.h": '#include "base/a.h"\n'}, "in a circle: base/a, base/b, base/c"),
        ({"base/a.c": '#include "base/b.h"\n', "base/b.h": '#include "base/c.h"\n'}, None),
        ({"base/json.c": '#include "base/json_source.h"\n', "base/json_source.h": '#include "base/json.h"\n'}, None),
        ({"server/attic/a.c": "int x;\n"}, "is no room"),
        ({f"base/f{i}.c": "int x;\n" for i in range(ROOM_FILES + 1)}, "source files; at most"),
    ]
    failures = 0
    for text, n_expected in (("one\n" * README_LINES, 0), ("one\n" * (README_LINES + 1), len(ROOMS)), (None, len(ROOMS))):
        if len(list(check_readmes(lambda path, text=text: text))) != n_expected:
            print(f"self-test: READMEs {str(text)[:20]!r}: expected {n_expected} findings")
            failures += 1
    for files, expected in circle_cases:
        findings = [message for _, _, message in check_rooms(files)]
        if findings != [] if expected is None else not any(expected in message for message in findings):
            print(f"self-test: {sorted(files)}: expected {expected!r}, got {findings}")
            failures += 1
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
    n_findings, c_files = 0, {}
    for path in our_files():
        try:
            text = read_text(path)
        except UnicodeDecodeError:
            print(f"{path}:1: not UTF-8")
            n_findings += 1
            continue
        if path.endswith((".c", ".h")):
            c_files[path] = text
        for number, message in check_file(path, text):
            print(f"{path}:{number}: {message}")
            n_findings += 1
    for path, number, message in [*check_rooms(c_files), *check_readmes(read_text)]:
        print(f"{path}:{number}: {message}")
        n_findings += 1
    return 1 if n_findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
