"""test_golden.py - every request of tests/golden/openai/requests.jsonl gets the status and the fields it must."""
import json
import re
import unittest

import harness

NAMES = {"string": str, "integer": int, "number": (int, float), "object": dict, "array": list, "boolean": bool, "null": type(None)}
MISSING = object()


def look(value, path):
    for part in path.split(".") if path else []:
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return MISSING
    return value


def fault(value, want):
    """Why `value` breaks the constraint; None when it holds."""
    if not isinstance(want, dict):
        return None if value == want and type(value) is type(want) else f"found {value!r}, want {want!r}"
    (kind, arg), = want.items()
    if kind == "absent":
        return None if value is MISSING or value is None else f"found {value!r}, want nothing"
    if value is MISSING:
        return "missing"
    held = {"type": lambda: isinstance(value, NAMES[arg]) and not (arg in ("integer", "number") and isinstance(value, bool)),
            "any": lambda: value in arg,
            "match": lambda: isinstance(value, str) and re.search(arg, value),
            "len": lambda: len(value) == arg,
            "min": lambda: value >= arg,
            "max": lambda: value <= arg}[kind]()
    return None if held else f"found {value!r}, want {want}"


def view_stream(reply):
    """The special paths of a stream's row."""
    view = {"content_type": reply.headers["content-type"], "done": False}
    for text in reply.body.decode().split("\n\n"):
        e = harness.Event(text, 0)
        if e.data == "[DONE]":
            view["done"] = True
        elif e.data:
            chunk = e.json
            if chunk.get("usage"):
                view["usage"], view["usage_choices"] = chunk["usage"], chunk["choices"]
            if chunk["choices"]:
                view.setdefault("first", chunk)
                view["last"] = chunk
    return view


class Golden(harness.Case):
    def honoured(self, row, reply):
        """A row that allows 200 and 400 says in its note when 200 is right."""
        body, message = row.get("body", {}), look(reply.json, "choices.0.message")
        if look(reply.json, "choices.0.finish_reason") == "length":
            return  # cut before it was whole, which a row's max_tokens may do
        format_type = look(body, "response_format.type")
        if format_type in ("json_object", "json_schema"):
            value = json.loads(message["content"])
            self.assertIsInstance(value, dict)
            if format_type == "json_schema":
                self.assertEqual(list(value), ["answer"])
        if body.get("tool_choice") == "required" or isinstance(body.get("tool_choice"), dict):
            self.assertEqual(message["tool_calls"][0]["function"]["name"], "add")
        if body.get("n") == 3:
            self.assertEqual(len(reply.json["choices"]), 3)
        for name in ("echo", "suffix", "best_of"):
            self.assertNotIn(name, body, "ignored")

    def check(self, row, model):
        path = row["path"].replace("{model}", model)
        reply = self.server.call(row["method"], path, row.get("body"), row.get("headers"), row.get("raw"))
        wanted = row["status"] if isinstance(row["status"], list) else [row["status"]]
        self.assertIn(reply.status, wanted, reply.body[:300])
        if len(wanted) > 1 and reply.status == 400:
            self.error(reply, 400)
            return
        if len(wanted) > 1 and reply.status == 200 and row["method"] == "POST":
            self.honoured(row, reply)
        streamed = reply.headers.get("content-type", "").startswith("text/event-stream")
        value = view_stream(reply) if streamed else json.loads(reply.body) if reply.body else {}
        value["header"] = reply.headers
        for where, want in row["has"].items():
            if isinstance(want, str):
                want = want.replace("{model}", model)
            why = fault(look(value, where), want)
            self.assertIsNone(why, f"{where}: {why}")

    def test_every_row(self):
        model = self.server.get("/v1/models").json["data"][0]["id"]
        table = harness.rows("requests.jsonl")
        self.assertEqual(len(table), 131)
        for row in table:
            with self.subTest(row["name"]):
                self.check(row, model)
        self.alive()

    def test_a_wrong_answer_is_seen(self):
        self.assertIsNotNone(fault(1, 2))
        self.assertIsNotNone(fault(True, 1))
        self.assertIsNotNone(fault("x", {"match": "^y"}))
        self.assertIsNotNone(fault(MISSING, {"type": "string"}))
        self.assertIsNotNone(fault(5, {"max": 4}))
        self.assertIsNone(fault(None, {"absent": True}))


if __name__ == "__main__":
    harness.main()
