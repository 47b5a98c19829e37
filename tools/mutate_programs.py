"""Runs test programs with one source file replaced, for tools/mutate.py.

    programs = Programs(ROOT / "build", ROOT / "build" / "mutants", {"PARLEY_CPU": "avx2"})
    with programs.built("base/json.c", changed_text) as change:       # None if it does not compile
        change.noticed("base/test_json")                              # True, False, or None: not known

The changed file is compiled beside the tree, with the flags of its build, and linked in front of the libraries, whose own
copy is then left out: a change costs one compilation, and one link for each test that is asked. A changed header stands in a
folder that is searched before the tree, and every object of a program that includes it (`ninja -t deps`) is compiled so, the
test's own ones too. The tree and the build stay as they are. A test is bounded by the seconds of the processor that it takes
without the change, so that other work on the machine fails nothing. What hangs without using the processor is asked again,
after the unchanged program.
"""
import contextlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

MEMORY = 12 << 30  # of a test, files that it maps apart; one that wants more than this has noticed
QUICKLY = " -s" + next((f" -fuse-ld={name}" for name in ("lld", "gold") if shutil.which("ld." + name)), "")
LESS_SURE = [f"-Wno-error={name}" for name in ("maybe-uninitialized", "format-truncation")]  # of -O1, of code that is right
IDLE, TICKS = 12, 10  # a test that uses less than so many ticks of the processor in so many seconds of the clock hangs


def limits(seconds, memory):
    def apply():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    return apply


class Programs:
    """The test programs of a build that is up to date. One thread uses it at a time."""

    def __init__(self, build, place, environment):
        self.build, self.place = build, place
        place.mkdir(parents=True, exist_ok=True)
        known = {f"{name}SAN_OPTIONS": f"suppressions={build.parent}/tests/{name.lower()}san.supp" for name in ("L", "T")}
        self.environment = dict(os.environ, PARLEY_PATIENCE_MS="10000", **known, **environment)
        listing = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, check=True)
        self.commands, self.folders, self.settings = {}, {}, {}
        tests = json.loads(listing.stdout)["tests"]
        missing = [test["name"] for test in tests if not test.get("command")]
        if missing:  # TRAP: ctest leaves the command of a program out that is not built
            print(f"not asked, as they are not built (ninja -C build): {' '.join(missing)}", flush=True)
        for test in tests:
            command = test.get("command") or [""]
            if Path(command[0]).parent == build:
                self.commands[test["name"]] = command
                properties = {p["name"]: p["value"] for p in test["properties"]}
                self.folders[test["name"]] = properties["WORKING_DIRECTORY"]
                self.settings[test["name"]] = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        self.compilers, self.objects, self.includers, self.members = {}, {}, None, {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            self.compilers[os.path.relpath(entry["file"], build.parent)] = entry["command"]
            self.objects[re.search(r" -o (\S+) -c ", entry["command"]).group(1)] = entry["command"]
        self.links, self.plain, self.notes = {}, {}, place / "seconds.json"

    def link_of(self, program):
        if program not in self.links:
            out = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", program], capture_output=True, text=True)
            self.links[program] = out.stdout.strip().split("\n")[-1].removeprefix(": && ").removesuffix(" && :")
        return self.links[program]

    def objects_including(self, path):
        """The objects of the build whose source includes a header, as ninja noted when it compiled them."""
        if self.includers is None:
            self.includers, name = {}, None
            out = subprocess.run(["ninja", "-C", str(self.build), "-t", "deps"], capture_output=True, text=True).stdout
            for line in out.split("\n"):
                if line.startswith("    "):
                    file = os.path.relpath(self.build / line.strip(), self.build.parent)
                    self.includers.setdefault(file, []).append(name)
                else:
                    name = line.partition(": #deps")[0]
        return [name for name in self.includers.get(path, []) if name in self.objects]

    def sources_including(self, path):
        """The files of the tree that include a header."""
        commands = [self.objects[name] for name in self.objects_including(path)]
        return sorted({os.path.relpath(command.rsplit(" -c ", 1)[1].strip(), self.build.parent) for command in commands})

    def members_of(self, program):
        """The objects of a program: its own, and those of the libraries that the linker takes for it."""
        if program not in self.members:
            with tempfile.NamedTemporaryFile(dir=self.place) as scratch:
                link = self.link_of(program).replace(f" -o {program} ", f" -o {scratch.name} ", 1) + " -Wl,--trace" + QUICKLY
                lines = subprocess.run(shlex.split(link), cwd=self.build, capture_output=True, text=True).stdout.split("\n")
            ours = {(found.group(1), found.group(2)) for line in lines
                    if (found := re.match(r"(?:\S*/)?lib(\w+)\.a\((\S+)\)$", line))}
            folders = {name: re.match(r"(?:\S*/)?CMakeFiles/(\w+)\.dir/(?:\S*/)?(\S+)$", name) for name in self.objects}
            self.members[program] = {name for name, found in folders.items()
                                     if name in lines or (found and found.groups() in ours)}
        return self.members[program]

    def tools_of(self, test):
        """The programs that a test runs by tests/model/tool.h."""
        name = Path(self.commands[test][0]).name
        found = list((self.build.parent / "tests").rglob(name + ".c"))
        return sorted(set(re.findall(r"tool_run\w*\(\"(\w+)\"", found[0].read_text()))) if found else []

    def run(self, test, program, seconds, memory):
        """(exit code, or None if it hung; seconds of the processor)."""
        command = [str(program), *self.commands[test][1:]]
        with tempfile.TemporaryDirectory(dir=self.place) as scratch:
            process = subprocess.Popen(
                command, cwd=self.folders[test], env={**self.environment, **self.settings[test], "TMPDIR": scratch,
                                            "PROGRAMS_FOLDER": str(Path(program).parent)}, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=limits(int(seconds), memory))
            since, used, pid = time.monotonic(), 0, 0
            last = since + 120 + 20 * seconds  # for one that asks again and again for what does not come
            while pid == 0 and time.monotonic() < min(since + IDLE, last):
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid == 0:
                    time.sleep(0.01)
                    ticks = sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15]))
                    since, used = (since, used) if ticks < used + TICKS else (time.monotonic(), ticks)  # some ask now and then
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what a failed test left behind
            if pid == 0:
                _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        return (process.returncode if pid else None), usage.ru_utime + usage.ru_stime

    def without_change(self, test):
        """Seconds of the processor that a test takes, or None if it fails or skips."""
        if test not in self.plain:
            names = [Path(self.commands[test][0]).name, *self.tools_of(test)]
            subprocess.run(["ninja", "-C", str(self.build), *names], stdout=subprocess.DEVNULL)
            # Known from an earlier run of the same programs.
            key = repr([test, self.environment.get("PARLEY_CPU"), *((self.build / n).stat().st_mtime for n in names)])
            notes = json.loads(self.notes.read_text()) if self.notes.exists() else {}
            if key not in notes:
                code, seconds = self.run(test, self.commands[test][0], 1200, MEMORY)
                notes[key] = seconds if code == 0 else None
                if code not in (0, 77):  # else what only it notices would look unnoticed
                    print(f"not asked, as it fails without a change: {test}", flush=True)
                self.notes.write_text(json.dumps(notes))
            self.plain[test] = notes[key]
        return self.plain[test]

    def compiled(self, command, target, sanitizers, more, text=None):
        """Whether a command of the build compiles its file, or this text in its place, to a target."""
        command, source = re.sub(r" -o \S+ -c (\S+)$", r"\n\1", command).replace("ccache ", "").replace(" -g ", " ").split("\n")
        words = [*shlex.split(command), "-O1", "-Werror", *LESS_SURE, *more]
        # Checked versions of calls, which only the release build has, would go past what a test puts in their place.
        words += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-U_FORTIFY_SOURCE"] if sanitizers else []
        words += ["-o", str(target), "-c", *((source,) if text is None else ("-x", "c", "-"))]
        return subprocess.run(words, input=text, text=True, cwd=self.build, stderr=subprocess.DEVNULL).returncode == 0

    @contextlib.contextmanager
    def built(self, path, text, sanitizers=""):
        """A Change of a file, compiled; None if that fails. sanitizers: of the changed file and the programs."""
        with tempfile.TemporaryDirectory(dir=self.place) as folder:
            if path.endswith(".h"):
                header = Path(folder) / "headers" / path
                header.parent.mkdir(parents=True)
                header.write_text(text)
                objects = sorted(self.objects_including(path), key=lambda name: not name.startswith("CMakeFiles/parley_"))
                change = HeaderChange(self, folder, sanitizers, objects)
                yield change if change.objects and change.compile(change.objects[0]) else None
                return
            made = self.compiled(self.compilers[path], f"{folder}/changed.o", sanitizers, [], text)
            yield Change(self, folder, sanitizers, path) if made else None


class Change:
    def __init__(self, programs, folder, sanitizers, path=None):
        self.programs, self.folder, self.sanitizers = programs, Path(folder), sanitizers
        found = re.search(r" -o (\S+) -c ", programs.compilers[path]) if path else None
        self.object = found.group(1) if found else None  # of the build, where a program is linked with it itself

    def link_of(self, name):
        """How a program is linked with the change, as `program` in the folder."""
        link, made = self.programs.link_of(name), f" {self.folder}/changed.o "
        if self.object and f" {self.object} " in link:
            return link.replace(f" {self.object} ", made, 1).replace(f" -o {name} ", f" -o {self.folder}/{name} ", 1)
        if self.object and "CMakeFiles/parley_" not in self.object:
            made = " "  # of no library (main.c): only what a test runs has it
        return link.replace(f" -o {name} ", f"{made}-o {self.folder}/{name} ", 1)

    def linked(self, name):
        """A program with the change, or None."""
        program = self.folder / name
        if not program.exists():
            link = self.link_of(name) + QUICKLY + (f" -fsanitize={self.sanitizers}" if self.sanitizers else "")
            subprocess.run(shlex.split(link), cwd=self.programs.build, stderr=subprocess.DEVNULL)
        return program if program.exists() else None

    def noticed(self, test):
        """Whether a test fails with the change and not without it; None if it cannot say: it fails without it, too, is
        skipped, or is no program of its own."""
        of = self.programs
        if test not in of.commands or of.without_change(test) is None:
            return None
        program = self.linked(Path(of.commands[test][0]).name)
        if not program or not all(self.linked(name) for name in of.tools_of(test)):
            return None
        # An instrumented file takes several times as long; a loop that does not end takes longer than that.
        seconds = 10 + of.plain[test] * (20 if self.sanitizers else 5)
        memory = 0 if self.sanitizers else MEMORY
        code, _ = of.run(test, program, seconds, memory)
        if code is None:
            still_sound = of.run(test, of.commands[test][0], seconds, MEMORY)[0] == 0
            code = of.run(test, program, seconds, memory)[0] if still_sound else 77
        return code not in (0, 77)


class HeaderChange(Change):
    def __init__(self, programs, folder, sanitizers, objects):
        super().__init__(programs, folder, sanitizers)
        self.objects, self.made = objects, {}

    def compile(self, name):
        """The object with the change, or None; each is made once, when a program needs it."""
        if name not in self.made:
            target, first = self.folder / f"{len(self.made)}.o", [f"-iquote{self.folder}/headers"]
            done = self.programs.compiled(self.programs.objects[name], target, self.sanitizers, first)
            self.made[name] = target if done else None
        return self.made[name]

    def link_of(self, name):
        members = self.programs.members_of(name)
        link, front = super().link_of(name).replace(f" {self.folder}/changed.o ", " ", 1), []
        for member in [one for one in self.objects if one in members]:
            made = self.compile(member)
            if not made:
                return "false"  # this object is not compiled with the change: nothing to ask
            if f" {member} " in link:
                link = link.replace(f" {member} ", f" {made} ", 1)
            else:
                front.append(str(made))
        return link.replace(" -o ", f" {' '.join(front)} -o ", 1)
