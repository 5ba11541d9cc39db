"""harness.py - for tests: the real program on loopback, and HTTP spoken to it politely (call, stream) or not (Raw).

Standard library only. Each test file is one process that ends 0, 1, or 77 when all of it was skipped.
"""
import concurrent.futures
import http.client
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("INGOT_PROGRAM", os.path.join(ROOT, "build", "ingot"))
NUGGET = os.path.join(ROOT, "models", "nugget")
GOLDEN = os.path.join(ROOT, "tests", "golden", "openai")
SLOW = float(os.environ.get("INGOT_TEST_SLOW", "1"))  # sanitized builds take longer
VERY_SLOW = SLOW > 4  # the thread sanitizer's: a token takes long enough there without plain C, and fewer do
PATIENCE = 120 * SLOW
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def rows(name):
    with open(os.path.join(GOLDEN, name), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Reply:
    """A whole answer: status, headers (lower-case names), body, and the JSON in it."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Event:
    """One server-sent event, or a comment (name None, data None)."""

    def __init__(self, text, at):
        lines = text.split("\n")
        self.at = at
        self.comment = lines[0][1:].strip() if lines[0].startswith(":") else None
        self.name = next((line[7:] for line in lines if line.startswith("event: ")), None)
        data = [line[6:] for line in lines if line.startswith("data: ")]
        self.data = "\n".join(data) if data else None

    @property
    def json(self):
        return json.loads(self.data)


class Server:
    """`ingot serve` on a free port; `with Server(...) as s`. files: its limits of open ones, soft and hard."""

    def __init__(self, *options, env=None, drafter=True, wait=True, context=4096, files=None):
        usual = {"--king": f"{NUGGET}/king", "--port": "0", "--threads": "1", "--context": str(context)}
        # most tests look at events; what fills a silence, which is a slow machine's, has its own
        usual["--keep-alive"] = "60"
        command = [PROGRAM, "serve", "--quiet"]
        command += ["--drafter", f"{NUGGET}/drafter-q8"] if drafter else ["--no-drafter"]
        command += [word for name, value in usual.items() if name not in options for word in (name, value)]
        command += options
        environment = {k: v for k, v in os.environ.items() if k != "INGOT_API_KEY"}
        # Freed memory that a sanitizer keeps for a while would look like a leak.
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
        self.log = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**environment, **(env or {})},
                                        preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, files)))
        line = self.process.stdout.readline()
        if not line.startswith("listening on http://"):
            with self.process as p:
                raise RuntimeError(f"no address: {line!r} {p.stderr.read()}")
        self.host, port = line.strip()[len("listening on http://"):].rsplit(":", 1)
        self.port = int(port)
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()
        if wait:
            self.wait_ready()

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    def wait_ready(self):
        end = time.monotonic() + PATIENCE
        while self.get("/health").status != 200:
            if time.monotonic() > end:
                raise RuntimeError("not ready")
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, number=signal.SIGTERM):
        """Ends the process and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def call(self, method, path, body=None, headers=None, raw=None):
        c = self.connect()
        try:
            data = raw.encode() if isinstance(raw, str) else raw
            if raw is None and body is not None:
                data = json.dumps(body).encode()
            head = {"Content-Type": "application/json", **(headers or {})}
            c.request(method, path, data if data is not None or method == "GET" else b"", head)
            r = c.getresponse()
            return Reply(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
        finally:
            c.close()

    def get(self, path, headers=None):
        return self.call("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        return self.call("POST", path, body, headers)

    def chat(self, text="Say hi", **fields):
        body = {"model": "nugget", "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 32}
        return self.post(CHAT, {**body, **fields})

    def stream(self, path, body, headers=None):
        """The events of a stream as they come."""
        c = self.connect()
        try:
            c.request("POST", path, json.dumps({**body, "stream": True}), {"Content-Type": "application/json", **(headers or {})})
            r = c.getresponse()
            if r.status != 200:
                raise RuntimeError(f"{r.status} {r.read()}")
            self.content_type = r.getheader("content-type")
            yield from events(r)
        finally:
            c.close()

    def chat_stream(self, text="Say hi", **fields):
        body = {"model": "nugget", "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 32}
        return self.stream(CHAT, {**body, **fields})

    def metric(self, name):
        """The sum of a metric's samples whose name and labels begin with `name`."""
        total = 0.0
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith(name) and (line[len(name)] in " {" or name.endswith("}")):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def until(self, test, seconds=30):
        """Waits until test() holds; its last value."""
        end = time.monotonic() + seconds * SLOW
        while not (value := test()) and time.monotonic() < end:
            time.sleep(0.05)
        return value

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def events(response):
    """Server-sent events of an http.client response; an unfinished one is an error."""
    pending = b""
    while True:
        piece = response.read1(65536)
        if not piece:
            break
        pending += piece
        while b"\n\n" in pending:
            text, pending = pending.split(b"\n\n", 1)
            yield Event(text.decode("utf-8"), time.monotonic())
    if pending:
        raise RuntimeError(f"cut event: {pending!r}")


class Joined:
    """What a client makes of a chat or completion stream."""

    def __init__(self, stream):
        self.chunks, self.comments, self.done, self.error = [], [], False, None
        self.content = self.reasoning = ""
        self.calls, self.finish, self.usage, self.timings, self.logprobs = [], None, None, None, []
        for e in stream:
            if e.comment is not None:
                self.comments.append(e.comment)
            elif e.data == "[DONE]":
                self.done = True
            else:
                assert not self.done, "an event after [DONE]"
                self._take(e.json)

    def _take(self, chunk):
        if "error" in chunk:
            self.error = chunk["error"]
            return
        self.chunks.append(chunk)
        self.usage = chunk.get("usage") or self.usage
        self.timings = chunk.get("timings") or self.timings
        for choice in chunk["choices"]:
            delta = choice.get("delta", {"content": choice.get("text")})
            self.content += delta.get("content") or ""
            self.reasoning += delta.get("reasoning_content") or ""
            for piece in delta.get("tool_calls", []):
                if piece["index"] == len(self.calls):
                    self.calls.append({"id": piece["id"], "name": piece["function"]["name"], "arguments": ""})
                self.calls[piece["index"]]["arguments"] += piece["function"].get("arguments", "")
            if choice.get("logprobs") and "content" in choice["logprobs"]:
                self.logprobs += choice["logprobs"]["content"]
            self.finish = choice["finish_reason"] or self.finish


class Raw:
    """A socket whose bytes the test chooses."""

    def __init__(self, server, timeout=20):
        self.socket = socket.create_connection((server.host, server.port), timeout=timeout * SLOW)
        self.pending = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)
        except OSError:
            pass  # the server may close as soon as it has seen enough

    def post(self, path, body, *headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}", *headers]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    def _more(self):
        data = self.socket.recv(65536)
        self.pending += data
        return data

    def reply(self, bare=False):
        """The next answer; None when the connection closed first. bare: it answers HEAD, and has no body."""
        while b"\r\n\r\n" not in self.pending:
            if not self._more():
                return None
        head, self.pending = self.pending.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        if bare or status in (100, 204):
            return Reply(status, headers, b"")
        if "chunked" in headers.get("transfer-encoding", ""):
            while b"\r\n0\r\n\r\n" not in b"\r\n" + self.pending:
                if not self._more():
                    break
            body, _, self.pending = self.pending.partition(b"0\r\n\r\n")
            return Reply(status, headers, body)
        length = int(headers.get("content-length", 0))
        while len(self.pending) < length:
            if not self._more():
                return None
        body, self.pending = self.pending[:length], self.pending[length:]
        return Reply(status, headers, body)

    def closed(self):
        """True when the server closes the connection."""
        try:
            while self._more():
                pass
            return True
        except ConnectionError:
            return True
        except TimeoutError:
            return False


class Case(unittest.TestCase):
    """Tests that share one server, started with OPTIONS."""

    OPTIONS = ()
    server = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.OPTIONS)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        if status != 0:
            raise AssertionError(f"the server ended with {status}: {''.join(cls.server.log[-30:])}")

    def error(self, reply, status, param=None, code=None, kind=None):
        self.assertEqual(reply.status, status, reply.body[:400])
        self.assertEqual(reply.headers["content-type"], "application/json")
        e = reply.json["error"]
        self.assertEqual(set(e) - {"n_prompt_tokens", "n_ctx"}, {"message", "type", "param", "code"})
        self.assertTrue(e["message"])
        if param is not None:
            self.assertEqual(e["param"], param, e)
        if code is not None:
            self.assertEqual(e["code"], code, e)
        if kind is not None:
            self.assertEqual(e["type"], kind, e)
        return e

    def alive(self):
        self.assertEqual(self.server.get("/health").status, 200)


def run_classes(names):
    """Each class in a process of its own, as they mostly wait; the worst of their exit statuses."""
    def run(name):
        return subprocess.run([sys.executable, "-B", sys.argv[0], name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with concurrent.futures.ThreadPoolExecutor(max(3, os.cpu_count() or 1)) as pool:
        done = list(pool.map(run, names))
    print("".join(d.stdout for d in done), end="")
    statuses = {d.returncode for d in done}
    return 77 if statuses == {77} else 0 if statuses <= {0, 77} else 1


def main():
    if not os.path.exists(PROGRAM):
        print(f"skipped: {PROGRAM}: not built")
        sys.exit(77)
    names = [name for name, c in vars(sys.modules["__main__"]).items() if isinstance(c, type) and issubclass(c, unittest.TestCase)]
    if len(sys.argv) == 1 and len(names) > 1:
        sys.exit(run_classes(names))
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.testsRun == len(result.skipped) else 0)
