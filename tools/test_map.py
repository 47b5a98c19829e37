#!/usr/bin/env python3
"""Which tests exercise which file, from coverage: tests/test_map.json.

    tools/test_map.py FILE...        the tests that exercise these files, cheapest first
    tools/test_map.py --make         measures anew (a coverage build in build/coverage; about half an hour)

The map holds for each source file the tests that run at least one of its lines, with the share of the file's lines
that they run, and for each test its seconds. Lines, which tools/mutate.py needs, are in build/coverage/lines.json.
"""
import argparse
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
    """The same of the page, from what tests/web/coverage.mjs wrote."""
    ran = {}
    for path in folder.glob("*.json"):
        for file, lines in json.loads(path.read_text()).items():
            ran.setdefault(file, set()).update(lines)
    return ran


def run_one(name, longest):
    """(seconds, {file: {lines}}) of one test; None in place of the lines if it failed or took too long."""
    with tempfile.TemporaryDirectory() as place:
        environment = dict(os.environ, GCOV_PREFIX=place, PARLEY_COVERAGE=place)
        pattern = "^" + name.replace("+", r"\+") + "$"
        start = time.monotonic()
        process = subprocess.Popen(
            ["ctest", "--test-dir", str(BUILD), "-R", pattern], env=environment, stdin=subprocess.DEVNULL,
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
            return seconds, None
        return seconds, scripts_lines(Path(place)) if name.startswith("browser/") else counters(Path(place))


def make(options):
    flags = "--coverage -O1 -g0 -fprofile-update=single"
    configure = ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", f"-DCMAKE_C_FLAGS={flags}"]
    subprocess.run([*configure, "-DCMAKE_BUILD_TYPE=Debug"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(BUILD)], check=True, stdout=subprocess.DEVNULL)
    names = [name for name in tests_of(BUILD) if re.search(options.only, name)]
    found = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pending = {pool.submit(run_one, name, options.longest): name for name in names}
        for done in concurrent.futures.as_completed(pending):
            found.append((pending[done], *done.result()))
            name, taken, ran = found[-1]
            print(f"{taken:7.2f} s  {name}{'' if ran is not None else ': failed or too long, left out'}", flush=True)
    known = json.loads(LINES.read_text()) if LINES.exists() else {"seconds": {}, "lines": {}}
    seconds, lines = known["seconds"], known["lines"]
    for of_file in lines.values():  # what is measured anew
        for line in of_file:
            of_file[line] = [name for name in of_file[line] if name not in set(names)]
    for name, taken, ran in found:
        seconds[name] = taken
        for path, of_test in (ran or {}).items():
            for line in of_test:
                lines.setdefault(path, {}).setdefault(str(line), []).append(name)
    LINES.write_text(json.dumps(known))
    files = {}
    for path, of_file in sorted(lines.items()):
        shares = {}
        for tests in of_file.values():
            for name in tests:
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
