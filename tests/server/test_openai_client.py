"""test_openai_client.py - the official Python client: chat, streams, tools, structure, log-probabilities, errors, aborts, responses."""
import asyncio
import json
import time
import unittest
from typing import Literal, Optional

import clients
import harness

if __name__ == "__main__":
    clients.use_python()
    import openai
    import pydantic
    from openai.types import Completion, Model
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

ASK = [{"role": "user", "content": "What is 5 plus 6? Think briefly."}]
WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


class Client(harness.Case):
    OPTIONS = ("--api-key", "sk-test")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = openai.OpenAI(api_key="sk-test", base_url=f"http://127.0.0.1:{cls.server.port}/v1", max_retries=0)

    def ask(self, messages=ASK, **fields):
        return self.client.chat.completions.create(**{"model": "nugget", "messages": messages, "temperature": 0, "max_tokens": 120, **fields})

    def raw(self, path, body):
        r = self.server.post(path, body, {"x-api-key": "sk-test"})
        self.assertEqual(r.status, 200, r.body)
        return r

    def test_bodies_fit_the_types(self):
        body = {"messages": ASK, "temperature": 0, "max_tokens": 60, "logprobs": True, "top_logprobs": 2}
        ChatCompletion.model_validate_json(self.raw(harness.CHAT, body).body, strict=True)
        ChatCompletion.model_validate_json(self.raw(harness.CHAT, {"messages": WEATHER, "tools": [TOOL], "temperature": 0,
                                                                   "reasoning_effort": "none", "max_tokens": 60}).body, strict=True)
        Completion.model_validate_json(self.raw(harness.COMPLETIONS, {"prompt": "Once", "max_tokens": 5, "logprobs": 2}).body, strict=True)
        for path, kind in ((harness.CHAT, ChatCompletionChunk), (harness.COMPLETIONS, Completion)):
            extra = {"messages": ASK} if path == harness.CHAT else {"prompt": "Once"}
            for e in self.server.stream(path, {**extra, "max_tokens": 20, "stream_options": {"include_usage": True}}, {"x-api-key": "sk-test"}):
                if e.data != "[DONE]":
                    chunk = json.loads(e.data)
                    if kind is Completion and chunk["choices"] and chunk["choices"][0]["finish_reason"] is None:
                        continue  # the type of the old object knows only whole answers
                    kind.model_validate_json(e.data, strict=True)
        Model.model_validate_json(json.dumps(self.server.get("/v1/models", {"x-api-key": "sk-test"}).json["data"][0]), strict=True)

    def test_chat_and_its_stream_agree(self):
        whole = self.ask()
        text = reasoning = ""
        with self.ask(stream=True, stream_options={"include_usage": True}) as stream:
            for chunk in stream:
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    reasoning += getattr(choice.delta, "reasoning_content", None) or ""
                last = chunk
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(reasoning, whole.choices[0].message.reasoning_content)
        self.assertEqual(last.usage.total_tokens, whole.usage.total_tokens)
        self.assertEqual(last.timings["tokens_sha256"], whole.timings["tokens_sha256"])

    def test_the_stream_helper(self):
        with self.client.chat.completions.stream(model="nugget", messages=ASK, temperature=0, max_tokens=120) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, self.ask().choices[0].message.content)

    def test_tools(self):
        fields = {"tools": [TOOL], "reasoning_effort": "none"}
        whole = self.ask(WEATHER, **fields)
        call, = whole.choices[0].message.tool_calls
        self.assertEqual(call.function.name, "get_weather")
        self.assertIn("city", json.loads(call.function.arguments))
        with self.client.chat.completions.stream(model="nugget", messages=WEATHER, temperature=0, max_tokens=120, **fields) as stream:
            for _ in stream:
                pass
            streamed, = stream.get_final_completion().choices[0].message.tool_calls
        self.assertEqual(streamed.function.arguments, call.function.arguments)
        after = self.ask([*WEATHER, whole.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "18 degrees"}], **fields)
        self.assertGreater(after.usage.prompt_tokens, whole.usage.prompt_tokens)

    def test_structured_output_is_enforced_or_refused(self):
        class Verdict(pydantic.BaseModel):
            answer: bool
            kind: Literal["sum", "other"]
            more: Optional[bool]
        for seed in range(4):  # whatever the model would rather say
            reply = self.client.chat.completions.parse(model="nugget", messages=ASK, temperature=1, seed=seed, max_tokens=200, reasoning_effort="none",
                                                       response_format=Verdict)
            self.assertIsInstance(reply.choices[0].message.parsed, Verdict)
        with self.assertRaises(openai.BadRequestError) as raised:
            self.ask(response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "not": {}}}})
        self.assertIn("not", raised.exception.message)
        with self.assertRaises(openai.BadRequestError):
            self.ask(response_format={"type": "yaml"})

    def test_what_cannot_be_honoured_is_named(self):
        for field, value in (("functions", [{"name": "f"}]), ("function_call", "auto"), ("audio", {"voice": "x", "format": "wav"}),
                             ("modalities", ["text", "audio"]), ("web_search_options", {})):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask(**{field: value})
            self.assertEqual(raised.exception.param, field)
        self.ask(modalities=["text"], prediction={"type": "content", "content": "x"}, store=True, metadata={"a": "b"}, user="u", max_tokens=1)

    def test_logprobs(self):
        reply = self.ask(logprobs=True, top_logprobs=3, reasoning_effort="none")
        entries = reply.choices[0].logprobs.content
        self.assertEqual(b"".join(bytes(e.bytes) for e in entries).decode(), reply.choices[0].message.content)

    def test_choices_and_seed(self):
        one, two = (self.ask(n=2, seed=4, temperature=1) for _ in range(2))
        self.assertEqual([c.message for c in one.choices], [c.message for c in two.choices])

    def test_errors(self):
        for fields, kind, param, code in (({"temperature": 5}, openai.BadRequestError, "temperature", None),
                                          ({"messages": []}, openai.BadRequestError, "messages", None),
                                          ({"max_tokens": 5000}, openai.BadRequestError, "max_tokens", "context_length_exceeded"),
                                          ({"extra_body": {"block": 99}}, openai.BadRequestError, "block", None)):
            with self.assertRaises(kind) as raised:
                self.ask(**fields)
            self.assertEqual((raised.exception.param, raised.exception.code), (param, code))
            self.assertTrue(raised.exception.body["message"])
        with self.assertRaises(openai.AuthenticationError):
            self.client.with_options(api_key="sk-wrong").models.list()
        with self.assertRaises(openai.NotFoundError) as raised:
            self.client.models.retrieve("nope")
        self.assertEqual(raised.exception.code, "model_not_found")

    def test_models_and_completions(self):
        model, = self.client.models.list().data
        self.assertEqual(self.client.models.retrieve(model.id), model)
        reply = self.client.completions.create(model=model.id, prompt=["Once", "Twice"], max_tokens=4, temperature=0)
        self.assertEqual([c.index for c in reply.choices], [0, 1])
        pieces = self.client.completions.create(model=model.id, prompt="Once", max_tokens=4, temperature=0, stream=True)
        self.assertEqual("".join(p.choices[0].text for p in pieces if p.choices), reply.choices[0].text)

    def running(self):
        text = self.server.get("/metrics", {"x-api-key": "sk-test"}).body.decode()
        return "ingot_requests_running 0" not in text

    def test_abort(self):
        with self.ask(stream=True, max_tokens=3500, logit_bias={"4066": -100, "4064": -100}) as stream:
            next(iter(stream))
        self.assertTrue(self.server.until(lambda: not self.running(), 5))

    def test_many_at_once(self):
        async def all_of():
            client = openai.AsyncOpenAI(api_key="sk-test", base_url=f"http://127.0.0.1:{self.server.port}/v1")
            replies = await asyncio.gather(*(client.chat.completions.create(model="x", messages=ASK, temperature=0, max_tokens=30) for _ in range(16)))
            await client.close()
            return {r.choices[0].message.reasoning_content for r in replies}
        self.assertEqual(len(asyncio.run(all_of())), 1)


if __name__ == "__main__":
    harness.main()
