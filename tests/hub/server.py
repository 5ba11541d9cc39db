#!/usr/bin/env python3
"""A model hub for tests, on loopback only. Prints its two ports; runs until stdin ends.

The repositories are made up here: owner/name where the owner is the server's manner:
  good    does everything right; files above 1 KiB are "LFS" and lie behind a redirect to the other port
  cut     closes the connection after a random part of each answer
  slow    sends little at a time
  busy    answers 429 with Retry-After: 0, every other time
  later   answers 429 with Retry-After: 1 at the other port, every other time
  whole   answers ranges with 200 and the whole file
  less    answers every range with 416
  short   says and sends fewer bytes than the list says
  long    sends more bytes than asked for
  wrong   sends other bytes of the right length
  gone    404; gated 403; private 401
  moved   redirects relatively to the repository "good"
  liar    a list with a path that leads out of the folder
The other port ("CDN") refuses requests that carry a token; /log on the first gives what was asked, one line each.
"""
import functools, hashlib, http.server, json, os, random, sys, threading, time, urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROOT = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else None
BIG = random.Random(7).randbytes(int(sys.argv[2]) if len(sys.argv) > 2 else 3 << 20)
log, lock, chance = [], threading.Lock(), random.Random(11)
asked = {}


def files(name):
    if ROOT:
        return {f: open(os.path.join(ROOT, f), "rb").read() for f in sorted(os.listdir(ROOT))
                if os.path.isfile(os.path.join(ROOT, f))}
    if name == "deep":
        return {"config.json": b"{}", "a/b/c.json": b"[1]", "model.safetensors": BIG}
    if name == "drafter":
        return {"model.safetensors": BIG}
    if name == "sharded":
        index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
        return {"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors.index.json": json.dumps(index).encode(),
                "model-00001-of-00002.safetensors": BIG[: len(BIG) // 2],
                "model-00002-of-00002.safetensors": BIG[len(BIG) // 2:]}
    return {"config.json": b'{"model_type": "qwen3_5"}', "tokenizer.json": b"{}", "empty.json": b"", "README.md": b"hello",
            "runtime/run.py": b"print()", "model.gguf": b"GGUF", "model.safetensors": BIG}


def is_lfs(path, data):
    return len(data) > 1024 and path.endswith(".safetensors")


@functools.cache
def oid(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@functools.cache
def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cdn = None  # address of the other port; None on that port itself

    def log_message(self, *a):
        pass

    def reply(self, code, body=b"", headers=()):
        self.send_response(code)
        for k, v in headers:
            self.send_header(k, v)
        if not any(k.lower() == "content-length" for k, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, code, error):
        self.reply(code, b"{}", [("X-Error-Code", error), ("X-Error-Message", error)])

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        parts = urllib.parse.unquote(url.path).strip("/").split("/")
        token = self.headers.get("Authorization", "-")
        with lock:
            if parts[0] != "log":
                log.append(f"{self.server.server_port} {self.command} {self.path} {token} {self.headers.get('Range', '-')}")
        try:
            if parts[0] == "log":
                return self.reply(200, "\n".join(log).encode())
            if parts[:2] == ["api", "models"]:
                return self.api(parts[2], parts[3], parts[4:], url.query)
            if self.cdn is None and token != "-":
                return self.reply(400, b"a token came to the CDN")
            owner, name, _, rev = parts[:4]
            return self.resolve(owner, name, "/".join(parts[4:]))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def api(self, owner, name, rest, query):
        refusals = {"gone": (404, "RepoNotFound"), "gated": (403, "GatedRepo"), "private": (401, "RepoNotFound")}
        if owner in refusals:
            return self.refuse(*refusals[owner])
        if rest[0] == "revision":
            if rest[1] not in ("main", "refs", COMMIT):
                return self.refuse(404, "RevisionNotFound")
            return self.reply(200, json.dumps({"sha": COMMIT}).encode())
        if self.busy(owner):
            return None
        entries = [{"type": "directory", "path": "runtime", "oid": "0" * 40, "size": 0}]
        for path, data in files(name).items():
            entry = {"type": "file", "path": path, "size": len(data), "oid": oid(data)}
            if is_lfs(path, data):
                entry["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 130}
            entries.append(entry)
        if owner == "liar":
            entries.append({"type": "file", "path": "../../escape.json", "size": 1, "oid": oid(b"x")})
        page = 1 if "cursor=1" in query else 0
        half = len(entries) // 2
        more = [("Link", f'<http://127.0.0.1:{self.server.server_port}{self.path}&cursor=1>; rel="next"')] if page == 0 else []
        return self.reply(200, json.dumps(entries[half:] if page else entries[:half]).encode(), more)

    def busy(self, owner):
        if owner != "busy" and not (owner == "later" and self.cdn is None):
            return False
        with lock:
            key = (self.server.server_port, self.path)
            asked[key] = asked.get(key, 0) + 1
            if asked[key] % 2 == 0:
                return False
        self.reply(429, b"", [("Retry-After", "1" if owner == "later" else "0")])
        return True

    def resolve(self, owner, name, path):
        if owner == "moved" and self.cdn:
            return self.reply(307, b"", [("Location", self.path.replace("/moved/", "/good/"))])
        if self.busy(owner):
            return None
        data = files(name).get(path)
        if data is None:
            return self.refuse(404, "EntryNotFound")
        etag = sha256(data) if is_lfs(path, data) else oid(data)
        if is_lfs(path, data) and self.cdn:
            return self.reply(302, b"", [("Location", self.cdn + self.path), ("X-Repo-Commit", COMMIT),
                                         ("X-Linked-Etag", f'"{etag}"'), ("X-Linked-Size", str(len(data)))])
        heads = [("X-Repo-Commit", COMMIT), ("ETag", f'"{etag}"')] if self.cdn else [("ETag", '"of-the-cdn"')]
        if is_lfs(path, data):
            if owner == "wrong":
                data = data.translate(bytes(255 - i for i in range(256)))
            if owner == "short":
                data = data[:-5]
        return self.send_data(owner if is_lfs(path, data) else "good", data, heads)

    def send_data(self, owner, data, heads):
        asked_range, code, start, total = self.headers.get("Range"), 200, 0, len(data)
        if asked_range and owner not in ("whole",):
            first, last = asked_range.removeprefix("bytes=").split("-")
            start, end = int(first), min(int(last) if last else total - 1, total - 1)
            if owner == "less" or start >= total:
                return self.reply(416, b"", [("Content-Range", f"bytes */{total}")])
            data, code = data[start:end + 1], 206
            heads = heads + [("Content-Range", f"bytes {start}-{end}/{total}")]
            if owner == "long":
                data += b"surplus"
        self.send_response(code)
        for k, v in heads:
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return None
        if owner == "cut" and len(data) > 1000:
            with lock:
                n = chance.randrange(len(data))
            self.wfile.write(data[:n])
            self.wfile.flush()
            self.close_connection = True
            return None
        step = 16 << 10 if owner == "slow" else len(data) or 1
        for at in range(0, len(data), step):
            self.wfile.write(data[at:at + step])
            if owner == "slow":
                self.wfile.flush()
                time.sleep(0.002)
        return None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


second = Server(("127.0.0.1", 0), type("Cdn", (Handler,), {}))
first = Server(("127.0.0.1", 0), type("Hub", (Handler,), {"cdn": f"http://127.0.0.1:{second.server_port}"}))
for s in (first, second):
    threading.Thread(target=s.serve_forever, daemon=True).start()
print(first.server_port, second.server_port, flush=True)
sys.stdin.read()
