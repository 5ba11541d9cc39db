"""test_responses_client.py - /v1/responses: the official Python client, and what it cannot show."""
import json
import unittest

import clients
import harness

if __name__ == "__main__":
    clients.use_python()
    import openai
    from openai.types.responses import Response

ASK = "What is 5 plus 6? Think briefly."
WEATHER = "What is the weather in Paris?"
TOOL = {"type": "function", "name": "get_weather", "description": "Weather of a city", "strict": False, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
PATH = "/v1/responses"


class Responses(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = openai.OpenAI(api_key="none", base_url=f"http://127.0.0.1:{cls.server.port}/v1", max_retries=0)

    def ask(self, text=ASK, **fields):
        return self.client.responses.create(**{"model": "nugget", "input": text, "temperature": 0, "max_output_tokens": 200, **fields})

    def test_whole_and_stream_agree(self):
        whole = self.ask()
        self.assertEqual([o.type for o in whole.output], ["reasoning", "message"])
        self.assertEqual(whole.status, "completed")
        with self.client.responses.stream(model="nugget", input=ASK, temperature=0, max_output_tokens=200) as stream:
            text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
            final = stream.get_final_response()
        self.assertEqual((text, final.output_text), (whole.output_text, whole.output_text))
        self.assertEqual(final.usage.total_tokens, whole.usage.total_tokens)
        chat = self.server.chat(ASK, max_tokens=200).json["choices"][0]["message"]
        self.assertEqual((whole.output[0].content[0].text, whole.output_text), (chat["reasoning_content"], chat["content"]))

    def test_order_and_shape_of_the_events(self):
        events = [e for e in self.server.stream(PATH, {"input": ASK, "temperature": 0, "max_output_tokens": 200}) if e.data]
        self.assertEqual([e.name for e in events], [e.json["type"] for e in events])
        self.assertEqual([e.json["sequence_number"] for e in events], list(range(len(events))))
        names = [e.name for e in events if not e.name.endswith(".delta")]
        part = ["response.output_item.added", "response.content_part.added"], ["response.content_part.done", "response.output_item.done"]
        self.assertEqual(names, ["response.created", "response.in_progress", *part[0], "response.reasoning_text.done", *part[1],
                                 *part[0], "response.output_text.done", *part[1], "response.completed"])
        ids = {}
        for e in events:
            if e.name == "response.output_item.added":
                ids[e.json["output_index"]] = e.json["item"]["id"]
            if "item_id" in e.json:
                self.assertEqual(e.json["item_id"], ids[e.json["output_index"]])
        done = [e.json["item"] for e in events if e.name == "response.output_item.done"]
        self.assertEqual(done, events[-1].json["response"]["output"])

    def test_bodies_fit_the_types(self):
        for body in ({"input": ASK}, {"input": WEATHER, "tools": [TOOL], "reasoning": {"effort": "none"}}, {"input": ASK, "max_output_tokens": 3}):
            r = self.server.post(PATH, {"temperature": 0, "max_output_tokens": 200, **body})
            Response.model_validate_json(r.body, strict=True)

    def test_tools_and_history(self):
        fields = {"tools": [TOOL], "reasoning": {"effort": "none"}}
        whole = self.ask(WEATHER, **fields)
        call = whole.output[-1]
        self.assertEqual((call.type, call.name), ("function_call", "get_weather"))
        self.assertIn("city", json.loads(call.arguments))
        with self.client.responses.stream(model="nugget", input=WEATHER, temperature=0, max_output_tokens=200, **fields) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_response().output[-1].arguments, call.arguments)
        history = [{"role": "user", "content": WEATHER}, *[o.model_dump(exclude_none=True) for o in whole.output],
                   {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}]
        after = self.ask(history, instructions="Be brief.", **fields)
        self.assertEqual(after.status, "completed")
        self.assertGreater(after.usage.input_tokens, whole.usage.input_tokens)
        self.assertEqual(after.instructions, "Be brief.")

    def test_history_is_the_same_prompt_as_in_a_chat(self):
        self.history({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "add"}]})

    def test_a_summary_stands_for_a_thought_that_is_not_sent(self):
        self.history({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "add"}]})

    def history(self, thought):
        items = [{"role": "developer", "content": "Be brief."}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "2+3?"}]},
                 thought, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I add.", "annotations": []}]},
                 {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{\"city\":\"A\"}"},
                 {"type": "function_call", "call_id": "c2", "name": "get_weather", "arguments": "{\"city\":\"B\"}"},
                 {"type": "function_call_output", "call_id": "c1", "output": "5"},
                 {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "6"}]}]

        def call(name, city):
            return {"id": name, "type": "function", "function": {"name": "get_weather", "arguments": f"{{\"city\":\"{city}\"}}"}}
        messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "2+3?"},
                    {"role": "assistant", "reasoning_content": "add", "content": "I add.", "tool_calls": [call("c1", "A"), call("c2", "B")]},
                    {"role": "tool", "tool_call_id": "c1", "content": "5"}, {"role": "tool", "tool_call_id": "c2", "content": "6"}]
        one = self.server.post(PATH, {"input": items, "temperature": 0, "max_output_tokens": 20}).json
        two = self.server.post(harness.CHAT, {"messages": messages, "temperature": 0, "max_tokens": 20}).json
        self.assertEqual(one["usage"]["input_tokens"], two["usage"]["prompt_tokens"])
        self.assertEqual(one["timings"]["tokens_sha256"], two["timings"]["tokens_sha256"])

    def test_tools_that_are_no_functions_are_left_out(self):
        function = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
        alone = self.ask(tools=[function], max_output_tokens=8)
        among = self.ask(tools=[{"type": "web_search"}, function, {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
                                {"type": "namespace", "name": "n", "tools": []}], max_output_tokens=8)
        self.assertEqual(among.usage.input_tokens, alone.usage.input_tokens)
        self.assertEqual(among.output_text, alone.output_text)

    def test_what_an_agent_sends(self):
        def says(role, *texts):
            return {"type": "message", "id": "msg_1", "role": role, "content": [{"type": "input_text", "text": t} for t in texts]}
        body = {"model": "x", "instructions": "You are a coding agent.", "max_output_tokens": 32, "temperature": 0, "tool_choice": "auto", "parallel_tool_calls": True,
                "input": [says("developer", "Stay in the folder."), says("developer", "a", "b"), says("user", "<environment>"), says("user", ASK)],
                "reasoning": {"effort": "high", "summary": "auto"}, "store": False, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k",
                "client_metadata": {"session_id": "s"}, "text": {"verbosity": "low"},
                "tools": [{"type": "function", "name": "exec_command", "strict": False, "description": "Runs it", "parameters": {
                    "type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"], "additionalProperties": False}},
                          {"type": "namespace", "name": "others", "description": "d", "tools": []}, {"type": "web_search", "external_web_access": False}]}
        seen = [e.name for e in self.server.stream(PATH, body) if e.name]
        self.assertEqual(seen[0], "response.created")
        self.assertIn(seen[-1], ("response.completed", "response.incomplete"))

    def test_R041_effort_none(self):
        self.assertEqual([o.type for o in self.ask(reasoning={"effort": "none"}).output], ["message"])

    def test_a_cut_answer_is_incomplete(self):
        cut = self.ask(max_output_tokens=3)
        self.assertEqual((cut.status, cut.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        last = list(self.server.stream(PATH, {"input": ASK, "max_output_tokens": 3}))[-1]
        self.assertEqual(last.name, "response.incomplete")

    def test_structured_output_is_enforced_or_refused(self):
        schema = {"type": "json_schema", "name": "answer", "strict": True, "schema": {
            "type": "object", "properties": {"answer": {"type": "boolean"}}, "required": ["answer"], "additionalProperties": False}}
        asked = {"model": "nugget", "input": ASK, "max_output_tokens": 100, "reasoning": {"effort": "none"}, "text": {"format": schema}}
        reply = self.client.responses.create(**asked)
        self.assertIsInstance(json.loads(reply.output_text)["answer"], bool)
        schema["schema"]["not"] = {}
        with self.assertRaises(openai.BadRequestError):
            self.client.responses.create(**asked)

    def test_errors(self):
        def refused(status, param, **fields):
            self.error(self.server.post(PATH, {"model": "x", "input": ASK, "max_output_tokens": 5, **fields}), status, param)
        refused(404, "previous_response_id", previous_response_id="resp_1")
        refused(400, "background", background=True)
        refused(400, "conversation", conversation="c")
        refused(400, "input", input=None)
        refused(400, "input", input=[])
        refused(400, "input", input=5)
        refused(400, "input", input=[{"type": "web_search_call"}])
        refused(400, "tools", tools=[{"name": "f"}])
        refused(400, "tool_choice", tools=[{"type": "web_search"}], tool_choice="required")
        refused(400, "input.0.content.1", input=[{"role": "user", "content": [{"type": "input_text", "text": "see"},
                                                                             {"type": "input_image", "image_url": "data:image/png;base64,AA"}]}])
        refused(400, "max_output_tokens", max_output_tokens="x")
        refused(400, "max_output_tokens", max_output_tokens=5000)
        refused(400, "input", input="word " * 6000)
        refused(400, "instructions", instructions=["x"])
        refused(400, None, input=[{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}])
        with self.assertRaises(openai.NotFoundError):
            self.ask(previous_response_id="resp_1")


if __name__ == "__main__":
    harness.main()
