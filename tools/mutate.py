#!/usr/bin/env python3
"""Makes small wrong changes, one at a time, in a copy of the tree, and says which of them the tests notice.

    tools/mutate.py --seed 1 -n 400                 all code, the same number for each folder
    tools/mutate.py --seed 2 -n 50 --since main     only lines that were changed since a commit
    tools/mutate.py --seed 3 -n 20 --only compute --cpu avx2
    tools/mutate.py --seed 1 --again build/mutants-1.json --out build/again.json     what survived there, in today's lines

Needs an up-to-date build/ (`cmake --preset release && ninja -C build`), and which tests run the changed line:
build/coverage/lines.json (tools/test_map.py --make; for what it lacks tests/test_map.json, which knows files). All of them
are asked, one after the other (`tests_for`), until one fails; those that the time for a change has no room for are counted
("left"). Test programs are linked anew with the changed file alone (mutate_programs.py; of a header, of which functions are
changed, with all that include it), and bounded by the time of the processor; what survives them is compiled with the
sanitizers of CI (that of threads where a lock is left out) and asked once more. What is no program of ours (a script that speaks to a server, a browser) runs in a copy of the tree and must fail
twice, since other work on the machine can fail it too; so do kernels of ARM.
What fails without the change too is not asked again. A change is killed (a test failed, or hung), survived, or was not
built (warnings are errors, as in CI). Those of tests/equivalents.json change nothing that shows; each has its reason
there. Results go to build/mutants-SEED.json after each change, so that a run that was ended goes on where it was. The exit
code is 0 if at least 95 % were killed, and 90 % in every folder.
"""
import argparse
import collections
import functools
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
from mutate_programs import Programs

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("base", "compute", "text", "model", "vision", "engine", "server", "web")
EQUIVALENTS = ROOT / "tests" / "equivalents.json"
LINES = ROOT / "build" / "coverage" / "lines.json"
MAP = ROOT / "tests" / "test_map.json"
ARM_TEST = "scripts/aarch64_test"
KERNELS = "compute/kernels/"
# What of a kernel's file name each level of PARLEY_CPU runs.
LEVELS = {
    "generic": (), "avx2": ("avx2", "simd"), "avx512": ("avx2", "simd", "avx512"),
    "avx512+vnni": ("avx2", "simd", "avx512", "vnni")}
SANITIZERS = {False: "address,undefined", True: "thread"}  # whether a lock is left out


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout


def sources(folder):
    names = git("ls-files", "--", folder).split("\n")
    return [n for n in names if n.endswith((".c", ".h", ".js")) and "/vendor/" not in n]


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


def runs_at(path, cpu):
    """Whether a level of PARLEY_CPU runs a file; None: the machine's own."""
    words = re.findall("avx2|avx512|vnni|bf16|amx|simd|neon", Path(path).stem) if path.startswith(KERNELS) else ()
    return cpu is None or all(word in LEVELS[cpu] for word in words)


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
            if (changed is None or path in changed) and runs_at(path, options.cpu):
                only = None if changed is None else changed[path]
                for mutant in mutants_of(path, (ROOT / path).read_text(), only):
                    by_line[path, mutant.line].append(mutant)
        wanted = options.n // len(folders) + (i < options.n % len(folders))
        for turn, (path, line) in enumerate(rng.sample(sorted(by_line), min(wanted, len(by_line)))):
            turns.append((turn, i, path, rng.choice(by_line[path, line])))
    return [(path, mutant) for turn, i, path, mutant in sorted(turns, key=lambda one: one[:2])]


def again(log):
    """[(file, mutant)] of what survived, or was not tried, in an earlier log, found again by the text of its line. Those
    whose line is gone, or that are not made any more, are printed."""
    chosen = []
    for entry in json.loads(Path(log).read_text()):
        path, was, lines = entry["file"], entry["was"], []
        if (ROOT / path).exists():
            lines = [i for i, line in enumerate((ROOT / path).read_text().split("\n"), 1) if line == was]
        if entry.get("result") in ("killed", "not built", "equivalent"):
            continue
        line = min(lines, key=lambda i: abs(i - entry["line"])) if lines else 0
        made = mutants_of(path, (ROOT / path).read_text(), {line}) if line else []
        mutant = next((m for m in made if m.replacement.strip() == entry["change"]), None)
        if mutant:
            chosen.append((path, mutant))
        else:
            print(f"{'not made' if line else 'gone'}   {path}:{entry['line']} {entry['operator']}: {entry['change']}")
    return chosen


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
        if test == ARM_TEST:
            return []
        if test.startswith("browser/"):  # some of them speak to the program, which has the page in itself
            real = re.search("PARLEY_BIN|two_places", (self.root / "tests" / "web" / command[-1]).read_text())
            return ["parley", "parley_fake"] if real else ["embed_assets"]
        return [Path(word).name for word in command if Path(word).parent == self.build] or ["all"]

    def notices(self, test, seconds, cases=()):
        """Whether a test fails, or hangs. cases: of a file of browser tests only those with these names (patterns)."""
        command = ["ctest", "--test-dir", str(self.build), "-R", "^" + test.replace("+", r"\+") + "$"]
        if cases:
            command = [self.tests[test][0], *(f"--test-name-pattern={case}" for case in cases), *self.tests[test][1:]]
        is_program = Path(self.tests[test][0]).parent == self.build
        for _ in range(1 if is_program else 2):
            if self.run(command, seconds) in (0, 77):
                return False
        return True

    def is_sound(self, test, seconds, cases=()):
        """Whether a test passes without a change; asked once, when it first failed."""
        if cases:
            return not self.notices(test, seconds, cases)
        if test not in self.sound | self.unsound:
            targets = self.targets_of(test)
            built = not targets or self.run(["ninja", "-C", str(self.build), *targets], 3600) == 0
            (self.sound if built and not self.notices(test, seconds) else self.unsound).add(test)
        return test in self.sound

    def try_one(self, path, mutant, tests, options, cases_of=lambda test: ()):
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
                targets = self.targets_of(test)
                if targets and self.run(["ninja", "-C", str(self.build), *targets], 3600) != 0:
                    return "not built", None, time.monotonic() - start
                if self.notices(test, options.test_seconds, cases_of(test)):
                    file.write_text(before)
                    if self.is_sound(test, options.test_seconds, cases_of(test)):
                        return "killed", test, time.monotonic() - start
                    file.write_text("\n".join(lines))
                if time.monotonic() - start > options.seconds:
                    break
            return "survived", None, time.monotonic() - start
        finally:
            file.write_text(before)


def fails_anyway(programs, path, test, sanitizers):
    """Whether a test fails under the sanitizers with the file as it is (one that has a malloc of its own does)."""
    with programs.built(path, (ROOT / path).read_text(), sanitizers) as same:
        return same is None or same.noticed(test) is not False


def try_programs(programs, path, mutant, tests, options):
    """The same of the tests that are test programs, and how many of them the time had no room for. A second round is under
    the sanitizers."""
    start, lines, left = time.monotonic(), (ROOT / path).read_text().split("\n"), 0
    is_lock = mutant.operator == "lock or free left out" and "lock(" in lines[mutant.line - 1]
    lines[mutant.line - 1] = mutant.replacement
    for sanitizers in ("", SANITIZERS[is_lock]):
        with programs.built(path, "\n".join(lines), sanitizers) as change:
            if not change:
                return "not built", None, time.monotonic() - start, 0
            used = 0.0
            for test in tests:
                # The seconds of the coverage build are up to ten times those of this one, so each is measured once here.
                cost = programs.without_change(test) if test in programs.commands else None
                if cost is None:
                    continue
                if used and used + cost > options.seconds / (3 if sanitizers else 1):
                    left += not sanitizers
                    continue
                used += cost + 0.1
                if change.noticed(test) and not (sanitizers and fails_anyway(programs, path, test, sanitizers)):
                    return "killed", test + (" (sanitizers)" if sanitizers else ""), time.monotonic() - start, 0
    return "survived", None, time.monotonic() - start, left


def is_the_one(entry, path, line):
    """Whether an equivalent of this file and change is that of a line. was: the line, of a call that is removed. behind: how the
    text in front of it ends, of a line that stands elsewhere, too."""
    lines = (ROOT / path).read_text().split("\n")
    front = " ".join(" ".join(lines[:line - 1]).split())
    return entry.get("was") in (None, lines[line - 1].strip()) and front.endswith(entry.get("behind", ""))


class Coverage:
    """Which tests run a line, as far as that is known: the lines of the last coverage build, and the map of the files."""

    def __init__(self):
        lines = json.loads(LINES.read_text()) if LINES.exists() else {"lines": {}, "seconds": {}}
        known = json.loads(MAP.read_text())
        self.lines, self.files, self.cases = lines["lines"], known["files"], lines.get("cases", {})
        self.seconds = {**known["seconds"], **lines["seconds"]}

    def cases_of(self, test, path, line):
        """Of a file of browser tests those that run a line; () for all of them."""
        found = [case for case, files in self.cases.get(test, {}).items() if line in files.get(path, ())]
        return () if "" in found else tuple(sorted(found))

    def cost(self, test, path, line):
        """Seconds that those of them take."""
        found = self.cases_of(test, path, line)
        return self.seconds.get(test, 5) * (len(found) / len(self.cases[test]) if found else 1)


def tests_for(path, line, coverage, includers):
    """All tests that may notice a change of a line: that of the file's own name, which may be newer than the map, then those
    that run the line or, where none is known to (rows of tables, what follows a lack of memory), that run a part of the
    file: cheapest first, those of other rooms, of other folders and those that run little of it as if they were dearer. Only
    the first line of a statement is counted as run. A real server confines itself and writes no counters: for its files those of real
    programs in the same room, too. includers: of a header, whose lines are not all counted; where none of them is, the tests
    of these files."""
    lines, text = coverage.lines.get(path, {}), (ROOT / path).read_text().split("\n")
    while line > 1 and str(line) not in lines and re.search(r"[^;{}\s]\s*$", text[line - 2]):
        line -= 1
    top, stem = path.split("/")[0], Path(path).stem
    if top == "compute" and "neon" in stem:
        return [ARM_TEST]
    of_file = coverage.files.get(path) or {name: share for one in includers for name, share in coverage.files.get(one, {}).items()}
    shares = dict.fromkeys(lines.get(str(line), []), 1.0) or of_file
    if top in ("server", "web"):  # what runs there is not all counted
        shares = {**of_file, **shares}
    far = lambda name: 1 if is_near(name, path) else 2 if name.startswith((top, "fuzz/")) else 4
    cost = lambda name: (1 + coverage.cost(name, path, line)) * far(name) / max(shares[name], 0.01)
    names = sorted(shares, key=cost)
    if str(line) not in lines:
        room = (ROOT / "tests" / path).parent if top == "server" else ROOT
        names += [f"server/{found.stem}" for found in (*room.glob("real_*.mjs"), *room.glob("*_test.py"))]
    return list(dict.fromkeys([f"{top}/test_{stem}", *names]))


@functools.cache
def room_of(test, top):
    source = next((ROOT / "tests" / top).rglob(test.split("/")[-1] + ".c"), None)
    return source and source.parent


def is_near(test, path):
    """Whether a test program stands in the room of a file, or in one above."""
    return room_of(test, path.split("/")[0]) in (ROOT / "tests" / path).parents


def table(results):
    rows = collections.defaultdict(collections.Counter)
    for r in results:
        rows[r["file"].split("/")[0]][r["result"]] += 1
        rows["all"][r["result"]] += 1
    print("\n| folder | killed | survived | equivalent | not built | killed of those that count |")
    print("|---|---|---|---|---|---|")
    good = True
    for folder in [f for f in (*FOLDERS, "all") if f in rows]:
        c = rows[folder]
        count = c["killed"] + c["survived"]
        share = c["killed"] / count if count else 1.0
        good = good and share >= (0.95 if folder == "all" else 0.90)
        cells = (c["killed"], c["survived"], c["equivalent"], c["not built"])
        print(f"| {folder} | {' | '.join(map(str, cells))} | {share:.1%} |")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("-n", type=int, default=100, help="changes in all")
    parser.add_argument("--since", help="only lines that were changed since this commit")
    parser.add_argument("--only", action="append", choices=FOLDERS, help="only this folder; may be repeated")
    parser.add_argument("--cpu", choices=LEVELS, help="PARLEY_CPU of the tests; kernels for more than that are left out")
    parser.add_argument("--jobs", type=int, default=1, help="copies at work at once")
    parser.add_argument("--again", help="the log of an earlier run: what survived it")
    parser.add_argument("--out", help="where results go; build/mutants-SEED.json")
    parser.add_argument("--seconds", type=float, default=240, help="of tests for one change, cheapest first")
    parser.add_argument("--skip", default="^$", help="tests whose names match this are not asked")
    parser.add_argument("--programs", action="store_true", help="only tests that are programs of ours: no servers, no browser")
    parser.add_argument("--test-seconds", type=float, default=120, help="for one test; a test that hangs has noticed")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds for the whole run")
    parser.add_argument("--where", default="/tmp/parley-mutants", help="folder of the copies")
    options = parser.parse_args()

    if not (ROOT / "build" / "build.ninja").exists():
        sys.exit("build/ is missing: cmake --preset release && ninja -C build")
    coverage = Coverage()
    listed = json.loads(EQUIVALENTS.read_text()) if EQUIVALENTS.exists() else []
    equivalents = collections.defaultdict(list)
    for e in listed:
        equivalents[e["file"], e["change"]].append(e)
    name = "-".join(["mutants", str(options.seed), *(options.only or []), *([options.cpu] if options.cpu else [])])
    log = Path(options.out) if options.out else ROOT / "build" / f"{name}.json"
    results = json.loads(log.read_text()) if log.exists() else []
    done = {(r["file"], r["line"], r["change"]) for r in results}
    chosen = again(options.again) if options.again else choose(options)
    if options.only:
        chosen = [(p, m) for p, m in chosen if p.split("/")[0] in options.only]
    chosen = [(p, m) for p, m in chosen if (p, m.line, m.replacement.strip()) not in done]
    lock, end = threading.Lock(), time.monotonic() + options.budget

    def work(number):
        where = f"{options.where}/{number}"
        programs = Programs(ROOT / "build", Path(where) / "programs", {"PARLEY_CPU": options.cpu} if options.cpu else {})
        copy = None  # made when a test needs it
        while time.monotonic() < end:
            with lock:
                if not chosen:
                    return
                path, mutant = chosen.pop(0)
            change, was = mutant.replacement.strip(), (ROOT / path).read_text().split("\n")[mutant.line - 1]
            new = [name for name in programs.commands if name not in coverage.seconds and is_near(name, path)]
            includers = programs.sources_including(path)
            tests = [name for name in tests_for(path, mutant.line, coverage, includers) if not re.search(options.skip, name)]
            tests = list(dict.fromkeys([*tests[:1], *new, *tests[1:]]))  # the map does not know the new ones yet
            others = [name for name in tests if name not in programs.commands]
            result, by, seconds, left = "survived", None, 0.0, 0
            if any(is_the_one(e, path, mutant.line) for e in equivalents.get((path, change), ())):
                result, others = "equivalent", []
            elif path in programs.compilers or programs.objects_including(path):
                result, by, seconds, left = try_programs(programs, path, mutant, tests, options)
            if result == "survived" and (ARM_TEST in others or (others and not options.programs)):
                copy = copy or Copy(f"{where}/parley", options.cpu)
                result, by, more = copy.try_one(path, mutant, others, options, lambda test: coverage.cases_of(test, path, mutant.line))
                seconds += more
            with lock:
                results.append({"file": path, "line": mutant.line, "operator": mutant.operator, "was": was, "change": change,
                                "result": result, "by": by, "left": left, "seconds": round(seconds, 1)})
                log.write_text(json.dumps(results, indent=1))
                print(f"{result:10} {path}:{mutant.line} {mutant.operator}: {change}{f'  [{by}]' if by else ''}"
                      f"{f'  ({left} tests not asked)' if left else ''}", flush=True)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(0 if table(results) else 1)


if __name__ == "__main__":
    main()
