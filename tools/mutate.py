#!/usr/bin/env python3
"""Makes small wrong changes, one at a time, in a copy of the tree, and says which of them the tests notice.

    tools/mutate.py --seed 1 -n 400                 all code, the same number for each folder
    tools/mutate.py --seed 2 -n 50 --since main     only lines that were changed since a commit
    tools/mutate.py --seed 3 -n 20 --only compute --cpu avx2

Needs build/coverage/lines.json (tools/test_map.py --make): which tests run the changed line. They run one after the other
(`tests_for`), until one fails or the time for a change is over. What failed and is no program of ours (a script that
speaks to a server, a browser) must fail twice, since other work on the machine can fail it too.
What fails without the change too is not asked again. A change is killed (a test failed, or hung), survived, or was not built (warnings are errors, as in CI). Those of tests/equivalents.json change
nothing that shows; each has its reason there. Results go to build/mutants-SEED.json after each change, so that a run
that was ended goes on where it was. The exit code is 0 if at least 95 % were killed, and 90 % in every folder.
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from mutants import mutants_of

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("base", "compute", "text", "model", "vision", "engine", "server", "web")
EQUIVALENTS = ROOT / "tests" / "equivalents.json"
LINES = ROOT / "build" / "coverage" / "lines.json"
FILE_TESTS = 6  # of a file, where none is known to run the changed line


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout


def sources(folder):
    names = git("ls-files", "--", folder).split("\n")
    return [n for n in names if n.endswith((".c", ".js")) and "/vendor/" not in n]


def changed_lines(commit):
    """{file: {lines}} of what the working tree adds to a commit."""
    out, path, changed = git("diff", "-U0", commit, "--", *FOLDERS), None, {}
    for line in out.split("\n"):
        if line.startswith("+++ b/"):
            path = line[6:]
        elif line.startswith("@@") and path:
            start, _, count = line.split("+")[1].split(" ")[0].partition(",")
            changed.setdefault(path, set()).update(range(int(start), int(start) + int(count or 1)))
    return changed


def choose(options):
    """[(file, mutant)], the same for the same seed and tree: each folder has its share, each line the same chance. Folders
    take turns, so that a run which was ended early has some of each."""
    changed = changed_lines(options.since) if options.since else None
    folders = [f for f in FOLDERS if not options.only or f in options.only]
    turns = []
    for i, folder in enumerate(folders):
        rng = random.Random(f"{options.seed} {folder}")
        by_line = collections.defaultdict(list)
        for path in sources(folder):
            if changed is None or path in changed:
                only = None if changed is None else changed[path]
                for mutant in mutants_of(path, (ROOT / path).read_text(), only):
                    by_line[path, mutant.line].append(mutant)
        wanted = options.n // len(folders) + (i < options.n % len(folders))
        for turn, (path, line) in enumerate(rng.sample(sorted(by_line), min(wanted, len(by_line)))):
            turns.append((turn, i, path, rng.choice(by_line[path, line])))
    return [(path, mutant) for turn, i, path, mutant in sorted(turns, key=lambda one: one[:2])]


class Copy:
    """A copy of the tree with a build of its own; one thread works in it at a time."""

    def __init__(self, where, cpu):
        self.root = Path(where)
        self.build = self.root / "build"
        self.environment = dict(os.environ, PARLEY_PATIENCE_MS="10000", **({"PARLEY_CPU": cpu} if cpu else {}))
        # What an earlier run left is used again: only files that differ are copied, and built.
        names = [name for name in git("ls-files", "-coz", "--exclude-standard").split("\0") if name and (ROOT / name).exists()]
        for name in names:
            source, target = ROOT / name, self.root / name
            if source.is_symlink() or not target.exists() or source.read_bytes() != target.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                shutil.copy(source, target, follow_symlinks=False)
        shared = ROOT.parent / "shared"
        if shared.exists() and not (self.root.parent / "shared").exists():
            (self.root.parent / "shared").symlink_to(shared.resolve())
        for modules in ROOT.glob("tests/**/node_modules"):  # not as links: `npm ci` empties what a link leads to
            target = self.root / modules.relative_to(ROOT)
            if modules.is_dir() and not target.exists():
                shutil.copytree(modules, target, symlinks=True)
                target.touch()
        configure = ["cmake", "-S", str(self.root), "-B", str(self.build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        self.run([*configure, *launcher, "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON"], 600, check=True)
        self.run(["ninja", "-C", str(self.build)], 3600, check=True)
        listing = subprocess.run(["ctest", "--test-dir", str(self.build), "--show-only=json-v1"], capture_output=True, check=True)
        self.sound, self.unsound = set(), set()  # tests that pass without a change, and those that do not
        self.tests = {test["name"]: test.get("command", []) for test in json.loads(listing.stdout)["tests"]}

    def run(self, command, seconds, check=False):
        """0, another exit code, or None if it did not end in time."""
        process = subprocess.Popen(
            command, cwd=self.root, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)  # also servers that a failed test left behind
        except ProcessLookupError:
            pass
        process.wait()
        if check and code != 0:
            raise SystemExit(f"{' '.join(command)} failed in {self.root}")
        return code

    def targets_of(self, test):
        """The programs of this build that a test's command names."""
        command = self.tests[test]
        if test.startswith("browser/"):  # some of them speak to the program, which has the page in itself
            real = re.search("PARLEY_BIN|two_places", (self.root / "tests" / "web" / command[-1]).read_text())
            return ["parley", "parley_fake"] if real else ["embed_assets"]
        return [Path(word).name for word in command if Path(word).parent == self.build] or ["all"]

    def notices(self, test, seconds):
        """Whether a test fails, or hangs."""
        command = ["ctest", "--test-dir", str(self.build), "-R", "^" + test.replace("+", r"\+") + "$"]
        is_program = Path(self.tests[test][0]).parent == self.build
        for _ in range(1 if is_program else 2):
            if self.run(command, seconds) in (0, 77):
                return False
        return True

    def is_sound(self, test, seconds):
        """Whether a test passes without a change; asked once, when it first failed."""
        if test not in self.sound | self.unsound:
            built = self.run(["ninja", "-C", str(self.build), *self.targets_of(test)], 600) == 0
            (self.sound if built and not self.notices(test, seconds) else self.unsound).add(test)
        return test in self.sound

    def try_one(self, path, mutant, tests, options):
        """(result, the test that noticed or None, seconds)."""
        start, file = time.monotonic(), self.root / path
        before = file.read_text()
        lines = before.split("\n")
        lines[mutant.line - 1] = mutant.replacement
        try:
            file.write_text("\n".join(lines))
            for test in tests:
                if test in self.unsound or test not in self.tests:
                    continue
                if self.run(["ninja", "-C", str(self.build), *self.targets_of(test)], 600) != 0:
                    return "not built", None, time.monotonic() - start
                if self.notices(test, options.test_seconds):
                    file.write_text(before)
                    if self.is_sound(test, options.test_seconds):
                        return "killed", test, time.monotonic() - start
                    file.write_text("\n".join(lines))
                if time.monotonic() - start > options.seconds:
                    break
            return "survived", None, time.monotonic() - start
        finally:
            file.write_text(before)


def tests_for(path, line, coverage):
    """The tests that may notice a change of a line: those of the file's own name, which may be newer than the map, then
    those that run the line, of the same folder first, cheapest first. Only the first line of a statement is counted as
    run. Where no test is known to run it (rows of tables, what follows a lack of memory), those that run most of the file
    for their seconds. A real server confines itself and writes no counters: for its files those of real programs in the
    same room, too."""
    lines, text = coverage["lines"].get(path, {}), (ROOT / path).read_text().split("\n")
    while line > 1 and str(line) not in lines and re.search(r"[^;{}\s]\s*$", text[line - 2]):
        line -= 1
    top, stem, seconds = path.split("/")[0], Path(path).stem, coverage["seconds"]
    cost = lambda name: seconds.get(name, 5)
    names = sorted(lines.get(str(line), []), key=lambda name: (name.split("/")[0] != top, cost(name)))
    if not names:
        shares = collections.Counter(name for tests in lines.values() for name in tests)
        names = sorted(shares, key=lambda name: -shares[name] / (1 + cost(name)))[:FILE_TESTS]
        room = (ROOT / "tests" / path).parent if top == "server" else ROOT
        names += [f"server/{found.stem}" for found in (*room.glob("real_*.mjs"), *room.glob("*_test.py"))]
    return list(dict.fromkeys([f"{top}/test_{stem}", *names]))


def table(results):
    rows = collections.defaultdict(collections.Counter)
    for r in results:
        rows[r["file"].split("/")[0]][r["result"]] += 1
        rows["all"][r["result"]] += 1
    print("\n| folder | killed | survived | no test runs the line | equivalent | not built | killed of those that count |")
    print("|---|---|---|---|---|---|---|")
    good = True
    for folder in [f for f in (*FOLDERS, "all") if f in rows]:
        c = rows[folder]
        count = c["killed"] + c["survived"] + c["not run"]
        share = c["killed"] / count if count else 1.0
        good = good and share >= (0.95 if folder == "all" else 0.90)
        cells = (c["killed"], c["survived"], c["not run"], c["equivalent"], c["not built"])
        print(f"| {folder} | {' | '.join(map(str, cells))} | {share:.1%} |")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("-n", type=int, default=100, help="changes in all")
    parser.add_argument("--since", help="only lines that were changed since this commit")
    parser.add_argument("--only", action="append", choices=FOLDERS, help="only this folder; may be repeated")
    parser.add_argument("--cpu", help="PARLEY_CPU of the tests: generic, avx2, avx512, avx512+vnni")
    parser.add_argument("--jobs", type=int, default=1, help="copies at work at once")
    parser.add_argument("--seconds", type=float, default=240, help="for one change; what is not noticed by then survived")
    parser.add_argument("--test-seconds", type=float, default=120, help="for one test; a test that hangs has noticed")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds for the whole run")
    parser.add_argument("--where", default="/tmp/parley-mutants", help="folder of the copies")
    options = parser.parse_args()

    if not LINES.exists():
        sys.exit("build/coverage/lines.json is missing: tools/test_map.py --make")
    coverage = json.loads(LINES.read_text())
    equivalents = {(e["file"], e["change"]) for e in json.loads(EQUIVALENTS.read_text())} if EQUIVALENTS.exists() else set()
    name = "-".join(["mutants", str(options.seed), *(options.only or []), *([options.cpu] if options.cpu else [])])
    log = ROOT / "build" / f"{name}.json"
    results = json.loads(log.read_text()) if log.exists() else []
    done = {(r["file"], r["line"], r["change"]) for r in results}
    chosen = [(p, m) for p, m in choose(options) if (p, m.line, m.replacement.strip()) not in done]
    lock, end = threading.Lock(), time.monotonic() + options.budget

    def work(copy):
        while time.monotonic() < end:
            with lock:
                if not chosen:
                    return
                path, mutant = chosen.pop(0)
            change = mutant.replacement.strip()
            tests = tests_for(path, mutant.line, coverage)
            if (path, change) in equivalents:
                result, by, seconds = "equivalent", None, 0.0
            elif not tests:
                result, by, seconds = "not run", None, 0.0
            else:
                result, by, seconds = copy.try_one(path, mutant, tests, options)
            with lock:
                results.append({"file": path, "line": mutant.line, "operator": mutant.operator, "change": change,
                                "result": result, "by": by, "seconds": round(seconds, 1)})
                log.write_text(json.dumps(results, indent=1))
                print(f"{result:10} {path}:{mutant.line} {mutant.operator}: {change}{f'  [{by}]' if by else ''}", flush=True)

    copies = [Copy(f"{options.where}/{i}/parley", options.cpu) for i in range(options.jobs)]
    threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(0 if table(results) else 1)


if __name__ == "__main__":
    main()
