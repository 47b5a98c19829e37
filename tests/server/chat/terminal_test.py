#!/usr/bin/env python3
"""`parley chat` behind a pseudo-terminal and in pipes, against a server of this file's own that keeps every request, and with
a server of its own; `parley status`, `stop` and what is piped into `run`.

    terminal_test.py PARLEY
"""
import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

PARLEY = sys.argv[1]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
FOLDER = tempfile.TemporaryDirectory(prefix="parley-terminal-")
CAT = os.path.join(ROOT, "assets/samples/color.png")
BALL = os.path.join(ROOT, "assets/samples/ball-moves.mp4")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")} | {
    "PARLEY_CONFIG": "none", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TMPDIR": FOLDER.name, "XDG_RUNTIME_DIR": FOLDER.name}
WAIT_S = 120


class Server(http.server.ThreadingHTTPServer):
    """Speaks Chat Completions; the last question says how it answers."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies, self.keys, self.cut = [], [], threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, document):
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.server.keys.append(self.headers.get("Authorization"))
        if self.headers.get("Authorization") == "Bearer wrong":
            self.reply(401, {"error": {"message": "wrong key"}})
        else:
            self.reply(200, {"data": [{"id": "first"}, {"id": "second", "status": {"value": "loaded"}}]})

    def event(self, document):
        text = f"data: {document if isinstance(document, str) else json.dumps(document)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))

    def delta(self, **delta):
        self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        content = body["messages"][-1]["content"]
        question = content if isinstance(content, str) else content[-1]["text"]
        if question == "refuse":
            return self.reply(400, {"error": {"message": "too hard a question"}})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if question == "think":
            self.delta(reasoning_content="Hm, let me see.")
        if question == "slow":
            try:
                for i in range(1000):
                    self.delta(content=f"word{i} ")
                    time.sleep(0.02)
            except OSError:
                self.server.cut.set()
            return None
        if question == "break":
            self.delta(content="half")
            self.close_connection = True
            return None
        answer = {"escape": "\x1b[2Jbell\x07 \u009b31m \u202eright", "long": "a\u00e4\U0001f642 " * 3000}.get(question, f"echo {len(question)}: {question[:40]}")
        self.delta(content=answer)
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")
        return None


class Terminal:
    """A program behind a pseudo-terminal."""

    def __init__(self, args, columns=80, rows=24, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(PARLEY, [PARLEY, *args], ENVIRONMENT | (env or {}))
        self.seen = b""
        self.at = 0

    def resize(self, columns, rows=24):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, wait_s):
        if not select.select([self.fd], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            data = b""
        self.seen += data
        return bool(data)

    def expect(self, pattern):
        """Waits until the pattern stands in what came since the last match; the match."""
        end = time.monotonic() + WAIT_S
        while not (found := re.search(pattern.encode(), self.seen[self.at:], re.S)):
            if time.monotonic() > end or not self.read(1):
                if time.monotonic() > end or not select.select([self.fd], [], [], 0)[0]:
                    if time.monotonic() > end:
                        raise AssertionError(f"no {pattern!r} in {self.seen[self.at:][-1500:]!r}")
                    continue
                if not self.read(0):
                    raise AssertionError(f"ended without {pattern!r}: {self.seen[self.at:][-1500:]!r}")
        self.at += found.end()
        return found

    def send(self, text):
        data = text.encode() if isinstance(text, str) else text
        while data:
            ready = select.select([self.fd], [self.fd], [], WAIT_S)
            assert ready[0] or ready[1], "the terminal takes nothing"
            if ready[0]:
                self.read(0)
            elif ready[1]:
                data = data[os.write(self.fd, data[:2048]):]

    def ask(self, text):
        """Types a line and waits for the next prompt."""
        self.send(text + "\r")
        self.expect(r"\n(\x1b\[\?2004h)?> ")

    def end(self):
        """What is left to read is read; the exit code."""
        deadline = time.monotonic() + WAIT_S
        while True:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                while self.read(0):
                    pass
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() < deadline, f"does not end: {self.seen[-500:]!r}"
            self.read(0.05)


def chat(server, *args, **kwargs):
    terminal = Terminal(["chat", "--connect", server.url, *args], **kwargs)
    terminal.expect("Ctrl-D leaves.*> ")
    return terminal


def run(args, text="", env=None, **kwargs):
    return subprocess.run([PARLEY, *args], input=text, capture_output=True, env=ENVIRONMENT | (env or {}), timeout=WAIT_S,
                          text=isinstance(text, str), check=False, **kwargs)


def contents(body):
    return [m["content"] for m in body["messages"]]


def test_commands(server):
    t = chat(server)
    assert b"second. /help" in t.seen, "the loaded model is taken"
    t.ask("hello")
    assert server.bodies[-1]["model"] == "second" and contents(server.bodies[-1]) == ["hello"]
    assert server.bodies[-1]["stream"] is True and "chat_template_kwargs" not in server.bodies[-1]
    t.ask("/system Be brief.")
    t.ask("and again")
    assert contents(server.bodies[-1]) == ["Be brief.", "hello", "echo 5: hello", "and again"]
    t.ask("/regen")
    assert contents(server.bodies[-1]) == contents(server.bodies[-2])
    t.ask("/thinking off")
    t.ask("x")
    assert server.bodies[-1]["chat_template_kwargs"] == {"enable_thinking": False}
    t.ask("/new")
    spaced = os.path.join(FOLDER.name, "a cat.png")
    os.symlink(CAT, spaced)
    for path in (CAT, f'"{spaced}"', spaced.replace(" ", "\\ ")):
        t.ask(f"/image {path}")
    t.ask(f"/video {BALL}")
    t.ask("what?")
    parts = contents(server.bodies[-1])[1]
    assert [p["type"] for p in parts] == ["image_url"] * 3 + ["video_url", "text"]
    assert parts[0]["image_url"]["url"].startswith("data:image/png;base64,iVBOR") and parts[3]["video_url"]["url"].startswith("data:video/mp4;")
    t.ask("/regen")
    assert contents(server.bodies[-1])[1] == parts, "its files go along"
    for line, sentence in ((f"/image {BALL}", "is no image; it is video/mp4"), (f"/video {__file__}", "is no video that is known"),
                           ("/image /none", "/none"), ("/image", "takes the path"), ("/nonsense", "no command /nonsense"),
                           ("/save", "takes the path"), ("/thinking maybe", "takes on or off"), ("refuse", "the server: too hard a question"),
                           ("break", "half.*the connection to .* failed"), ("/help", "/regen .*Ctrl-C stops")):
        t.send(line + "\r")
        t.expect(sentence)
        t.expect("> ")
    t.ask("//etc")
    assert contents(server.bodies[-1])[-1] == "/etc"
    assert "refuse" not in contents(server.bodies[-1]), "a question that was refused is not asked again"
    saved = os.path.join(FOLDER.name, "talk.json")
    t.ask(f"/save {saved}")
    assert json.load(open(saved, encoding="utf8"))[-1] == {"role": "assistant", "content": "echo 4: /etc"}
    t.send(f"/save {saved}\r")
    t.expect("cannot be written: File exists.*> ")
    t.ask(f"/save {saved[:-5]}.md")
    assert "## Question\n\n/etc\n\n## Answer\n\necho 4: /etc\n" in open(saved[:-5] + ".md", encoding="utf8").read()
    t.send("/quit\r")
    assert t.end() == 0


def test_editing(server):
    t = chat(server)
    t.ask("ab\x1b[D-\x1b[C!")
    assert contents(server.bodies[-1])[-1] == "a-b!"
    t.ask("gr\u00fc\u00df dich \U0001f642")
    assert contents(server.bodies[-1])[-1] == "gr\u00fc\u00df dich \U0001f642"
    t.ask("\x1b[A\x1b[A?")
    assert contents(server.bodies[-1])[-1] == "a-b!?", "the arrow up brings back what was asked"
    t.ask("one\x1b\rtwo")
    assert contents(server.bodies[-1])[-1] == "one\ntwo"
    t.send("three\\\r")
    t.expect(r"\.\.\. ")
    t.ask("four")
    assert contents(server.bodies[-1])[-1] == "three\nfour"
    t.send("dropped\x03")
    t.expect(r"\^C.*> ")
    t.ask("kept")
    assert contents(server.bodies[-1])[-1] == "kept"
    t.send("a question that is wider than the terminal will be")
    for columns in (30, 12, 100):
        t.resize(columns)
        time.sleep(0.1)
    t.ask(", is it?")
    assert contents(server.bodies[-1])[-1] == "a question that is wider than the terminal will be, is it?"
    t.send("\x04")
    assert t.end() == 0
    assert t.seen.count(b"\x1b[?2004h") == t.seen.count(b"\x1b[?2004l"), "marks of pastes are off when nothing is read"


def test_pastes(server):
    t = chat(server)
    text = "".join(f"line {i} with some text \u00e4\n" for i in range(40000))
    assert len(text.encode()) > 1 << 20
    t.send("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")
    t.expect(r"\[pasted 1: 40000 lines, \d+ bytes\]")
    t.ask(" and a question")
    assert contents(server.bodies[-1])[-1] == text + " and a question"
    t.ask("\x1b[200~short\x1b[201~ one")
    assert contents(server.bodies[-1])[-1] == "short one"
    t.ask("\x1b[200~/quit\rnot\x1b[201~")
    assert contents(server.bodies[-1])[-1] == "/quit\nnot", "what is pasted is a question"
    plain = "0123456789abcdef" * (1 << 12)  # 64 KiB from a terminal that does not mark what is pasted
    t.ask(plain)
    assert contents(server.bodies[-1])[-1] == plain
    t.send("\x04")
    assert t.end() == 0


def test_interrupts(server):
    t = chat(server)
    server.cut.clear()
    t.send("slow\r")
    t.expect("word3 ")
    t.send("\x03")
    t.expect(r"\[stopped\].*> ")
    assert server.cut.wait(WAIT_S), "the server sees that nobody listens"
    t.ask("go on")
    assert contents(server.bodies[-1])[1].startswith("word0 word1 "), "what came counts"
    t.send("slow\r")
    t.expect("word1 ")
    os.kill(t.pid, signal.SIGTERM)
    assert t.end() == 0


def test_screen(server):
    t = chat(server)
    t.ask("escape")
    assert b"^[[2Jbell^G" in t.seen and b"\x1b[2J" not in t.seen and "\u009b".encode() not in t.seen
    t.send("think\r")
    t.expect(r"\x1b\[2mHm, let me see\.\x1b\[0m\r\necho 5: think.*> ")
    t.send("\x04")
    t.end()
    t = chat(server, env={"NO_COLOR": "1"})
    t.ask("think")
    assert b"\x1b[2m" not in t.seen
    t.send("\x04")
    t.end()
    narrow = Terminal(["chat", "--connect", server.url], columns=12)
    assert narrow.end() == 2 and b"12 columns" in narrow.seen.replace(b"\r\n", b"")


def test_pipes(server):
    r = run(["chat", "--connect", server.url], "hello\nthink\n/thinking on\nescape\ntwo\\\nlines\n")
    assert r.returncode == 0 and "\x1b" not in r.stdout.replace("\x1b[2Jbell", "") and "\x1b" not in r.stderr
    assert r.stdout.startswith("echo 5: hello\necho 5: think\n\x1b[2Jbell"), r.stdout
    assert "Hm, let me see." in r.stderr and contents(server.bodies[-1])[-1] == "two\nlines"
    quiet = run(["chat", "-q", "--connect", server.url, "--temp", "0.5", "-n", "9"], "think")
    assert (quiet.stdout, quiet.stderr) == ("echo 5: think\n", "")
    assert server.bodies[-1]["temperature"] == 0.5 and server.bodies[-1]["max_tokens"] == 9
    for args, env, sentence, code in (
            (["--connect", "http://127.0.0.1:9"], {}, "no server answers at http://127.0.0.1:9/v1", 1),
            (["--connect", "nonsense"], {}, "nonsense is no address of a server", 2),
            (["--connect", "unix:/none/s"], {}, "no server answers at /none/s", 1),
            (["--connect", server.url + "/v1"], {"PARLEY_CONNECT_KEY": "wrong"}, "refuses this key", 2),
            (["--connect", server.url, "--ctx-size", "512"], {}, "--ctx-size is for a server of this chat's own", 2),
            (["--connect", server.url, "--input-history", "/none/h"], {}, "", 0)):
        failed = run(["chat", *args], "x\n", env)
        assert failed.returncode == code and sentence in failed.stderr, (failed.returncode, failed.stderr)
    assert run(["chat", "--connect", server.url], b"\xff\n").stderr.startswith(b"parley: that is no UTF-8")
    assert server.keys[-1] is None


def children():
    """Processes that run this program, by their command lines."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/exe") == os.path.realpath(PARLEY):
                found.append(open(f"/proc/{name}/cmdline", "rb").read().decode().split("\0"))
        except OSError:
            pass
    return [c for c in found if c[1:2] == ["chat"]]  # a process that ends has no command line any more


def eventually(check, what):
    end = time.monotonic() + WAIT_S
    while not check():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_alone(_):
    history = os.path.join(FOLDER.name, "typed")
    args = ["chat", "--temp", "0", "--input-history", history]
    t = Terminal(args)
    t.expect("seedling. /help.*> ")
    t.ask("What is 7 plus 5?")
    assert b"12" in t.seen
    t.ask(f"/image {CAT}")
    t.send("What color is the triangle?\r")
    t.expect("green.*> ")
    t.send("\x04")
    assert t.end() == 0
    eventually(lambda: not children(), "the server of a chat goes with it")
    assert "What color is the triangle?" in open(history, encoding="utf8").read().replace("\\040", " ")
    assert os.stat(history).st_mode & 0o77 == 0
    t = Terminal(args)
    t.expect("leaves.*> ")
    t.send("\x1b[A")
    t.expect("What color is the triangle")
    os.kill(t.pid, signal.SIGKILL)
    t.end()
    eventually(lambda: not children(), "the server of a chat that was killed goes, too")
    wrong = run(["chat", "-m", "/none"], "x\n")
    assert wrong.returncode == 3 and "/none" in wrong.stderr
    assert run(["chat", "--temp", "0"], "What is 7 plus 5?\n").stdout == "7 + 5 = 12\n"


def test_status_and_stop(_):
    server = subprocess.Popen([PARLEY, "serve", "--port", "0"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = re.search(r":(\d+)", server.stdout.readline()).group(1)
    where = ["--port", port]
    status = run(["status", *where])
    assert status.returncode == 0 and re.match(rf"127.0.0.1 port {port}: ready, Parley .*, process {server.pid}\nmodel     seedling, ", status.stdout), status
    assert json.loads(run(["status", "--json", *where]).stdout)["model"]["id"] == "seedling"
    stopped = run(["stop", *where])
    assert (stopped.returncode, stopped.stdout) == (0, "stopped\n"), stopped
    assert server.wait(WAIT_S) == 0
    for command in ("status", "stop"):
        gone = run([command, *where])
        assert gone.returncode == 1 and gone.stderr == f"parley: 127.0.0.1 port {port}: no server answers there (Connection refused)\n", gone
    key = os.path.join(FOLDER.name, "key")
    with open(key, "w", encoding="utf8") as f:
        f.write("a-key-of-this-test-1234\n")
    os.chmod(key, 0o600)
    socket = ["--host", f"unix:{FOLDER.name}/s"]
    server = subprocess.Popen([PARLEY, "serve", *socket, "--api-key-file", key], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True)
    server.stdout.readline()
    assert "wants a key" in run(["status", *socket]).stderr
    assert run(["status", *socket, "--api-key-file", key]).returncode == 0
    over = run(["chat", "--connect", socket[1]], "What is 7 plus 5?\n", {"PARLEY_CONNECT_KEY": "a-key-of-this-test-1234"})
    assert "12" in over.stdout, over
    assert run(["stop", *socket]).returncode == 0 and server.wait(WAIT_S) == 0


def test_other_programs_are_not_stopped(server):
    r = run(["stop", "--port", server.url.rsplit(":", 1)[1]])
    assert r.returncode == 1 and "no Parley server" in r.stderr, r


def test_piped_questions(_):
    short = ["run", "-q", "--temp", "0", "-n", "30"]
    def piped(args, data):
        """A real pipe: what subprocess gives is one."""
        return run([*short, *args], data)
    assert piped([], "What is 7 plus 5?").stdout == "7 + 5 = 12\n"
    assert piped(["What is 7 plus 5?"], "").stdout == "7 + 5 = 12\n"
    assert piped(["What is 7"], "plus 5?").returncode == 0
    assert piped(["What is it?"], b"\xff\xfe\x00 log").returncode == 0
    none = subprocess.run([PARLEY, "run"], stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRONMENT, text=True, timeout=WAIT_S, check=False)
    assert none.returncode == 2 and "what is the question" in none.stderr
    over = run(["run", "What failed?"], b"x" * ((64 << 20) + 1))
    assert over.returncode == 2 and b"more than 64 MiB" in over.stderr, over.stderr
    long = run(["run", "-q", "-c", "256", "--temp", "0", "What failed?"], "word " * 2000)
    assert long.returncode == 1 and "256" in long.stderr, "what is piped in is part of the question"


def main():
    server = Server()
    for name, test in [(n, f) for n, f in globals().items() if n.startswith("test_")]:
        began = time.monotonic()
        test(server)
        print(f"ok {name} {time.monotonic() - began:.1f} s", flush=True)
    left = [n for n in os.listdir(FOLDER.name) if n.startswith("parley-") and os.path.exists(os.path.join(FOLDER.name, n, "chat"))]
    assert len(left) <= 1, f"only the chat that was killed leaves its socket: {left}"


main()
