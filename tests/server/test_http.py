"""test_http.py - framing: what a rude, slow or clever client may send, and what it gets."""
import json
import os
import random
import signal
import tempfile
import threading
import time
import unittest

import harness

BODY = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2, "temperature": 0}
BAD = {"messages": "no", "padding": "x" * 20000}
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"


class Framing(harness.Case):
    OPTIONS = ("--max-body", "1M")

    def tearDown(self):
        self.alive()

    def one(self, data):
        """The status of the answer to raw bytes; the connection is closed by the server after a refusal."""
        with harness.Raw(self.server) as s:
            s.send(data)
            r = s.reply()
            return r.status if r else None

    def test_R016_refused_then_good_on_one_connection(self):
        with harness.Raw(self.server) as s:
            s.post(harness.CHAT, BAD)
            s.post(harness.CHAT, BODY)
            self.error(s.reply(), 400, "messages")
            self.assertEqual(s.reply().json["object"], "chat.completion")

    def test_pipelined_answers_keep_their_order(self):
        with harness.Raw(self.server) as s:
            for _ in range(20):
                s.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                s.post(harness.CHAT, BODY)
            for _ in range(20):
                self.assertEqual(s.reply().json, {"status": "ok"})
                self.assertEqual(s.reply().json["object"], "chat.completion")

    def test_pipelined_behind_a_stream(self):
        with harness.Raw(self.server) as s:
            s.post(harness.CHAT, {**BODY, "stream": True})
            s.send("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"[DONE]", s.reply().body)
            self.assertEqual(s.reply().json, {"status": "ok"})

    def test_chunked_body(self):
        data = json.dumps(BODY).encode()
        with harness.Raw(self.server) as s:
            s.send(HEAD + "Transfer-Encoding: chunked\r\n\r\n")
            for i in range(0, len(data), 7):
                piece = data[i:i + 7]
                s.send(b"%x;ext=1\r\n%s\r\n" % (len(piece), piece))
            s.send("0\r\nTrailer: x\r\n\r\n")
            self.assertEqual(s.reply().status, 200)
            s.post(harness.CHAT, BODY)
            self.assertEqual(s.reply().status, 200)

    def test_bytes_one_by_one(self):
        data = json.dumps(BODY)
        with harness.Raw(self.server) as s:
            for ch in HEAD + f"Content-Length: {len(data)}\r\n\r\n" + data:
                s.send(ch)
            self.assertEqual(s.reply().status, 200)

    def test_expect_100_continue(self):
        data = json.dumps(BODY)
        with harness.Raw(self.server) as s:
            s.send(HEAD + f"Expect: 100-continue\r\nContent-Length: {len(data)}\r\n\r\n")
            self.assertEqual(s.reply().status, 100)
            s.send(data)
            self.assertEqual(s.reply().status, 200)
        self.assertEqual(self.one(HEAD + "Expect: tea\r\nContent-Length: 2\r\n\r\n{}"), 417)

    def test_close_may_stand_among_others(self):
        with harness.Raw(self.server) as s:
            s.send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: TE, close\r\n\r\n")
            self.assertEqual(s.reply().headers["connection"], "close")
            self.assertTrue(s.closed())

    def test_line_ends_of_both_kinds(self):
        for head in ("GET /live HTTP/1.1\nHost: localhost\n\n", "GET /live HTTP/1.1\nHost: localhost\n\r\n",
                     "GET /live HTTP/1.1\r\nHost: localhost\r\n\n"):
            self.assertEqual(self.one(head), 200, repr(head))

    def test_a_refused_frame_is_answered_like_others(self):
        for path, lines, status, kind in (("/v1/messages", f"Content-Length: {1 << 21}\r\n", 413, "request_too_large"),
                                          ("/v1/messages", "", 411, "invalid_request_error"),
                                          (harness.CHAT, f"Content-Length: {1 << 21}\r\n", 413, "invalid_request_error")):
            with harness.Raw(self.server) as s:
                s.send(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:1\r\n{lines}\r\n")
                r = s.reply()
                self.assertEqual((r.status, r.json["error"]["type"]), (status, kind))
                self.assertEqual(r.json.get("type"), "error" if path == "/v1/messages" else None)
                self.assertEqual(r.headers["access-control-allow-origin"], "http://localhost:1")
                self.assertRegex(r.headers["x-request-id"], "^req_")
                self.assertTrue(s.closed())

    def test_http10_closes(self):
        with harness.Raw(self.server) as s:
            s.send("GET /health HTTP/1.0\r\n\r\n")
            self.assertEqual(s.reply().status, 200)
            self.assertTrue(s.closed())

    def test_head_has_no_body(self):
        with harness.Raw(self.server) as s:
            s.send("HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            s.send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertTrue(s.closed())
            self.assertEqual(s.pending.count(b"HTTP/1.1 200 OK"), 2)
            self.assertEqual(s.pending.count(b'{"status":"ok"}'), 1)

    def test_lengths(self):
        self.assertEqual(self.one(HEAD + "\r\n"), 411)
        self.assertEqual(self.one(HEAD + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "), 400)
        self.assertEqual(self.one(HEAD + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}"), 400)  # body {}: no messages
        self.assertEqual(self.one(HEAD + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400)
        for bad in ("-1", "+2", "2x", "", "0x2", "99999999999999999999", "1,1"):
            self.assertEqual(self.one(HEAD + f"Content-Length: {bad}\r\n\r\n{{}}"), 400, bad)

    def test_a_body_too_large_is_told_the_limit(self):
        for wire in (f"Content-Length: {1 << 21}\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n200000\r\n",
                     "Transfer-Encoding: chunked\r\n\r\nfffff\r\n" + "x" * 0xfffff + "\r\n2\r\nxx"):
            with harness.Raw(self.server) as s:
                s.send(HEAD + wire)
                e = self.error(s.reply(), 413)
            self.assertEqual(e["message"], "body: too large, want at most 1048576 bytes (--max-body)")

    def test_a_body_of_the_limit_is_read_and_the_next_has_the_same_limit(self):
        body = json.dumps({"messages": "no", "padding": "x"}).replace("x", "x" * ((1 << 20) - 33))
        self.assertEqual(len(body), 1 << 20)
        with harness.Raw(self.server) as s:
            for wire in (f"Content-Length: {1 << 20}\r\n\r\n{body}", f"Transfer-Encoding: chunked\r\n\r\n100000\r\n{body}\r\n0\r\n\r\n"):
                s.send(HEAD + wire)
                self.error(s.reply(), 400, "messages")
            s.send(HEAD + "Transfer-Encoding: chunked\r\n\r\n80000\r\n" + "x" * 0x80000 + "\r\n80000\r\n" + "x" * 0x80000 + "\r\n1\r\nx")
            self.error(s.reply(), 413)

    def test_oversize(self):
        self.assertEqual(self.one(HEAD + f"Content-Length: {1 << 21}\r\n\r\n"), 413)
        self.assertEqual(self.one(HEAD + "Content-Length: 9223372036854775807\r\n\r\n"), 413)
        with harness.Raw(self.server) as s:
            s.send(HEAD + "Transfer-Encoding: chunked\r\n\r\n")
            for _ in range(40):
                s.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
            r = s.reply()
            self.assertTrue(r is None or r.status == 413)
        self.assertEqual(self.one("GET /" + "a" * 70000 + " HTTP/1.1\r\n"), 431)
        self.assertEqual(self.one("GET / HTTP/1.1\r\nHost: localhost\r\n" + "A: b\r\n" * 200 + "\r\n"), 431)

    def test_chunks_malformed(self):
        for bad in ("x\r\n", "-1\r\n", "\r\n", "1g\r\n", "11111111111111111\r\n", "2\r\nabcd\r\n", "1" * 2000):
            self.assertIn(self.one(HEAD + "Transfer-Encoding: chunked\r\n\r\n" + bad), (400, 413), bad)
        self.assertEqual(self.one(HEAD + "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501)

    def test_heads_malformed(self):
        for bad in ("GET\r\n\r\n", "GET /\r\n\r\n", " / HTTP/1.1\r\n\r\n", "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
                    "G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
                    "GET / HTTP/1.1\r\nHo st: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\0\r\n\r\n"):
            self.assertEqual(self.one(bad), 400, repr(bad))
        self.assertEqual(self.one("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505)

    def test_bodies_malformed(self):
        for bad in (b"", b"{", b"\xff\xfe", b'{"messages":[{"role":"user","content":"\xc3\x28"}]}', b"\0" * 100, b"[" * 100000,
                    b'{"a":' * 50000, b'"', b"nul", b'{"messages": NaN}', b'{"max_tokens": 1e999, "messages": []}'):
            r = self.server.call("POST", harness.CHAT, raw=bad)
            self.error(r, 400)

    def test_errors_quote_what_they_name(self):
        r = self.server.chat(block='a"\n\\\u00e9' + "x" * 5000)
        self.assertIn('a"\n\\\u00e9', self.error(r, 400, "block")["message"])

    def test_garbage_never_stops_the_server(self):
        chance = random.Random(7)
        good = (HEAD + f"Content-Length: {len(json.dumps(BODY))}\r\n\r\n" + json.dumps(BODY)).encode()
        for i in range(150):
            data = bytearray(good if i % 3 else bytes(chance.randrange(256) for _ in range(200)))
            for _ in range(chance.randrange(1, 12)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            with harness.Raw(self.server, timeout=5) as s:
                s.send(bytes(data[:chance.randrange(1, len(data) + 1)]))
                if i % 25 == 0:
                    self.alive()
        self.alive()

    def test_absolute_target_and_query(self):
        self.assertEqual(self.one("GET http://localhost/health?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200)
        self.assertEqual(self.one("GET /../health HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404)

    def test_many_connections_come_back(self):
        before = self.server.descriptors()
        sockets = [harness.Raw(self.server) for _ in range(200)]
        for s in sockets:
            s.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertTrue(all(s.reply().status == 200 for s in sockets))
        for s in sockets:
            s.close()
        self.assertTrue(self.server.until(lambda: self.server.descriptors() <= before + 1))


class Descriptors(unittest.TestCase):
    def answered(self, server, n):
        """How many of n connections at once get an answer."""
        sockets = [harness.Raw(server) for _ in range(n)]
        for s in sockets:
            s.send("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        found = 0
        for s in sockets:
            try:
                found += s.reply() is not None
            except ConnectionError:
                pass
        for s in sockets:
            s.close()
        return found

    def test_the_limit_of_the_process_is_raised(self):
        with harness.Server(files=(40, 256)) as s:
            self.assertEqual(self.answered(s, 100), 100)

    def test_a_limit_that_stays_costs_connections_alone(self):
        with harness.Server(files=(64, 64)) as s:
            self.assertEqual(self.answered(s, 80), 32)
            self.assertTrue(s.until(lambda: s.metric("ingot_connections") == 1))
            self.assertEqual(s.chat(max_tokens=2).status, 200)
        self.assertEqual([line for line in s.log if "descriptors" in line or "connection" in line], [])


class Patience(harness.Case):
    OPTIONS = ("--receive-timeout", "2")

    def dribble(self, start, results):
        """Sends a byte every quarter of a second until there is an answer; its head and the time it took."""
        with harness.Raw(self.server, timeout=60) as s:
            s.send(start)
            begun = time.monotonic()
            s.socket.settimeout(0.25)
            while time.monotonic() - begun < 20 * harness.SLOW:
                try:
                    if not s._more() or b"\r\n\r\n" in s.pending:
                        break
                except TimeoutError:
                    s.send("x")
                except ConnectionError:
                    break
            results.append((s.pending[:12], time.monotonic() - begun))

    def test_single_bytes_buy_no_time(self):
        starts = ("GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
                  "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
                  "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n{")
        results = []
        threads = [threading.Thread(target=self.dribble, args=(start, results)) for start in starts]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for head, seconds in results:
            self.assertEqual(head, b"HTTP/1.1 408")
            self.assertGreater(seconds, 1.5)
            self.assertLess(seconds, 4 * harness.SLOW)
        self.assertEqual(len(results), 3)
        self.alive()


class Access(unittest.TestCase):
    def refused(self, *options, env=None):
        with self.assertRaises(RuntimeError) as e:
            harness.Server(*options, env=env, wait=False)
        return str(e.exception)

    def test_a_limit_that_admits_no_request_is_refused(self):
        for size in ("0", "1023"):
            self.assertIn(f"--max-body: found {size}, want at least 1024 bytes", self.refused("--max-body", size))

    def test_an_empty_key_is_refused(self):
        self.assertIn("--api-key: found an empty key", self.refused("--api-key", ""))

    def test_beyond_loopback_wants_a_key(self):
        self.assertIn("--no-auth", self.refused("--host", "0.0.0.0"))
        with harness.Server("--host", "0.0.0.0", "--no-auth", wait=False) as s:
            s.host = "127.0.0.1"
            self.assertEqual(s.get("/live", {"Host": "any.example"}).status, 200)

    def test_keys(self):
        with harness.Server("--api-key", "sk-one") as s:
            self.assertEqual(s.get("/slots", {"x-api-key": "sk-one"}).json, [])
            open_routes = [s.get("/health"), s.get("/live")]
            self.assertEqual([r.status for r in open_routes], [200, 200])
            for headers in ({}, {"Authorization": "Bearer sk-two"}, {"Authorization": "Bearer "}, {"Authorization": "Basic sk-one"},
                            {"x-api-key": ""}, {"x-api-key": "sk-on"}, {"x-api-key": "sk-onee"}, {"Authorization": "Bearer sk-onesk-one"}):
                for path in ("/v1/models", "/metrics", "/slots", "/nothing"):
                    r = s.get(path, headers)
                    self.assertEqual((r.status, r.json["error"]["type"]), (401, "authentication_error"), (path, headers))
                self.assertEqual(s.post(harness.CHAT, BODY, headers).status, 401)
            for headers in ({"Authorization": "Bearer sk-one"}, {"x-api-key": "sk-one"}, {"Authorization": "bearer sk-one"},
                            {"Authorization": "Bearer sk-one", "x-api-key": "other"}, {"Authorization": "Bearer other", "x-api-key": "sk-one"}):
                self.assertEqual(s.get("/v1/models", headers).status, 200, headers)
            self.assertEqual(s.call("OPTIONS", harness.CHAT, headers={"Origin": "http://localhost:1"}).status, 204)
            with harness.Raw(s) as c:  # a body that nobody may send is not read, and the connection goes on or ends
                c.post(harness.CHAT, BODY)
                self.assertEqual(c.reply().status, 401)
                c.post(harness.CHAT, BODY, "x-api-key: sk-one")
                self.assertEqual(c.reply().status, 200)
            self.assertFalse(any("sk-" in line for line in s.log))

    def test_key_file_is_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "keys")
            with open(path, "w", encoding="ascii") as f:
                f.write("# old\nfirst\n\n second \n")
            with harness.Server("--api-key-file", path) as s:
                def status(key):
                    return s.get("/v1/models", {"x-api-key": key}).status
                self.assertEqual([status(k) for k in ("first", "second", "third", "# old")], [200, 200, 401, 401])
                with open(path, "w", encoding="ascii") as f:
                    f.write("third\n")
                s.process.send_signal(signal.SIGHUP)
                self.assertTrue(s.until(lambda: status("third") == 200))
                self.assertEqual(status("first"), 401)
                os.remove(path)  # a file that is gone: the keys stay
                s.process.send_signal(signal.SIGHUP)
                time.sleep(0.3)
                self.assertEqual(status("third"), 200)
            with open(path, "w", encoding="ascii") as f:
                f.write("# none\n")
            self.assertIn("no key", self.refused("--api-key-file", path))

    def test_a_model_whose_name_is_escaped(self):
        with harness.Server("--model-name", "own/king é") as s:
            for path, status in (("own/king%20%c3%A9", 200), ("own%2Fking%20%C3%A9", 200), ("own/king", 404), ("own/king%20%C3%A9x", 404),
                                 ("own/king%2", 404), ("own/king%zz", 404), ("%", 404)):
                self.assertEqual(s.get(f"/v1/models/{path}").status, status, path)

    def test_key_of_the_environment(self):
        with harness.Server(env={"INGOT_API_KEY": "of-env"}, wait=False) as s:
            self.assertEqual(s.get("/metrics").status, 401)
            self.assertNotEqual(s.get("/metrics", {"x-api-key": "of-env"}).status, 401)

    def test_hosts_and_origins(self):
        with harness.Server("--allow-host", "ingot.example") as s:
            for host, status in (("localhost", 200), ("127.0.0.1:80", 200), ("[::1]:1", 200), ("ingot.example:8", 200), ("LOCALHOST", 200),
                                 ("evil.example", 403), ("localhost.evil.example", 403), ("127.0.0.1.evil", 403)):
                self.assertEqual(s.get("/health", {"Host": host}).status, status, host)
            for origin, allowed in (("http://localhost:3000", True), ("https://127.0.0.1", True), ("http://evil.example", False),
                                    ("http://localhost.evil.example", False), ("null", False)):
                r = s.post(harness.CHAT, BODY, {"Origin": origin})
                self.assertEqual(r.headers.get("access-control-allow-origin"), origin if allowed else None)
                self.assertEqual(r.status, 200 if allowed else 403, origin)
            r = s.post(harness.CHAT, BODY, {"Origin": "https://ingot.example", "Host": "ingot.example"})
            self.assertEqual(r.status, 200, "a page of its own")
        with harness.Server("--cors", "https://app.example", wait=False) as s:
            self.assertIn("access-control-allow-origin", s.get("/live", {"Origin": "https://app.example"}).headers)
            self.assertNotIn("access-control-allow-origin", s.get("/live", {"Origin": "http://localhost"}).headers)
        with harness.Server("--cors", "*", wait=False) as s:
            self.assertIn("access-control-allow-origin", s.get("/live", {"Origin": "https://any.example"}).headers)


if __name__ == "__main__":
    harness.main()
