#!/usr/bin/env python3
"""Which tests exercise which file, from coverage: tests/test_map.json.

    tools/test_map.py FILE...        the tests that exercise these files, cheapest first
    tools/test_map.py --make         measures anew (a coverage build in build/coverage; about half an hour)

The map holds for each source file the tests that run at least one of its lines, with the share of the file's lines
that they run, and for each test its seconds. Lines, which tools/mutate.py needs, are in build/coverage/lines.json.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAP = ROOT / "tests" / "test_map.json"
BUILD = ROOT / "build" / "coverage"
LINES = BUILD / "lines.json"
FOLDERS = ("base", "compute", "text", "model", "vision", "engine", "server")


def tests_of(build):
    """Names of the tests of a build folder that run code of this project."""
    listing = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, check=True)
    for test in json.loads(listing.stdout)["tests"]:
        labels = next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
        if "lint" not in labels and "browser" not in labels and test.get("command"):
            yield test["name"]


def counters(folder):
    """{file: {lines that ran}} from the counter files below a folder, which are removed."""
    ran = {}
    found = sorted(folder.rglob("*.gcda"))
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
    for path in found:
        path.unlink()
    return ran


def make(only):
    flags = "--coverage -O1 -g0 -fprofile-update=atomic"
    configure = ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", f"-DCMAKE_C_FLAGS={flags}"]
    subprocess.run([*configure, "-DCMAKE_BUILD_TYPE=Debug"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(BUILD)], check=True, stdout=subprocess.DEVNULL)
    counters(BUILD)
    lines, seconds, totals = {}, {}, {}
    for name in filter(re.compile(only).search, tests_of(BUILD)):
        start = time.monotonic()
        pattern = "^" + name.replace("+", r"\+") + "$"
        done = subprocess.run(["ctest", "--test-dir", str(BUILD), "-R", pattern], capture_output=True)
        seconds[name] = round(time.monotonic() - start, 2)
        if done.returncode:
            print(f"{name}: failed under coverage, left out", file=sys.stderr)
        for path, ran in counters(BUILD).items():
            if done.returncode == 0:
                for line in ran:
                    lines.setdefault(path, {}).setdefault(line, []).append(name)
        print(f"{seconds[name]:7.2f} s  {name}", flush=True)
    LINES.write_text(json.dumps({"seconds": seconds, "lines": lines}))
    files = {}
    for path, of_file in sorted(lines.items()):
        shares = {}
        for names in of_file.values():
            for name in names:
                shares[name] = shares.get(name, 0) + 1
        files[path] = {name: round(n / len(of_file), 2) for name, n in sorted(shares.items())}
    MAP.write_text(json.dumps({"seconds": seconds, "files": files}, indent=0, sort_keys=True) + "\n")


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
    parser.add_argument("--only", default="", help="with --make: tests whose names match, to try it out")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if options.make:
        make(options.only)
    elif not MAP.exists():
        sys.exit(f"{MAP.relative_to(ROOT)} is not there yet: tools/test_map.py --make writes it")
    show(options.files)


if __name__ == "__main__":
    main()
