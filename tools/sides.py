#!/usr/bin/env python3
"""Lists sides of conditions that no test program takes: no test can notice when one of them is changed.

    tools/sides.py --make server/net        builds build/sides with counters, runs the test programs, lists what is below a folder
    tools/sides.py engine text              lists what an earlier run has counted

A line reads "server/net/net.c:201 [12, 0]: if (!c) {": how often each jump of the line went each way, in the order in which it is
compiled, without optimization. Processes that leave with _exit, or that confine themselves, count nothing.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "sides"


def make(jobs):
    flags = "--coverage -O0 -g0 -fprofile-update=single"
    configure = ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", f"-DCMAKE_C_FLAGS={flags}"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(BUILD)], check=True, stdout=subprocess.DEVNULL)
    for path in BUILD.rglob("*.gcda"):  # of an earlier run
        path.unlink()
    subprocess.run(["ctest", "--test-dir", str(BUILD), "-R", "/(test|replay)_", "-j", str(jobs), "--quiet"], check=False)


def counted(folders):
    """{file: {line: [its count, those of its sides]}} of the files below these folders. A function of a header has been
    compiled several times."""
    notes, found = [str(path) for path in BUILD.glob("CMakeFiles/parley_*.dir/**/*.gcno")], {}
    for start in range(0, len(notes), 60):
        command = ["gcov", "--branch-probabilities", "--json-format", "--stdout", *notes[start : start + 60]]
        for document in subprocess.run(command, capture_output=True, cwd=BUILD).stdout.splitlines():
            for file in json.loads(document)["files"] if document.startswith(b"{") else ():
                path = os.path.relpath(BUILD / file["file"], ROOT)
                if not any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders):
                    continue
                for line in file["lines"]:
                    entry = found.setdefault(path, {}).setdefault(line["line_number"], [0, []])
                    sides = [side["count"] for side in line["branches"]]
                    entry[0] += line["count"]
                    same = len(sides) == len(entry[1])
                    entry[1] = [a + b for a, b in zip(entry[1], sides)] if same else sides or entry[1]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--make", action="store_true", help="build and run the test programs first")
    parser.add_argument("--jobs", type=int, default=2, help="with --make: tests at once")
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    if options.make:
        make(options.jobs)
    elif not BUILD.exists():
        sys.exit(f"{BUILD.relative_to(ROOT)} is not there yet: tools/sides.py --make builds it")
    n_sides = n_missing = n_lines = 0
    for path, lines in sorted(counted(options.folders).items()):
        text = (ROOT / path).read_text().split("\n")
        for number, (count, sides) in sorted(lines.items()):
            n_sides += len(sides)
            n_lines += count == 0
            if count and 0 in sides:
                n_missing += sides.count(0)
                print(f"{path}:{number} {sides}: {text[number - 1].strip()}")
    print(f"{n_missing} of {n_sides} sides are never taken, and {n_lines} lines with theirs not run", file=sys.stderr)


if __name__ == "__main__":
    main()
