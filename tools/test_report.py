#!/usr/bin/env python3
"""Sums up ctest's JUnit files: kernels that could not be checked, failed tests, skipped tests with their reasons, one
closing line.

    tools/test_report.py release=build/tests.xml asan=build/asan/tests.xml

The last line reads "N passed, N failed, N skipped". Exit code 1 if a test failed or a file has no tests.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    """(result, reason) of one testcase element."""
    skipped = case.find("skipped")
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed", ""
    if skipped is None:
        return "passed", ""
    # ctest also calls a test skipped whose program is missing: that is a failure.
    message = skipped.get("message", "")
    if "SKIP" not in message and case.get("status") != "disabled":
        return "failed", message
    for line in (case.findtext("system-out") or "").splitlines():
        found = re.search(r"\bskipped: *(.+)", line)
        if found:
            return "skipped", found.group(1).strip()
    return "skipped", "no reason given"


def main(arguments):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    lines = {"failed": [], "skipped": []}
    unchecked = {}  # what a test that passed says that it could not check, in the order found
    for argument in arguments:
        configuration, _, path = argument.partition("=")
        try:
            cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError) as error:
            cases = []
            print(f"{configuration}: no test report: {error}")
        if not cases:
            counts["failed"] += 1
            lines["failed"].append(f"FAILED  {configuration}: no test ran")
        for case in cases:
            result, reason = outcome(case)
            counts[result] += 1
            for line in re.findall(r"^not checked here: .+", case.findtext("system-out") or "", re.M):
                unchecked[f"{configuration}: {line}"] = True
            if result != "passed":
                note = f": {reason}" if reason else ""
                lines[result].append(f"{result.upper():7} {configuration} {case.get('name')}{note}")
    for line in [*unchecked, *lines["skipped"], *lines["failed"]]:
        print(line)
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
