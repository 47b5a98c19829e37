#!/usr/bin/env python3
"""Which tests exercise which file, from coverage: tests/test_map.json.

    tools/test_map.py FILE...        the tests that exercise these files, cheapest first
    tools/test_map.py --make         measures anew (a coverage build in build/coverage; about half an hour)

The map holds for each source file the tests that run at least one of its lines, with the share of the file's lines
that they run, and for each test its seconds. Lines, which tools/mutate.py needs, are in build/coverage/lines.json; of the
page also which test of a file runs them. `--make --only browser/` needs no coverage build, only build/: pages and node
count what they run themselves.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAP = ROOT / "tests" / "test_map.json"
BUILD = ROOT / "build" / "coverage"
LINES = BUILD / "lines.json"
FOLDERS = ("base", "compute", "text", "model", "vision", "engine", "server", "web")


def tests_of(build):
    """Names of the tests of a build folder that run code of this project."""
    listing = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, check=True)
    for test in json.loads(listing.stdout)["tests"]:
        labels = next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
        if "lint" not in labels and test.get("command"):
            yield test["name"]


def counters(folder):
    """{file: {lines that ran}} from the counter files that a test wrote below a folder."""
    ran = {}
    found = sorted(folder.rglob("*.gcda"))
    for path in found:
        notes = Path("/", path.relative_to(folder)).with_suffix(".gcno")
        path.with_suffix(".gcno").symlink_to(notes)  # gcov looks for it beside the counters
    for start in range(0, len(found), 100):
        names = [str(path) for path in found[start : start + 100]]
        out = subprocess.run(["gcov", "--json-format", "--stdout", *names], capture_output=True, cwd=BUILD)
        for document in out.stdout.splitlines():
            if not document.startswith(b"{"):
                continue
            for file in json.loads(document)["files"]:
                path = os.path.relpath(os.path.join(BUILD, file["file"]), ROOT)
                if path.split("/")[0] in FOLDERS:
                    lines = ran.setdefault(path, set())
                    lines.update(line["line_number"] for line in file["lines"] if line["count"])
    return ran


def scripts_lines(folder):
    """({file: {lines}}, {pattern of a case: {file: {lines}}}) of the page. What tests/web/coverage.mjs wrote names the case
    of the test; what node ran itself is of the whole test, the pattern ''."""
    cases = {}
    for path in folder.glob("*.json"):
        page = json.loads(path.read_text())
        for file, lines in page["files"].items():
            cases.setdefault(page["case"], {}).setdefault(file, set()).update(lines)
    for path in (folder / "node").glob("*.json"):
        for script in json.loads(path.read_text())["result"]:
            if not script["url"].startswith(f"file://{ROOT}/web/") or "/vendor/" in script["url"]:
                continue
            file = os.path.relpath(script["url"].removeprefix("file://").split("?")[0], ROOT)
            text = (ROOT / file).read_text()
            ran = [0] * (len(text) + 1)
            ranges = [r for f in script["functions"] for r in f["ranges"]]
            for r in sorted(ranges, key=lambda r: (r["startOffset"], -r["endOffset"])):  # the outer one first
                ran[r["startOffset"] : r["endOffset"]] = [r["count"]] * (r["endOffset"] - r["startOffset"])
            firsts = [found.start(1) for found in re.finditer(r"(?m)^ *(.?)", text)]
            cases.setdefault("", {}).setdefault(file, set()).update(i for i, at in enumerate(firsts, 1) if ran[at])
    union = {}
    for files in cases.values():
        for file, lines in files.items():
            union.setdefault(file, set()).update(lines)
    return union, cases


def run_one(name, longest):
    """(seconds, {file: {lines}}, of the page the same of each case) of one test; None in place of the lines if it failed
    or took too long."""
    with tempfile.TemporaryDirectory() as place:
        of_page = name.startswith("browser/")
        node = {"NODE_V8_COVERAGE": f"{place}/node"} if of_page else {}
        environment = dict(os.environ, GCOV_PREFIX=place, PARLEY_COVERAGE=place, **node)
        pattern = "^" + name.replace("+", r"\+") + "$"
        start = time.monotonic()
        process = subprocess.Popen(
            ["ctest", "--test-dir", str(ROOT / "build" if of_page else BUILD), "-R", pattern], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            process.wait(longest)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(process.pid, signal.SIGKILL)  # also servers that a failed test left behind
        except ProcessLookupError:
            pass
        process.wait()
        seconds = round(time.monotonic() - start, 2)
        if process.returncode:
            return seconds, None, {}
        return seconds, *(scripts_lines(Path(place)) if of_page else (counters(Path(place)), {}))


def make(options):
    BUILD.mkdir(parents=True, exist_ok=True)
    names = [name for name in tests_of(ROOT / "build") if re.search(options.only, name)]
    if not all(name.startswith("browser/") for name in names):
        flags = "--coverage -O1 -g0 -fprofile-update=single"
        configure = ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", f"-DCMAKE_C_FLAGS={flags}"]
        subprocess.run([*configure, "-DCMAKE_BUILD_TYPE=Debug"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", str(BUILD)], check=True, stdout=subprocess.DEVNULL)
    found = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pending = {pool.submit(run_one, name, options.longest): name for name in names}
        for done in concurrent.futures.as_completed(pending):
            found.append((pending[done], *done.result()))
            name, taken, ran, _ = found[-1]
            print(f"{taken:7.2f} s  {name}{'' if ran is not None else ': failed or too long, left out'}", flush=True)
    known = json.loads(LINES.read_text()) if LINES.exists() else {"seconds": {}, "lines": {}}
    seconds, lines, cases = known["seconds"], known["lines"], known.setdefault("cases", {})
    for of_file in lines.values():  # what is measured anew
        for line in of_file:
            of_file[line] = [name for name in of_file[line] if name not in set(names)]
    for name, taken, ran, of_cases in found:
        seconds[name] = taken
        if of_cases:
            cases[name] = {case: {path: sorted(of_file) for path, of_file in files.items()} for case, files in of_cases.items()}
        for path, of_test in (ran or {}).items():
            for line in of_test:
                lines.setdefault(path, {}).setdefault(str(line), []).append(name)
    LINES.write_text(json.dumps(known))
    # What was measured elsewhere stands in the map alone.
    old = json.loads(MAP.read_text()) if MAP.exists() else {"seconds": {}, "files": {}}
    files = {path: {name: n for name, n in tests.items() if name not in set(names)} for path, tests in old["files"].items()}
    for path, of_file in lines.items():
        shares = collections.Counter(name for tests in of_file.values() for name in tests)
        files.setdefault(path, {}).update((name, round(n / len(of_file), 2)) for name, n in shares.items())
    MAP.write_text(json.dumps({"seconds": {**old["seconds"], **seconds}, "files": files}, indent=0, sort_keys=True) + "\n")


def show(paths):
    known = json.loads(MAP.read_text())
    for path in paths:
        path = os.path.relpath(os.path.abspath(path), ROOT)
        tests = known["files"].get(path, {})
        print(f"{path}: {'no test is known' if not tests else ''}")
        for name in sorted(tests, key=lambda name: known["seconds"].get(name, 0)):
            print(f"    {known['seconds'].get(name, 0):7.2f} s  {tests[name]:5.0%}  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--only", default="", help="with --make: only tests whose names match; what is known of others stays")
    parser.add_argument("--jobs", type=int, default=1, help="with --make: tests at once")
    parser.add_argument("--longest", type=int, default=600, help="with --make: seconds after which a test is left out")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if options.make:
        make(options)
    elif not MAP.exists():
        sys.exit(f"{MAP.relative_to(ROOT)} is not there yet: tools/test_map.py --make writes it")
    show(options.files)


if __name__ == "__main__":
    main()
