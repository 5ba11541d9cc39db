"""test_anthropic_client.py - /v1/messages: the official Python client, and what it cannot show."""
import json
import unittest

import clients
import harness

if __name__ == "__main__":
    clients.use_python()
    import anthropic
    from anthropic.types import Message

ASK = [{"role": "user", "content": "What is 5 plus 6? Think briefly."}]
WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]
TOOL = {"name": "get_weather", "description": "Weather of a city", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
THINK = {"type": "enabled", "budget_tokens": 1024}
KEY = {"x-api-key": "sk-test"}


class Messages(harness.Case):
    OPTIONS = ("--api-key", "sk-test")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = anthropic.Anthropic(api_key="sk-test", base_url=f"http://127.0.0.1:{cls.server.port}", max_retries=0)

    def ask(self, messages=ASK, **fields):
        return self.client.messages.create(**{"model": "nugget", "max_tokens": 200, "messages": messages, "extra_body": {"temperature": 0}, **fields})

    def refused(self, status, **fields):
        r = self.server.post("/v1/messages", {"model": "x", "max_tokens": 5, "messages": ASK, **fields}, KEY)
        self.assertEqual(r.status, status, r.body)
        self.assertEqual((r.json["type"], set(r.json["error"])), ("error", {"type", "message"}))
        return r.json["error"]

    def test_whole_and_stream_agree(self):
        whole = self.ask(thinking=THINK)
        self.assertEqual([b.type for b in whole.content], ["thinking", "text"])
        self.assertEqual(whole.stop_reason, "end_turn")
        with self.client.messages.stream(model="nugget", max_tokens=200, messages=ASK, extra_body={"temperature": 0}, thinking=THINK) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[1].text)
        self.assertEqual([(b.type, getattr(b, b.type)) for b in final.content], [(b.type, getattr(b, b.type)) for b in whole.content])
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)
        self.assertEqual(final.stop_reason, whole.stop_reason)

    def test_it_is_the_chat_of_the_other_api(self):
        whole = self.ask(thinking=THINK)
        chat = self.server.post(harness.CHAT, {"messages": ASK, "max_tokens": 200, "temperature": 0, "chat_template_kwargs": {"enable_thinking": True}}, KEY)
        message = chat.json["choices"][0]["message"]
        self.assertEqual((whole.content[0].thinking, whole.content[1].text), (message["reasoning_content"], message["content"]))
        self.assertEqual([b.type for b in self.ask().content], ["text"])

    def test_order_and_shape_of_the_events(self):
        body = {"model": "nugget", "max_tokens": 200, "messages": ASK, "temperature": 0, "thinking": THINK}
        events = [e for e in self.server.stream("/v1/messages", body, KEY) if e.data]
        for e in events:
            self.assertEqual(e.name, e.json["type"])
            self.assertNotIn("timings", e.data)
        names = [e.name for e in events if e.name != "content_block_delta"]
        self.assertEqual(names, ["message_start", "content_block_start", "content_block_stop", "content_block_start", "content_block_stop",
                                 "message_delta", "message_stop"])
        self.assertGreater(events[0].json["message"]["usage"]["input_tokens"], 0)
        self.assertEqual(events[0].json["message"]["content"], [])
        signed = [e.json["index"] for e in events if e.name == "content_block_delta" and e.json["delta"]["type"] == "signature_delta"]
        self.assertEqual(signed, [0])

    def test_bodies_fit_the_types(self):
        for fields in ({"thinking": THINK}, {"messages": WEATHER, "tools": [TOOL]}):
            r = self.server.post("/v1/messages", {"model": "x", "max_tokens": 200, "messages": ASK, "temperature": 0, **fields}, KEY)
            Message.model_validate_json(r.body, strict=True)

    def test_tools(self):
        whole = self.ask(WEATHER, tools=[TOOL])
        self.assertEqual(whole.stop_reason, "tool_use")
        call = whole.content[-1]
        self.assertEqual((call.type, call.name), ("tool_use", "get_weather"))
        self.assertIn("city", call.input)
        with self.client.messages.stream(model="nugget", max_tokens=200, messages=WEATHER, extra_body={"temperature": 0}, tools=[TOOL]) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_message().content[-1].input, call.input)
        after = [*WEATHER, {"role": "assistant", "content": [b.model_dump() for b in whole.content]},
                 {"role": "user", "content": [{"type": "text", "text": "Well?"},
                                              {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "18 degrees"}]}]}]
        self.assertEqual(self.ask(after, tools=[TOOL]).type, "message")
        rendered = self.server.post("/apply-template", {"tools": [{"type": "function", "function": {
            "name": "get_weather", "description": "Weather of a city", "parameters": TOOL["input_schema"]}}], "messages": [
            *WEATHER, {"role": "assistant", "content": "", "tool_calls": [{"id": call.id, "type": "function", "function": {
                "name": call.name, "arguments": json.dumps(call.input)}}]},
            {"role": "tool", "tool_call_id": call.id, "content": "18 degrees"}, {"role": "user", "content": "Well?"}]}, KEY)
        self.assertLess(rendered.json["prompt"].index("18 degrees"), rendered.json["prompt"].index("Well?"))

    def test_a_forced_tool(self):
        for choice in ({"type": "any"}, {"type": "tool", "name": "get_weather"}):
            reply = self.ask(tools=[TOOL], tool_choice=choice)
            self.assertEqual(reply.content[-1].name, "get_weather")

    def test_effort_and_format_of_the_output(self):
        schema = {"type": "object", "properties": {"answer": {"type": "boolean"}}, "required": ["answer"], "additionalProperties": False}
        reply = self.ask(output_config={"format": {"type": "json_schema", "schema": schema}})
        self.assertIsInstance(json.loads(reply.content[0].text)["answer"], bool)
        self.assertIn("yaml", self.refused(400, output_config={"format": {"type": "yaml"}})["message"])
        self.assertIn("effort", self.refused(400, thinking=THINK, output_config={"effort": "huge"})["message"])
        low, high = (self.ask(thinking={"type": "adaptive"}, output_config={"effort": effort}, max_tokens=8) for effort in ("low", "high"))
        self.assertEqual([b.type for b in low.content + high.content], ["thinking", "thinking"])

    def test_what_an_agent_sends(self):
        body = {"model": "x", "max_tokens": 32, "stream": True, "temperature": 0, "metadata": {"user_id": "{}"}, "thinking": {"type": "adaptive"},
                "output_config": {"effort": "high"}, "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
                "system": [{"type": "text", "text": "x-header: 1"}, {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
                "messages": [{"role": "user", "content": [{"type": "text", "text": "<reminder>"}, {"type": "text", "text": "What is 5 plus 6?"}]},
                             {"role": "system", "content": "Kinds of helpers: none"}],
                "tools": [TOOL]}
        seen = [e.name for e in self.server.stream("/v1/messages?beta=true", body, {**KEY, "anthropic-beta": "x-2026", "anthropic-version": "2023-06-01"}) if e.name]
        self.assertEqual((seen[0], seen[-1]), ("message_start", "message_stop"))
        self.assertEqual(self.server.call("HEAD", "/").status, 200)

    def test_stop_and_limit(self):
        text = self.ask().content[0].text
        cut = self.ask(stop_sequences=[text[2:5]])
        self.assertEqual((cut.stop_reason, cut.stop_sequence), ("stop_sequence", text[2:5]))
        self.assertEqual("".join(b.text for b in cut.content), text[:text.index(text[2:5])])
        self.assertEqual(self.ask(max_tokens=2).stop_reason, "max_tokens")

    def test_count_tokens(self):
        for fields in ({}, {"system": "Be brief."}, {"tools": [TOOL]}, {"system": [{"type": "text", "text": "Be", "cache_control": {"type": "ephemeral"}}]}):
            count = self.client.messages.count_tokens(model="nugget", messages=ASK, **fields).input_tokens
            u = self.ask(max_tokens=1, **fields).usage
            self.assertEqual(count, u.input_tokens + u.cache_read_input_tokens, fields)

    def test_errors(self):
        self.assertEqual(self.refused(400, messages=[])["type"], "invalid_request_error")
        self.assertIn("max_tokens", self.refused(400, max_tokens=None)["message"])
        self.assertIn("prompt is too long", self.refused(400, messages=[{"role": "user", "content": "word " * 6000}])["message"])
        self.assertRegex(self.refused(400, max_tokens=5000)["message"], r"^input length and `max_tokens` exceed context limit: \d+ \+ 5000 > 4096$")
        self.assertIn("stop_sequences", self.refused(400, stop_sequences=list("abcde"))["message"])
        self.assertIn("mcp_servers", self.refused(400, mcp_servers=[{"type": "url", "url": "x", "name": "y"}])["message"])
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
        self.assertIn("image", self.refused(400, messages=[{"role": "user", "content": [image]}])["message"])
        result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "see"}, image]}
        self.assertIn("messages.0.content.0.content.1", self.refused(400, messages=[{"role": "user", "content": [result]}])["message"])
        for fields in ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, {"tool_choice": {"type": "x"}}, {"thinking": {"type": "x"}},
                       {"messages": "hi"}, {"messages": [5]}, {"messages": [{"role": "user", "content": [5]}]},
                       {"messages": [{"role": "assistant", "content": [{"type": "tool_result"}]}]}, {"stop_sequences": [5]}, {"system": 5}):
            self.refused(400, **fields)
        with self.assertRaises(anthropic.AuthenticationError) as raised:
            self.client.with_options(api_key="no").messages.create(model="x", max_tokens=1, messages=ASK)
        self.assertEqual(raised.exception.body["error"]["type"], "authentication_error")


if __name__ == "__main__":
    harness.main()
