"""test_calls.py - tool calls as models really write them, well and badly: a king that says exactly what a test wants.

It is the small king with some texts added to its tokenizer, each one a token whose logit is always zero: a bias then makes it say
them, one after the other, and a stop string ends the answer.
"""
import json
import os
import shutil
import struct
import tempfile

import harness
from harness import CHAT, Joined

FIRST_ID = 4074  # the rows from here on have no token
CODE = "".join(f"if (a[{i}] < b) {{ return {{'x': {i}}}; }}\n" for i in range(100))  # neither JSON nor a literal of Python
END = "(the end)"


def tagged(**arguments):
    return "<tool_call>\n<function=f>\n" + "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in arguments.items()) + "</function>\n</tool_call>"


SAID = {
    "tagged": tagged(day=15, text="x"),
    "wrong type": tagged(day="2026-01-15", object=CODE),
    "escapes": '<tool_call>\n{"name": "f", "arguments": {"text": "\\d+\\.\\w* C:\\new\\temp"}}\n</tool_call>',
    "escapes in tags": tagged(text="\\d+\\.\\w* C:\\new\\temp"),
    "other dialect": "<tool_call>glob\n<arg_key>pattern</arg_key><arg_value>**/x.md</arg_value></tool_call>",
    "bracket": tagged(object='{"a": [1, 2]'),
    "unknown": "<tool_call>\n<function=never_declared>\n</function>\n</tool_call>",
    "two": tagged(day=1) + "\n" + tagged(day=2),
    "cut": "<tool_call>\n<function=f>\n<parameter=text>\nhalf of it",
    "quoted": "Use `<think>draft</think>` and `</think>` as the example.",
    "end": END,
}
IDS = {name: FIRST_ID + i for i, name in enumerate(SAID)}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
    "day": {"type": "integer"}, "text": {"type": "string"}, "object": {"type": "object", "properties": {"a": {"type": "array"}}}}}}}]


def make_king(folder):
    shutil.copytree(f"{harness.NUGGET}/king", folder)
    path = os.path.join(folder, "tokenizer.json")
    with open(path, encoding="utf-8") as f:
        tokenizer = json.load(f)
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    tokenizer["added_tokens"] += [{"id": IDS[name], "content": text, **flags} for name, text in SAID.items()]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(tokenizer, f)
    with open(os.path.join(folder, "model.safetensors"), "r+b") as f:
        n, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        for part in ("scales", "biases"):  # rows of zeros: logits of zero
            t = header[f"language_model.lm_head.{part}"]
            row = (t["data_offsets"][1] - t["data_offsets"][0]) // t["shape"][0]
            f.seek(8 + n + t["data_offsets"][0] + FIRST_ID * row)
            f.write(bytes(row * len(SAID)))


class Calls(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        make_king(f"{cls.folder.name}/king")
        cls.server = harness.Server("--king", f"{cls.folder.name}/king")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def body(self, *names, **fields):
        """A request whose answer is these texts: a token that was said falls behind those that were not."""
        bias = {str(IDS[name]): 100 - i for i, name in enumerate((*names, "end"))}
        return {"messages": [{"role": "user", "content": "hi"}], "temperature": 0, "max_tokens": 8, "reasoning_effort": "none", "tools": TOOLS,
                "frequency_penalty": 2, "presence_penalty": 2, "logit_bias": bias, "stop": END, **fields}

    def say(self, *names, **fields):
        """The message, its end, and the arguments of its calls; the stream is checked to be the same."""
        whole = self.server.post(CHAT, self.body(*names, **fields))
        self.assertEqual(whole.status, 200, whole.body)
        choice, = whole.json["choices"]
        message, calls = choice["message"], choice["message"].get("tool_calls", [])
        joined = Joined(self.server.stream(CHAT, self.body(*names, **fields)))
        self.assertTrue(joined.done)
        self.assertEqual((joined.content, joined.finish), (message["content"] or "", choice["finish_reason"]))
        self.assertEqual([(c["name"], c["arguments"]) for c in joined.calls], [(c["function"]["name"], c["function"]["arguments"]) for c in calls])
        return message["content"], choice["finish_reason"], [json.loads(c["function"]["arguments"]) for c in calls]

    def test_a_good_call(self):
        self.assertEqual(self.say("tagged"), (None, "tool_calls", [{"day": 15, "text": "x"}]))

    def test_calls_side_by_side(self):
        self.assertEqual(self.say("two"), (None, "tool_calls", [{"day": 1}, {"day": 2}]))

    def test_R024_what_cannot_be_converted_stays_text(self):
        content, finish, (arguments,) = self.say("wrong type")
        self.assertEqual((content, finish), (None, "tool_calls"))
        self.assertEqual(arguments["day"], "2026-01-15")
        self.assertEqual(arguments["object"].strip(), CODE.strip())

    def test_R026_wrong_escapes_do_no_harm(self):
        for name in ("escapes", "escapes in tags"):
            self.assertEqual(self.say(name), (None, "tool_calls", [{"text": "\\d+\\.\\w* C:\\new\\temp"}]), name)

    def test_R027_another_dialect_stays_visible(self):
        self.assertEqual(self.say("other dialect"), (SAID["other dialect"], "stop", []))

    def test_R029_a_missing_bracket_is_supplied(self):
        self.assertEqual(self.say("bracket"), (None, "tool_calls", [{"object": {"a": [1, 2]}}]))

    def test_R030_what_was_not_declared_is_text(self):
        self.assertEqual(self.say("unknown"), (SAID["unknown"], "stop", []))
        self.assertEqual(self.say("tagged", tools=[]), (SAID["tagged"], "stop", []))

    def test_a_call_that_is_cut_is_no_crash(self):
        for fields in ({}, {"max_tokens": 1}):
            whole = self.server.post(CHAT, self.body("cut", **fields))
            joined = Joined(self.server.stream(CHAT, self.body("cut", **fields)))
            self.assertEqual(whole.status, 200)
            self.assertTrue(joined.done)
            self.assertEqual(joined.finish, whole.json["choices"][0]["finish_reason"])
        self.assertEqual(joined.finish, "length")

    def test_a_schema_that_is_refused_is_named_as_it_came(self):
        bad = {"type": "object", "properties": {"a": {"not": {}}}}
        tool = [{"type": "function", "function": {"name": "f", "parameters": bad}}]
        named = {"name": "n", "schema": bad}
        self.error(self.server.post(CHAT, self.body("end", tools=[], response_format={"type": "json_schema", "json_schema": named})), 400,
                   "response_format.json_schema.schema")
        self.error(self.server.post(CHAT, self.body("end", tools=tool, tool_choice="required")), 400, "tools")
        self.error(self.server.post("/v1/responses", {"input": "hi", "text": {"format": {"type": "json_schema", **named}}}), 400,
                   "text.format.schema")

    def check_no_parameters(self, server):
        for function in ({"name": "g"}, {"name": "g", "parameters": None}):
            reply = server.post(CHAT, self.body("end", tools=[{"type": "function", "function": function}], tool_choice="required", max_tokens=100))
            self.assertEqual(reply.status, 200, reply.body)
            call, = reply.json["choices"][0]["message"]["tool_calls"]
            self.assertEqual((call["function"]["name"], call["function"]["arguments"]), ("g", "{}"))

    def check_form(self, server, written, other):
        """A required call is made in the form of the template: the text of the other form never comes."""
        tool = [{"type": "function", "function": {"name": "g"}}]
        for stop, finish in ((written, "stop"), (other, "tool_calls")):
            reply = server.post(CHAT, self.body("end", tools=tool, tool_choice="required", max_tokens=100, stop=stop))
            self.assertEqual(reply.json["choices"][0]["finish_reason"], finish, reply.body)

    def test_a_required_call_has_the_form_of_the_template(self):
        tags, objects = "<function=", '{"name": '
        self.check_no_parameters(self.server)
        self.check_form(self.server, tags, objects)
        folder = f"{self.folder.name}/objects"  # a template without tags: calls are JSON objects
        make_king(folder)
        with open(f"{folder}/chat_template.jinja", "r+", encoding="utf-8") as f:
            text = f.read().replace("<function=", "<call=")
            f.seek(0)
            f.truncate()
            f.write(text)
        with harness.Server("--king", folder) as server:
            self.check_no_parameters(server)
            self.check_form(server, objects, tags)

    def test_ids_without_a_token_are_refused(self):
        beyond = max(IDS.values()) + 1
        self.error(self.server.post(CHAT, self.body("end", logit_bias={str(beyond): 1})), 400, "logit_bias")
        self.error(self.server.post("/v1/completions", {"prompt": [beyond], "max_tokens": 1}), 400, "prompt")
        self.error(self.server.post("/detokenize", {"tokens": [beyond]}), 400, "tokens")
        many = {str(i): 1 for i in range(1025)}
        self.assertIn("1024", self.error(self.server.post(CHAT, self.body("end", logit_bias=many)), 400, "logit_bias")["message"])

    def test_a_limit_that_would_be_met_again_is_no_429(self):
        many = [{"type": "function", "function": {"name": f"f{i}"}} for i in range(129)]
        reply = self.server.post(CHAT, self.body("end", tools=many, tool_choice="required"))
        self.assertIn("128", self.error(reply, 400, "tools", kind="invalid_request_error")["message"])
        self.assertNotIn("retry-after", reply.headers)

    def test_R034_tags_inside_the_answer_are_text(self):
        self.assertEqual(self.say("quoted"), (SAID["quoted"], "stop", []))


if __name__ == "__main__":
    harness.main()
