"""test_rude.py [SEED FIRST COUNT] - seeded noise on raw sockets: broken framing, pipelines, wrong JSON, clients that leave.

Case i of a seed is always the same bytes. After each one /health answers; what is answered is HTTP with JSON in it, and never a 500;
a good request behind a framed one is answered in its turn. With arguments: those cases of that seed, for as long as they take.
"""
import copy
import json
import random
import re
import socket
import struct
import sys

import harness

SEED, FIRST, COUNT = "1", 0, 130 if harness.VERY_SLOW else 400
STATUSES = {100, 200, 204, 400, 401, 403, 404, 405, 408, 411, 413, 415, 417, 429, 431, 501, 503, 505, 529}
CANARY = b"GET /health?canary HTTP/1.1\r\nHost: localhost\r\n\r\n"
TOOL = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", "y"]}, "b": {"type": "integer"}}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}, "required": ["a"], "additionalProperties": False}
BODIES = [
    ("/v1/chat/completions", {"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}],
                              "max_tokens": 3, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "seed": 1, "stop": ["x"], "n": 2, "logit_bias": {"5": 1},
                              "logprobs": True, "top_logprobs": 2, "stream": True, "stream_options": {"include_usage": True}, "block": 2}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"},
                                           {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": [
                                               {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\": \"x\"}"}}]},
                                           {"role": "tool", "tool_call_id": "c", "content": "t"}],
                              "tools": [{"type": "function", "function": TOOL}], "tool_choice": "required", "max_tokens": 3}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "reasoning_effort": "none",
                              "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}}),
    ("/v1/completions", {"prompt": ["a", "b"], "max_tokens": 2, "logprobs": 1, "echo": False, "stream": False}),
    ("/v1/completions", {"prompt": [1, 2, 3], "max_tokens": 2, "presence_penalty": 1, "frequency_penalty": 1, "repetition_penalty": 1.1, "min_p": 0.1}),
    ("/v1/responses", {"input": [{"role": "developer", "content": "d"}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                                 {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}]},
                                 {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                                 {"type": "function_call_output", "call_id": "c", "output": "o"}],
                       "tools": [{"type": "function", **TOOL}], "tool_choice": "auto", "max_output_tokens": 3, "reasoning": {"effort": "low"},
                       "text": {"format": {"type": "text"}}, "stream": True}),
    ("/v1/messages", {"model": "m", "max_tokens": 3, "system": [{"type": "text", "text": "s"}], "messages": [
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"},
                                                                             {"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r"}, {"type": "text", "text": "go"}]}],
        "tools": [{"name": "f", "input_schema": TOOL["parameters"]}], "tool_choice": {"type": "auto"}, "stop_sequences": ["x"],
        "thinking": {"type": "enabled", "budget_tokens": 2}, "stream": True}),
    ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "hi"}]}),
    ("/tokenize", {"content": "hello"}), ("/detokenize", {"tokens": [1, 2]}), ("/apply-template", {"messages": [{"role": "user", "content": "hi"}]}),
]
VALUES = [None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -2**63, 10**40, 0.5, 1e308, "", "x", "none", "auto", "required", "\ud800", "\0", "é\u202e\U0001f638",
          "<|im_end|>", "<think>", "</think><tool_call>", "x" * 5000, [], [[]], {}, [None], {"type": "image_url"}, {"type": "function"}, {"a": {"a": {}}}]
PIECES = [b"\r\n", b"\n", b"\r", b"\0", b"\r\n\r\n", b": ", b" ", b"\t", b"\xff\xfe", b"\xc3\x28", b"0\r\n\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n",
          b"Transfer-Encoding: chunked\r\n", b"Host: evil\r\n", b"Expect: 100-continue\r\n", b"HTTP/1.1", b"HTTP/9.9", b"GET / ", b"{", b"[" * 3000, b"\"", b"%00", b"..",
          b"Connection: close\r\n", b"Connection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n", b"X: " + b"y" * 9000 + b"\r\n", b"A: b\r\n" * 120, b"fffffffffffffffff\r\n", b"-1\r\n"]


def nodes(value, path=()):
    """The paths of all values inside, the whole one first."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(inside):
        yield from nodes(item, (*path, key))


def wrong_json(chance, body):
    """The body with some values replaced, lost, doubled or nested."""
    body = copy.deepcopy(body)
    for _ in range(chance.randrange(4)):
        *way, last = chance.choice(list(nodes(body))[1:] or [("x",)])
        place = body
        for key in way:
            place = place[key]
        what = chance.randrange(5)
        if what == 0:
            del place[last]
        elif what == 1 and isinstance(place, list):
            place += [copy.deepcopy(place[last])] * chance.randrange(1, 40)
        elif what == 2:
            place[last] = [copy.deepcopy(place[last])] if chance.random() < 0.5 else {"type": place[last]}
        else:
            place[last] = copy.deepcopy(chance.choice(VALUES))
        if not body:
            break
    text = json.dumps(body, ensure_ascii=chance.random() < 0.5)
    if chance.random() < 0.1:
        text = text.replace("{", '{"model": 1, "n": 1e400, "model": "x", ', 1)  # twice the same name
    return text.encode("utf-8", "surrogatepass")


def framed(chance):
    """A request whose framing is right; what it asks may be wrong."""
    path, body = chance.choice(BODIES)
    if chance.random() < 0.15:
        method = chance.choice(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST"])
        path = chance.choice([path, "/", "/health", "/live", "/metrics", "/slots", "/v1/models", "/v1/models/king", "/v1/models/" + "x" * 300, "/v1/embeddings", "/x%00y?q=\\", "*"])
        return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode(), method == "HEAD"
    data = wrong_json(chance, body)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n".encode()
    if chance.random() < 0.6:
        return head + b"Content-Length: %d\r\n\r\n" % len(data) + data, False
    chunks = b""
    while data:
        n = chance.randrange(1, len(data) + 1)
        chunks += b"%x%s\r\n%s\r\n" % (n, chance.choice([b"", b";a=b", b" ;x"]), data[:n])
        data = data[n:]
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + chance.choice([b"", b"T: x\r\n"]) + b"\r\n", False


def broken(chance):
    """Bytes that may mean anything: a pipeline that was cut, spliced and flipped."""
    data = bytearray(b"".join(framed(chance)[0] for _ in range(chance.randrange(1, 4))))
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(4)
        if what == 0:
            data[at:at] = chance.choice(PIECES)
        elif what == 1:
            del data[at:at + chance.randrange(1, 30)]
        elif what == 2 and at < len(data):
            data[at] = chance.randrange(256)
        else:  # in the head, where it hurts
            end = data.find(b"\r\n")
            data[max(end, 0):max(end, 0)] = b"\r\n" + chance.choice(PIECES)
    return bytes(data[:chance.randrange(1, len(data) + 1)] if chance.random() < 0.3 else data)


class Rude(harness.Case):
    OPTIONS = ("--max-body", "256K", "--receive-timeout", "3", "--max-seconds", "60", "--parallel", "2")

    @classmethod
    def setUpClass(cls):
        cls.server = harness.Server(*cls.OPTIONS, context=512)

    def check(self, r):
        self.assertIn(r.status, STATUSES, r.body[:400])
        if r.headers.get("content-type") == "application/json" and r.body:
            value = json.loads(r.body.decode("utf-8"))
            if r.status >= 400:
                self.assertTrue(value["error"]["message"])
        if "text/event-stream" in r.headers.get("content-type", ""):
            self.assertNotIn(b'"type":"server_error"', r.body)

    def leave(self, wire, chance):
        if chance.random() < 0.5:  # a reset instead of a farewell
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()

    def asks(self, chance):
        """Requests in a row, each framed well, and the canary: as many answers, the canary's the last."""
        made = [framed(chance) for _ in range(chance.randrange(1, 4))]
        with harness.Raw(self.server, harness.PATIENCE) as wire:
            data = b"".join(request for request, _ in made) + CANARY
            while data:
                n = len(data) if chance.random() < 0.8 else chance.randrange(1, 200)
                wire.send(data[:n])
                data = data[n:]
            if chance.random() < 0.1:
                self.leave(wire, chance)
                return
            found = []
            for bare in [*(is_head for _, is_head in made), False]:
                r = wire.reply(bare)
                if not r:
                    break
                self.check(r)
                found.append(r)
        too_large = found and found[-1].status == 413
        failed = found and found[-1].status == 200 and b'"error"' in found[-1].body  # in a stream
        if not too_large and not failed:
            self.assertEqual(len(found), len(made) + 1)
            self.assertEqual(found[-1].body, b'{"status":"ok"}')

    def breaks(self, chance):
        with harness.Raw(self.server) as wire:
            data = broken(chance)
            for piece in [data] if chance.random() < 0.8 else [data[:len(data) // 2], data[len(data) // 2:]]:
                wire.send(piece)
            wire.socket.settimeout(0.02)
            wire.closed()
            for status in re.findall(rb"HTTP/1.1 ([0-9]+) ", wire.pending):
                self.assertIn(int(status), STATUSES)
            self.leave(wire, chance)

    def test_noise(self):
        want = self.server.chat().json["choices"]
        files = self.server.descriptors()
        for i in range(FIRST, FIRST + COUNT):
            chance = random.Random(f"{SEED}:{i}")
            with self.subTest(seed=SEED, case=i):
                (self.asks if chance.random() < 0.6 else self.breaks)(chance)
                self.alive()
        self.assertEqual(self.server.chat().json["choices"], want)
        self.assertTrue(self.server.until(lambda: self.server.descriptors() <= files + 1))
        self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_running") == 0))


if __name__ == "__main__":
    if len(sys.argv) == 4:
        SEED, FIRST, COUNT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        del sys.argv[1:]
    harness.main()
