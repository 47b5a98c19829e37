#!/usr/bin/env python3
"""Lets one call of a program fail (memory, files, sockets, threads, time), the next time another one,
and asks the whole program after each: no crash, no hang, a right error or the right answer, nothing
broken afterwards, nothing left behind.

    torture.py BUILD [--all] [--points N] [--only SCENARIO] [--kind KIND] [--seed S] [--at N]

BUILD has parley, parley_fake and torture_shim.so. Each scenario is first run with calls counted, then
once more for each call (--all), or for N of them that the seed picks (the date without one). Prints the
number of calls that failed, the distinct sites, and each fault with the command that repeats it.
"""
import argparse
import base64
import datetime
import hashlib
import http.client
import http.server
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

KINDS = ["mem", "open", "read", "write", "sync", "fd", "map", "thread", "file", "clock"]
PATIENCE = 30  # of a machine that is busy with other things, too
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TINY = os.path.join(ROOT, "tests/data/tiny")
TEMPLATE = ["--chat-template-file", os.path.join(ROOT, "assets/seedling/chat_template.jinja")]
PNG = bytes([0x89, 0x50, 0x4E, 0x47, *[0] * 8]) + b"IEND" + bytes(4)


class Fault(Exception):
    """What must not happen."""


class Cut(Exception):
    """The connection ended without a whole reply: allowed where a call has failed."""


# ---- clients ----

class Client:
    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, headers=None, expect=(200,)):
        """A reply that is whole and, if it is an error, one as the API has them; its status and value."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
            kind = {"Content-Type": "application/json"} if isinstance(body, (dict, list)) else {}
            link.request(method, path, data, {**kind, **(headers or {})})
            reply = link.getresponse()
            text = reply.read()
        except socket.timeout:
            raise Fault(f"{method} {path}: no reply in {PATIENCE} s")
        except (OSError, http.client.HTTPException) as error:
            raise Cut(f"{method} {path}: {error!r}")
        finally:
            link.close()
        if reply.status in expect:
            return text
        try:
            error = json.loads(text)["error"]
            assert error["message"] and reply.status >= 400
        except (ValueError, KeyError, TypeError, AssertionError):
            raise Fault(f"{method} {path}: {reply.status} {text[:200]!r}")
        if reply.status == 500:
            raise Fault(f"{method} {path}: 500 {text[:200]!r}")
        raise Cut(f"{method} {path}: {reply.status} {error['code'] if 'code' in error else error}")

    def json(self, *args, **more):
        text = self.ask(*args, **more)
        try:
            return json.loads(text)
        except ValueError:
            raise Fault(f"{args[1]}: a reply that is no JSON: {text[:1000]!r}")


def events(text):
    return [line[6:] for line in text.decode().split("\n") if line.startswith("data: ")]


def check(is_right, what):
    if not is_right:
        raise Fault(what)


class Socket:
    """A WebSocket of parley.v1, as much of it as is needed."""

    def __init__(self, port):
        try:
            self.link = socket.create_connection(("127.0.0.1", port), PATIENCE)
            self.link.sendall((f"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                               "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: parley.v1\r\n"
                               f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n\r\n").encode())
            head = b""
            while b"\r\n\r\n" not in head:
                head += self.take(1)
        except socket.timeout:
            raise Fault("WebSocket: no reply to the handshake")
        except OSError as error:
            raise Cut(f"WebSocket: {error!r}")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise Cut(f"WebSocket: {head[:80]!r}")

    def take(self, n):
        data = b""
        while len(data) < n:
            try:
                piece = self.link.recv(n - len(data))
            except socket.timeout:
                raise Fault("WebSocket: silence")
            except OSError as error:
                raise Cut(f"WebSocket: {error!r}")
            if not piece:
                raise Cut("WebSocket: closed")
            data += piece
        return data

    def send(self, value):
        data = json.dumps(value).encode()
        size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0xFE]) + struct.pack(">H", len(data))
        try:
            self.link.sendall(b"\x81" + size + bytes(4) + data)
        except OSError as error:
            raise Cut(f"WebSocket: {error!r}")

    def next(self):
        first, size = self.take(2)
        size = struct.unpack(">H", self.take(2))[0] if size == 126 else struct.unpack(">Q", self.take(8))[0] if size == 127 else size
        data = self.take(size)
        if first & 15 == 8:
            raise Cut(f"WebSocket: close {data[:60]!r}")
        return json.loads(data) if first & 15 == 1 else {"type": "-"}


# ---- strangers: another server with a model, one with tools, a hub; each always right ----

REPO = {"config.json": open(os.path.join(TINY, "config.json"), "rb").read(),
        "tokenizer.json": bytes(i * i % 251 for i in range(3000)), "model.safetensors": bytes(i * i % 241 for i in range(20000))}
COMMIT = "c" * 40


class Stranger(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, data, kind="application/json", status=200):
        data = json.dumps(data).encode() if isinstance(data, dict) else data
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def do_GET(self):
        path = self.path.split("?")[0]
        name = path.rsplit("/", 1)[-1]
        if path == "/v1/models":
            self.reply({"object": "list", "data": [{"id": "m", "object": "model"}]})
        elif path.startswith("/api/models/"):
            blob = lambda data: hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            self.reply({"id": "a/b", "sha": COMMIT, "siblings": [
                {"rfilename": n, "size": len(data), "blobId": blob(data)} for n, data in REPO.items()]})
        elif name in REPO:
            start = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
            self.reply(REPO[name] if not start else b"", "application/octet-stream", 200 if not start else 416)
        else:
            self.reply({}, status=404)

    def do_POST(self):
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        except (OSError, ValueError):
            self.close_connection = True
            return
        self.reply(*(self.tool(body) if self.path == "/mcp" else self.answer(body)))

    def tool(self, body):
        results = {"server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
                   "tools/list": {"tools": [{"name": "go", "description": "Goes", "inputSchema": {"type": "object", "properties": {}}}]},
                   "tools/call": {"content": [{"type": "text", "text": "gone"}]}}
        return ({"jsonrpc": "2.0", "id": body.get("id"), "result": {"resultType": "complete", **results.get(body.get("method"), {})}},)

    def answer(self, body):
        last = body["messages"][-1]
        text = last["content"] if isinstance(last["content"], str) else "".join(part.get("text", "") for part in last["content"])
        if "call" in text and last["role"] == "user":
            name = body["tools"][0]["function"]["name"]
            deltas = [{"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}]}]
            reason = "tool_calls"
        else:
            deltas, reason = [{"content": "You "}, {"content": "said: "}, {"content": text}], "stop"
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        lines = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
        lines.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        lines.append({**head, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}})
        return "".join(f"data: {line}\n\n" for line in [*map(json.dumps, lines), "[DONE]"]).encode(), "text/event-stream"


class Strangers(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass


def strangers_begin():
    """The port of a server that is all of them, for as long as this program runs."""
    server = Strangers(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


# ---- scenarios: each leaves nothing behind, and raises Fault or Cut ----

def http_(c, _):
    check(c.json("GET", "/v1/models")["data"], "no model")
    c.json("GET", "/v1/status")
    c.ask("GET", "/metrics")
    c.ask("GET", "/")
    said = c.json("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}]})
    check(said["choices"][0]["message"]["content"] == "You said: hello", said)
    check(said["choices"][0]["finish_reason"] == "stop", said)
    check(c.json("POST", "/tokenize", {"content": "abc"})["tokens"] == [97, 98, 99], "tokens")
    c.ask("POST", "/v1/chat/completions", {"messages": 1}, expect=(400,))
    c.ask("GET", "/nothing", expect=(404,))


def sse(c, _):
    text = c.ask("POST", "/v1/chat/completions", {"stream": True, "messages": [{"role": "user", "content": "!think tell me"}]})
    lines = events(text)
    check(lines and (lines[-1] == "[DONE]" or "error" in json.loads(lines[-1])), f"a stream without an end: {text[-200:]!r}")
    if lines[-1] == "[DONE]":
        content = "".join(choice["delta"].get("content") or "" for line in lines[:-1] for choice in json.loads(line).get("choices", []))
        check(content == "You said: tell me", f"lost text: {text!r}")
    text = c.ask("POST", "/v1/responses", {"stream": True, "input": "hello"})
    last = json.loads(events(text)[-1]) if events(text) else {}
    check(last.get("type") in ("response.completed", "response.failed", "error") or "error" in last, f"a stream without an end: {text[-200:]!r}")
    if last.get("type") == "response.completed":
        check(last["response"]["output"][-1]["content"][0]["text"] == "You said: hello", last)
    else:
        raise Cut("response.failed")


def websocket(c, state):
    state["n"] = state.get("n", 0) + 1
    ws = Socket(c.port)
    try:
        ws.send({"type": "response.create", "input": "hello", "event_id": f"e{state['n']}"})
        while True:
            event = ws.next()
            if event["type"] in ("response.failed", "error"):
                raise Cut(event["type"])
            if event["type"] == "response.completed":
                check(event["response"]["output"][-1]["content"][0]["text"] == "You said: hello", event)
                break
        ws.send({"type": "response.resume", "response_id": event["response"]["id"], "starting_after": -1})
        while ws.next()["type"] not in ("response.completed", "error"):
            pass
    finally:
        ws.link.close()


def upload(c, _):
    data = os.urandom(70000)
    body = (b"--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n"
            b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n" + data + b"\r\n--b--\r\n")
    made = c.json("POST", "/v1/files", body, {"Content-Type": "multipart/form-data; boundary=b"})
    try:
        try:
            check(c.ask("GET", f"/v1/files/{made['id']}/content") == data, "another content")
        except Cut as cut:
            c.ask("GET", f"/v1/files/{made['id']}")  # it is there all the same
            raise cut
        c.json("GET", "/v1/files")
        up = c.json("POST", "/v1/uploads", {"filename": "p.bin", "bytes": 10, "mime_type": "text/plain", "purpose": "user_data"})
        form = b"--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n0123456789\r\n--b--\r\n"
        part = c.json("POST", f"/v1/uploads/{up['id']}/parts", form, {"Content-Type": "multipart/form-data; boundary=b"})
        whole = c.json("POST", f"/v1/uploads/{up['id']}/complete", {"part_ids": [part["id"]]})
        check(c.ask("GET", f"/v1/files/{whole['file']['id']}/content") == b"0123456789", "another content")
        c.json("DELETE", f"/v1/files/{whole['file']['id']}")
    finally:
        c.json("DELETE", f"/v1/files/{made['id']}")


def image(c, _):
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    said = c.json("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": content}]})
    check("look" in said["choices"][0]["message"]["content"], said)


def history(c, state):
    """What was acknowledged is there, letter by letter."""
    n = state["n"] = state.get("n", 0) + 1
    path = f"/v1/history/chats/c{n % 2}"
    kept = state.setdefault(path, {})
    try:
        now = c.json("GET", path, expect=(200,))
        there = {m["id"]: m["text"] for m in now["messages"]}
        revision = now["revision"]
    except Cut as cut:
        if ": 404" not in str(cut):
            raise
        there, revision = {}, 0
    for name, text in kept.items():
        check(there.get(name) == text or name in state.get("open", ()), f"an acknowledged message is lost: {name}")
    name, text = f"m{n}", f"message {n} " + "ä" * (n * 97 % 3000)
    state.setdefault("open", set()).add(name)
    parent = sorted(there, key=lambda i: int(i[1:]))[-1] if there else None
    c.json("PUT", path, {"revision": revision, "messages": [{"id": name, "parent": parent, "role": "user", "text": text}]})
    kept.update(there)
    kept[name] = text
    state["open"].discard(name)
    c.json("GET", "/v1/history/chats")
    c.json("POST", "/v1/history/search", {"query": "message"})
    json.loads(c.ask("GET", "/v1/history/export"))


def switch(c, state):
    state["n"] = state.get("n", 0) + 1
    wanted = "two" if state["n"] % 2 else "one"
    end = time.monotonic() + (PATIENCE if state["n"] > 1 else 0)  # the list is read again now and then
    while True:
        try:
            said = c.json("POST", "/v1/chat/completions", {"model": wanted, "messages": [{"role": "user", "content": "!which"}]})
            break
        except Cut as cut:
            if time.monotonic() > end or "model_" not in str(cut):
                raise
            c.json("GET", "/v1/models")
            time.sleep(0.1)
    check(wanted in said["choices"][0]["message"]["content"], said)


def later(ask):
    """What another server has is learnt a moment after the start, or with the next try."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except Cut:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def upstream(c, _):
    def ask():
        said = c.json("POST", "/v1/chat/completions", {"model": "up/m", "messages": [{"role": "user", "content": "hello"}]})
        check(said["choices"][0]["message"]["content"] == "You said: hello", said)
        return c.ask("POST", "/v1/chat/completions", {"model": "up/m", "stream": True, "messages": [{"role": "user", "content": "hello"}]})
    lines = events(later(ask))
    check(lines and (lines[-1] == "[DONE]" or "error" in json.loads(lines[-1])), f"a stream without an end: {lines}")
    if lines[-1] == "[DONE]":
        text = "".join(choice["delta"].get("content") or "" for line in lines[:-1] for choice in json.loads(line).get("choices", []))
        check(text == "You said: hello", f"lost text: {lines}")


def mcp(c, _):
    def ask():
        tools = [{"type": "mcp", "server_label": "strange", "require_approval": "never"}]
        said = c.json("POST", "/v1/responses", {"model": "up/m", "input": "call it", "tools": tools})
        calls = [item for item in said["output"] if item["type"] == "mcp_call"]
        if said["status"] != "completed" or not calls or calls[0].get("error"):
            raise Cut(f"response {said['status']}: {calls}")
        return said["output"][-1]["content"][0]["text"], calls[0]["output"]
    text, output = later(ask)
    check((text, output) == ("You said: gone", "gone"), f"{text} {output}")
    c.json("GET", "/v1/mcp")


def engine(c, _):
    """A real model: prompts, an image through the confined process, and what is kept between requests."""
    ask = {"messages": [{"role": "user", "content": "one two three four five six seven eight"}], "max_tokens": 4, "temperature": 0}
    first = c.json("POST", "/v1/chat/completions", ask)["choices"][0]["message"]["content"]
    check(c.json("POST", "/v1/chat/completions", ask)["choices"][0]["message"]["content"] == first, "another answer")
    with open(os.path.join(ROOT, "assets/samples/color.png"), "rb") as f:
        url = "data:image/png;base64," + base64.b64encode(f.read()).decode()
    c.json("POST", "/v1/chat/completions", {"max_tokens": 2, "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "what?"}]}]})
    with open(os.path.join(ROOT, "assets/samples/ball-moves.mp4"), "rb") as f:
        url = "data:video/mp4;base64," + base64.b64encode(f.read()).decode()
    c.json("POST", "/v1/chat/completions", {"max_tokens": 2, "messages": [{"role": "user", "content": [
        {"type": "video_url", "video_url": {"url": url}, "max_frames": 2}, {"type": "text", "text": "what?"}]}]})


# name: (program, arguments, session); {dir} is a folder of the run. In the sandbox the layer could not write what it saw.
SERVERS = {
    "http": ("parley_fake", [], http_),
    "sse": ("parley_fake", [], sse),
    "websocket": ("parley_fake", [], websocket),
    "upload": ("parley_fake", ["--upload-dir", "{dir}"], upload),
    "image": ("parley_fake", [], image),
    "history": ("parley_fake", ["--history", "{dir}/history"], history),
    "switch": ("parley_fake", ["--models-dir", "{dir}/models", "--model", "{dir}/models/one", "--model-switch", "on"], switch),
    "upstream": ("parley", ["serve", "--port", "0", "--no-sandbox", "--upstream", "up=http://127.0.0.1:{strangers}"], upstream),
    "mcp": ("parley", ["serve", "--port", "0", "--no-sandbox", "--upstream", "up=http://127.0.0.1:{strangers}", "--mcp-config", "{dir}/mcp.json"], mcp),
    "engine": ("parley", ["serve", "--no-sandbox", "-m", TINY, "--port", "0", "--threads", "1", "--parallel", "1", "--cache-disk", "{dir}/cache",
                          *TEMPLATE], engine),
}


def pulled(run):
    """What stands under its final name is whole, and the next try brings all of it."""
    done = subprocess.run([os.path.join(run.build, "parley"), *run.words(COMMANDS["pull"][0])],
                          env={k: v for k, v in run.env.items() if k != "LD_PRELOAD"}, timeout=120, stdin=subprocess.DEVNULL, capture_output=True)
    check(done.returncode == 0, f"the next try fails: {done.stderr[-300:]!r}")
    for name, data in REPO.items():
        path = os.path.join(run.dir, "hub", "models--a--b", "snapshots", COMMIT, name)
        check(os.path.exists(path) and open(path, "rb").read() == data, f"{name} is not there, or not what it was")


# name: (arguments, what a good run says, what to look at behind it)
COMMANDS = {
    "pull": (["pull", "a/b"], None, pulled),
    "load": (["run", "-m", TINY, "-n", "2", "--threads", "1", *TEMPLATE, "hi"], None, None),
    "inspect": (["inspect", "-m", TINY], r"(?s)\S", None),
    "options": (["serve", "--print-config", "--port", "1234"], r"port", None),
    "help": (["serve", "--help"], r"--port", None),
    "config": (["serve", "--config", "{dir}/parley.conf", "--print-config"], r"4321", None),
    "convert": (["convert", TINY, "{dir}/out", "--quantize", "q8"], None, None),
}


class Run:
    """One start of a program."""
    strangers = 0  # their port

    def __init__(self, build, name, kind, at):
        self.name, self.kind, self.at = name, kind, at
        self.dir = tempfile.mkdtemp(prefix="parley-torture-")
        self.sites, self.count = os.path.join(self.dir, "sites"), os.path.join(self.dir, "count")
        for model in ("one", "two"):
            os.makedirs(os.path.join(self.dir, "models", model))
            for file in ("config.json", "model.safetensors", "tokenizer.json"):
                os.symlink(os.path.join(TINY, file), os.path.join(self.dir, "models", model, file))
        with open(os.path.join(self.dir, "parley.conf"), "w") as f:
            f.write("port = 4321\n")
        with open(os.path.join(self.dir, "mcp.json"), "w") as f:
            json.dump({"mcpServers": {"strange": {"url": f"http://127.0.0.1:{Run.strangers}/mcp", "approval": "never"}}}, f)
        self.env = {**os.environ, "PARLEY_CONFIG": "none", "HF_ENDPOINT": f"http://127.0.0.1:{Run.strangers}",
                    "HF_HUB_CACHE": os.path.join(self.dir, "hub"), "HOME": self.dir, "TMPDIR": self.dir, "MALLOC_CHECK_": "3",
                    "OPENBLAS_NUM_THREADS": "1", "TORTURE_FAIL": f"{kind}:{at}", "TORTURE_LOG": self.sites,
                    "TORTURE_COUNT": self.count, "LD_PRELOAD": os.path.join(build, "torture_shim.so")}
        if kind != "mem":
            self.env["TORTURE_ALL"] = "1"  # of libraries too; what they do without memory is their own matter
        self.build = build

    def words(self, args):
        return [a.replace("{dir}", self.dir).replace("{strangers}", str(Run.strangers)) for a in args]

    def command(self):
        args, said, look = COMMANDS[self.name]
        done = subprocess.run([os.path.join(self.build, "parley"), *self.words(args)], env=self.env, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode < 0:
            raise Fault(f"ended by signal {-done.returncode}: {done.stderr[-300:]!r}")
        if done.returncode and not done.stderr.strip():
            raise Fault(f"exit code {done.returncode} without a word")
        if done.returncode and self.at == 0:
            raise Fault(f"exit code {done.returncode}: {done.stderr[-300:]!r}")
        if done.returncode == 0 and said and not re.search(said, done.stdout.decode()):
            raise Fault(f"exit code 0, and not the right answer: {done.stdout[-300:]!r}")
        if look:
            look(self)

    def start(self):
        program, args, _ = SERVERS[self.name]
        self.err = open(os.path.join(self.dir, "err"), "w+")
        self.child = subprocess.Popen([os.path.join(self.build, program), *self.words(args)], env=self.env,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.err)
        os.set_blocking(self.child.stdout.fileno(), False)
        said, end = "", time.monotonic() + 3 * PATIENCE
        while time.monotonic() < end:
            said += (self.child.stdout.read() or b"").decode()
            port = re.search(r"^(?:port |Parley is ready: http://[^/]*:)(\d+)", said, re.M)
            if port:
                return Client(int(port[1]))
            if self.child.poll() is not None:
                return None
            time.sleep(0.002)
        raise Fault("it neither starts nor ends")

    def errors(self):
        self.err.seek(0)
        return self.err.read()

    def has_failed(self):
        return os.path.exists(self.sites)

    def ready(self, c):
        end = time.monotonic() + 3 * PATIENCE
        while time.monotonic() < end:
            try:
                c.ask("GET", "/health")
                return True
            except Cut:
                if self.child.poll() is not None:
                    return False
                time.sleep(0.005)
        raise Fault("it does not become ready")

    def sessions(self, c):
        """Once as it comes; then, as no more calls fail, right from beginning to end."""
        session, state = SERVERS[self.name][2], {}
        for last in (False, True):
            before = self.has_failed()
            try:
                session(c, state)
            except Cut as cut:
                if self.child.poll() is not None:
                    return
                if not self.has_failed() or (last and before):
                    raise Fault(f"an error where none belongs: {cut}")
        end = time.monotonic() + PATIENCE
        while True:
            try:
                status = c.json("GET", "/v1/status")
            except Cut as cut:
                if self.child.poll() is not None:
                    return
                if time.monotonic() > end:
                    raise Fault(str(cut))
                continue
            if status["queue"]["running"] == 0 and status["memory"]["request_bytes"] == 0:
                return
            if time.monotonic() > end:
                raise Fault(f"left behind: {json.dumps(status['queue'])} {status['memory']['request_bytes']} bytes")
            time.sleep(0.02)

    def server(self):
        self.child = None
        try:
            c = self.start()
            if c and self.ready(c):
                self.sessions(c)
            if self.child.poll() is None:
                self.child.send_signal(signal.SIGTERM)
            try:
                code = self.child.wait(2 * PATIENCE)
            except subprocess.TimeoutExpired:
                raise Fault("it does not end")
            text = self.errors()
            if code < 0 or re.search(r"Sanitizer|runtime error|(malloc|free)\(\)|corrupted |or corruption", text):
                raise Fault(f"exit code {code}: {text[-400:]}")
            if code and not (self.has_failed() and text.strip()):
                raise Fault(f"exit code {code} without a reason: {text[-400:]}")
        finally:
            if self.child and self.child.poll() is None:
                self.child.kill()
                self.child.wait()

    def go(self):
        """What went wrong, or None; the number of calls, the site."""
        fault = None
        try:
            self.server() if self.name in SERVERS else self.command()
        except (Fault, subprocess.TimeoutExpired) as error:
            fault = str(error)
        read = lambda path: open(path).read().strip() if os.path.exists(path) else ""
        n_calls = read(self.count).split("\n")[-1]
        if self.at == 0 and not n_calls:
            fault = fault or "the layer under it says nothing: no call would fail"
        result = fault, int(n_calls or 0), read(self.sites)
        shutil.rmtree(self.dir, ignore_errors=True)
        return result


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("--all", action="store_true")
    options.add_argument("--points", type=int, default=40)
    options.add_argument("--only")
    options.add_argument("--kind")
    options.add_argument("--at", type=int)
    options.add_argument("--jobs", type=int, default=4, help="runs at a time; they wait most of theirs")
    options.add_argument("--seed", default=datetime.date.today().isoformat())
    o = options.parse_args()
    build = os.path.abspath(o.build)
    for name in ("parley", "parley_fake", "torture_shim.so"):  # a library that is missing is not preloaded, and nothing fails
        if not os.path.exists(os.path.join(build, name)):
            sys.exit(f"torture: {build}/{name} is not there")
    Run.strangers = strangers_begin()
    chance = random.Random(o.seed)
    names = o.only.split(",") if o.only else [*SERVERS, *COMMANDS]
    kinds = o.kind.split(",") if o.kind else KINDS
    points, sites, n_faults = [], set(), 0
    if o.at:
        points = [(names[0], kinds[0], o.at)]
    else:
        if not o.all:  # counting every kind of every scenario would take longer than the sample
            cells = [(n, k) for n in names for k in kinds]
            chance.shuffle(cells)
            cells = cells[:max(1, o.points // 4)]
        else:
            cells = [(n, k) for n in names for k in kinds]
        for name, kind in cells:
            fault, n_calls, _ = Run(build, name, kind, 0).go()
            if fault:
                print(f"FAULT {name} without a failing call: {fault}")
                n_faults += 1
            wanted = range(1, n_calls + 1)
            points += [(name, kind, at) for at in (wanted if o.all else chance.sample(wanted, min(4, n_calls)))]
    run = lambda point: (point, Run(build, *point).go())
    for i, ((name, kind, at), (fault, _, site)) in enumerate(ThreadPoolExecutor(o.jobs).map(run, points)):
        sites.update(filter(None, site.split("\n")))
        if fault:
            n_faults += 1
            print(f"FAULT {name} {kind}:{at} at {site}: {fault}\n"
                  f"      torture.py {o.build} --only {name} --kind {kind} --at {at}", flush=True)
        if sys.stderr.isatty() or (i + 1) % 200 == 0:
            print(f"{i + 1} of {len(points)}: {len(sites)} sites, {n_faults} faults", file=sys.stderr)
    print(f"torture: {len(points)} calls failed, {len(sites)} distinct sites, {n_faults} faults (seed {o.seed})")
    return 1 if n_faults or not points else 0


if __name__ == "__main__":
    sys.exit(main())
