"""test_stream.py - streams and their text: order, characters, stop strings, reasoning, usage, drafting."""
import json
import os
import re
import unittest

import harness
from harness import CHAT, COMPLETIONS, Joined

ASK = "What is 5 plus 6? Think briefly."
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


class Streams(harness.Case):
    def both(self, text=ASK, **fields):
        """The whole answer's message and the joined stream of the same request."""
        whole = self.server.chat(text, **fields)
        self.assertEqual(whole.status, 200, whole.body)
        choice = whole.json["choices"][0]
        joined = Joined(self.server.chat_stream(text, **fields))
        self.assertTrue(joined.done)
        self.assertEqual(joined.content, choice["message"]["content"] or "")
        self.assertEqual(joined.reasoning, choice["message"].get("reasoning_content", ""))
        self.assertEqual(joined.finish, choice["finish_reason"])
        return whole.json, joined

    def bytes_soup(self):
        """Fields that make the model speak in single bytes of characters of three and four bytes."""
        ids = set()
        for text in ("\U0001f638", "\u4e2d", "\U0001f4a9"):
            ids |= set(self.server.post("/tokenize", {"content": text}).json["tokens"])
        self.assertGreater(len(ids), 4)
        bias = {str(i): 100 for i in ids}
        return {"logit_bias": bias, "temperature": 2, "max_tokens": 120, "reasoning_effort": "none", "top_k": 0, "top_p": 1}

    def prompt(self, messages, **fields):
        r = self.server.post("/apply-template", {"messages": messages, **fields})
        self.assertEqual(r.status, 200, r.body)
        return r.json["prompt"]

    def test_R006_a_late_system_message_is_rendered_in_its_place(self):
        messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}, {"role": "system", "content": "a reminder"},
                    {"role": "user", "content": "three"}]
        text = self.prompt(messages)
        self.assertTrue(text.index("one") < text.index("two") < text.index("a reminder") < text.index("three"))
        self.assertEqual(self.server.post(CHAT, {"messages": messages, "max_tokens": 1}).status, 200)
        r = self.server.post("/v1/messages", {"messages": messages, "max_tokens": 1})
        self.assertEqual(r.status, 200, r.body)

    def test_R008_developers_are_one_system_message(self):
        turns = [{"role": role, "content": text} for role, text in (("developer", "First rule."), ("developer", "Second rule."), ("user", "hi"))]
        text = self.prompt(turns)
        self.assertEqual(text.count("<|im_start|>system"), 1)
        self.assertLess(text.index("First rule."), text.index("Second rule."))
        r = self.server.post("/v1/responses", {"input": turns, "max_output_tokens": 1})
        self.assertEqual(r.json["usage"]["input_tokens"], len(self.server.post("/tokenize", {"content": text}).json["tokens"]))

    def test_R009_a_call_without_text_has_five_spellings(self):
        def turns(result="5", **said):
            call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 2, \"b\": 3}"}}
            return [{"role": "user", "content": "2+3?"}, {"role": "assistant", **said, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c", "content": result}]
        spelled = [turns(content=None), turns(content=""), turns(), turns(content=[]), turns(result=[{"type": "text", "text": "5"}])]
        texts = {self.prompt(t) for t in spelled}
        self.assertEqual(len(texts), 1)
        self.assertNotIn("None", texts.pop())
        blocks = [{"role": "user", "content": "2+3?"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "add", "input": {"a": 2, "b": 3}}]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "5"}]}]
        count = self.server.post("/v1/messages/count_tokens", {"messages": blocks, "thinking": {"type": "enabled"}}).json["input_tokens"]
        whole = self.server.post(CHAT, {"messages": turns(), "max_tokens": 1, "chat_template_kwargs": {"enable_thinking": True}}).json
        self.assertEqual(count, whole["usage"]["prompt_tokens"])

    def test_R036_R038_a_schema_holds_after_the_thought_drafted_or_not(self):
        schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "big": {"type": "boolean"}},
                  "required": ["city", "big"], "additionalProperties": False}
        fields = {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}, "max_tokens": 400,
                  "chat_template_kwargs": {"enable_thinking": True}}
        answers = set()
        for block in (1, 4, "auto"):
            whole, joined = self.both(ASK, block=block, **fields)
            self.assertTrue(joined.reasoning)
            self.assertEqual(set(json.loads(joined.content)), {"city", "big"})
            answers.add((joined.reasoning, joined.content, whole["timings"]["tokens_sha256"]))
        self.assertEqual(len(answers), 1)

    def test_R046_the_next_turn_runs_only_what_is_new(self):
        first = [{"role": "user", "content": "What is 5 plus 6? " + "Think about it. " * 20}]
        said = self.server.post(CHAT, {"messages": first, "max_tokens": 60, "temperature": 0, "seed": 1}).json["choices"][0]["message"]
        second = {"messages": [*first, said, {"role": "user", "content": "And 7 plus 8?"}], "max_tokens": 40, "temperature": 0, "seed": 1}
        warm = self.server.post(CHAT, second).json
        with harness.Server("--cache-mem", "0") as s:
            cold = s.post(CHAT, second).json
        self.assertEqual(warm["choices"], cold["choices"])
        cached = warm["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertGreater(cached, 60)
        self.assertEqual(warm["timings"]["prompt_n"], warm["usage"]["prompt_tokens"] - cached)
        self.assertEqual(cold["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_R010_R012_characters_are_never_split(self):
        soup = self.bytes_soup()
        for seed in range(4):
            whole, joined = self.both("x", seed=seed, **soup)
            self.assertIn("\ufffd", joined.content, "the soup has invalid bytes")
            self.assertEqual(whole["choices"][0]["message"]["content"], joined.content)

    def test_R045_logprob_bytes_are_exact(self):
        soup = self.bytes_soup()
        whole, joined = self.both("x", seed=5, logprobs=True, top_logprobs=5, **soup)
        for entries in (whole["choices"][0]["logprobs"]["content"], joined.logprobs):
            data = b"".join(bytes(e["bytes"]) for e in entries)
            self.assertEqual(data.decode("utf-8", "replace"), joined.content)
            self.assertTrue(all(len(e["top_logprobs"]) == 5 for e in entries))
            self.assertTrue(all(e["logprob"] <= 0 for e in entries))

    def test_logprobs_are_of_the_tokens_told(self):
        whole, joined = self.both(logprobs=True, top_logprobs=2, reasoning_effort="none", max_tokens=40)
        entries = whole["choices"][0]["logprobs"]["content"]
        self.assertEqual(entries, joined.logprobs)
        self.assertEqual(len(entries), whole["usage"]["completion_tokens"])
        for e in entries:
            self.assertEqual(e["token"], e["top_logprobs"][0]["token"], "greedy takes the most likely")
            self.assertEqual(e["logprob"], e["top_logprobs"][0]["logprob"])

    def test_R013_shape_of_every_chunk(self):
        joined = Joined(self.server.chat_stream(ASK, max_tokens=60, stream_options={"include_usage": True}))
        first, last, usage = joined.chunks[0], joined.chunks[-2], joined.chunks[-1]
        self.assertEqual(first["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertEqual(last["choices"][0]["delta"], {})
        self.assertEqual(usage["choices"], [])
        for chunk in joined.chunks:
            self.assertEqual((chunk["id"], chunk["object"]), (first["id"], "chat.completion.chunk"))
        for chunk in joined.chunks[:-1]:
            self.assertIsNone(chunk["usage"])
            self.assertIn("finish_reason", chunk["choices"][0])
        for chunk in joined.chunks[1:-2]:
            self.assertIsNone(chunk["choices"][0]["finish_reason"])
            self.assertEqual(len(chunk["choices"][0]["delta"]), 1, "no role, one kind")
        self.assertTrue(joined.done)

    def test_R017_stop_strings_are_cut_exactly(self):
        whole, _ = self.both("Count from 1 to 9.", reasoning_effort="none", max_tokens=60)
        text = whole["choices"][0]["message"]["content"]
        self.assertGreater(len(text), 12)
        for at in range(2, len(text) - 5, 9 if harness.VERY_SLOW else 3):
            for length in (1, 2, 5):
                stop = text[at:at + length]
                reply, joined = self.both("Count from 1 to 9.", reasoning_effort="none", max_tokens=60, stop=[stop])
                self.assertEqual(joined.content, text[:text.index(stop)], stop)
                self.assertEqual(joined.finish, "stop")

    def test_R019_a_stop_that_never_comes_hides_nothing(self):
        plain, _ = self.both(ASK, max_tokens=200)
        held, joined = self.both(ASK, max_tokens=200, stop=["z" * 200, "11 is the answer that never comes"])
        self.assertEqual(held["choices"][0]["message"], plain["choices"][0]["message"])
        self.assertNotIn("think>", joined.content)
        self.assertNotIn("<|im_end|>", joined.content)

    def test_R020_stop_rules(self):
        for stop in (42, [42], "", ["a", ""], ["a", "b", "c", "d", "e"], {"a": 1}, [["a"]], [None], True):
            self.error(self.server.chat(stop=stop), 400, "stop")
        for stop in (None, [], "42", ["42"], ["a", "b", "c", "d"]):
            self.assertEqual(self.server.chat(stop=stop, max_tokens=2).status, 200)

    def test_R032_a_thought_that_is_cut_is_no_answer(self):
        whole, joined = self.both("What is 17*23?", max_tokens=6, chat_template_kwargs={"enable_thinking": True})
        self.assertTrue(joined.reasoning)
        self.assertFalse(whole["choices"][0]["message"]["content"])
        self.assertEqual(joined.finish, "length")
        self.assertEqual(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 6)

    def test_R034_R035_reasoning_is_split_the_same_way(self):
        whole, joined = self.both(ASK, max_tokens=400)
        self.assertTrue(joined.reasoning)
        self.assertTrue(joined.content)
        self.assertNotIn("think>", joined.reasoning + joined.content)
        off, joined = self.both(ASK, max_tokens=60, reasoning_effort="none")
        self.assertNotIn("reasoning_content", off["choices"][0]["message"])

    def test_R041_effort_none_turns_thinking_off(self):
        for fields in ({"reasoning_effort": "none"}, {"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_budget": 0}):
            whole, joined = self.both(max_tokens=40, **fields)
            self.assertEqual(joined.reasoning, "", fields)
            self.assertEqual(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 0)

    def test_budget_closes_the_thought(self):
        whole, _ = self.both(ASK, max_tokens=200, reasoning_budget=5)
        self.assertLessEqual(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 7)
        self.assertTrue(whole["choices"][0]["message"]["content"])

    def test_R039_usage(self):
        with_usage = Joined(self.server.chat_stream(stream_options={"include_usage": True}))
        without = Joined(self.server.chat_stream())
        whole = self.server.chat().json
        self.assertIsNone(without.usage)
        self.assertTrue(all(c["choices"] for c in without.chunks))
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            self.assertEqual(with_usage.usage[name], whole["usage"][name])
        self.assertEqual(whole["usage"]["prompt_tokens"] + whole["usage"]["completion_tokens"], whole["usage"]["total_tokens"])
        rendered = self.server.post("/apply-template", {"messages": [{"role": "user", "content": "Say hi"}]}).json["prompt"]
        count = len(self.server.post("/tokenize", {"content": rendered}).json["tokens"])
        self.assertEqual(whole["usage"]["prompt_tokens"], count)

    def test_R042_block_is_honoured(self):
        plain = self.server.chat(ASK, block=1, max_tokens=64).json
        self.assertEqual((plain["timings"]["draft_n"], plain["timings"]["block_mean"]), (0, 1))
        self.assertEqual(plain["timings"]["plain_ms_estimate"], plain["timings"]["predicted_ms"])
        # the first token comes out of the prompt, and its time is the prompt's
        speed = (plain["timings"]["predicted_n"] - 1) / plain["timings"]["predicted_ms"] * 1e3
        self.assertAlmostEqual(plain["timings"]["predicted_per_second"], speed, delta=speed / 200)
        for block in (2, 4, 8, "auto"):
            drafted = self.server.chat(ASK, block=block, max_tokens=64).json
            self.assertEqual(drafted["choices"][0]["message"], plain["choices"][0]["message"])
            self.assertEqual(drafted["timings"]["tokens_sha256"], plain["timings"]["tokens_sha256"])
            if block != "auto":
                self.assertGreater(drafted["timings"]["draft_n"], 0)
                self.assertGreater(drafted["timings"]["draft_n_accepted"], 0)
                self.assertLessEqual(drafted["timings"]["block_mean"], block)
        for block in (0, 9, -1, "fast", 2.5):
            self.error(self.server.chat(block=block), 400, "block")

    def test_R044_context_length(self):
        long = self.server.chat("word " * 6000)
        e = self.error(long, 400, "messages", "context_length_exceeded")
        self.assertEqual(e["n_ctx"], 4096)
        self.assertGreater(e["n_prompt_tokens"], 4096)
        self.assertIn("4096", e["message"])
        self.assertIn(str(e["n_prompt_tokens"]), e["message"])
        over = self.error(self.server.chat("hi", max_tokens=4096), 400, "max_tokens", "context_length_exceeded")
        self.assertIn("4096", over["message"])
        r = self.server.post(COMPLETIONS, {"prompt": "word " * 6000})
        self.error(r, 400, "prompt", "context_length_exceeded")
        self.error(self.server.post(CHAT, {"messages": [{"role": "user", "content": "word " * 6000}], "stream": True}), 400, "messages")

    def test_R069_tiny_temperatures_are_greedy(self):
        greedy = self.server.chat(ASK, temperature=0).json["timings"]["tokens_sha256"]
        for t in (1e-6, 1e-9, 0.0, -0.0):
            r = self.server.chat(ASK, temperature=t, seed=3)
            self.assertEqual(r.json["timings"]["tokens_sha256"], greedy, t)
        self.assertEqual(self.server.chat(ASK, temperature=1e-5).status, 200)
        for t in (1e9, -1, 2.0001):
            self.error(self.server.chat(temperature=t), 400, "temperature")

    def test_seed_fixes_the_text(self):
        one = [self.server.chat("Tell a story.", temperature=1, seed=11).json for _ in range(2)]
        self.assertEqual(one[0]["choices"], one[1]["choices"])
        self.assertEqual(one[0]["timings"]["seed"], 11)
        other = self.server.chat("Tell a story.", temperature=1, seed=12).json
        self.assertNotEqual(one[0]["timings"]["tokens_sha256"], other["timings"]["tokens_sha256"])
        free = self.server.chat("Tell a story.", temperature=1).json
        again = self.server.chat("Tell a story.", temperature=1, seed=free["timings"]["seed"]).json
        self.assertEqual(free["timings"]["tokens_sha256"], again["timings"]["tokens_sha256"])

    def test_choices(self):
        fields = {"n": 3, "seed": 5, "temperature": 1, "max_tokens": 24}
        whole = self.server.chat("Tell a story.", **fields).json
        self.assertEqual([c["index"] for c in whole["choices"]], [0, 1, 2])
        self.assertGreater(len({c["message"].get("reasoning_content") for c in whole["choices"]}), 1)
        parts = {0: "", 1: "", 2: ""}
        ends = []
        for e in self.server.chat_stream("Tell a story.", **fields):
            if e.data and e.data != "[DONE]":
                choice = e.json["choices"][0]
                delta = choice["delta"]
                parts[choice["index"]] += delta.get("reasoning_content", "") + (delta.get("content") or "")
                ends += [choice["index"]] if choice["finish_reason"] else []
        self.assertEqual(sorted(ends), [0, 1, 2])
        for c in whole["choices"]:
            m = c["message"]
            self.assertEqual(parts[c["index"]], m.get("reasoning_content", "") + (m["content"] or ""))
        self.error(self.server.chat(n=9), 400, "n")

    def test_numbers_that_no_integer_holds(self):
        for field in ("max_tokens", "n", "seed"):
            for text in ("1e308", "-1e308", "1e19", "1.5", "18446744073709551615", "1" + "0" * 400):
                body = f'{{"messages": [{{"role": "user", "content": "Say hi"}}], "{field}": {text}}}'
                r = self.server.call("POST", CHAT, raw=body)
                self.assertEqual((r.status, r.json["error"]["type"]), (400, "invalid_request_error"), body)
        self.error(self.server.chat(max_tokens=2**64 - 1), 400, "max_tokens")
        self.assertEqual(self.server.chat(max_tokens=2.0, seed=1.0).json["usage"]["completion_tokens"], 2)

    def test_completions_stream_and_old_logprobs(self):
        body = {"prompt": ["Once upon", "The capital"], "max_tokens": 12, "temperature": 0, "logprobs": 2}
        whole = self.server.post(COMPLETIONS, body).json
        texts, tokens, offsets = ["", ""], [[], []], [[], []]
        for e in self.server.stream(COMPLETIONS, body):
            if e.data != "[DONE]":
                c = e.json["choices"][0]
                texts[c["index"]] += c["text"]
                if c["logprobs"]:
                    tokens[c["index"]] += c["logprobs"]["tokens"]
                    offsets[c["index"]] += c["logprobs"]["text_offset"]
        for c in whole["choices"]:
            i, l = c["index"], c["logprobs"]
            self.assertEqual(c["text"], texts[i])
            self.assertEqual(l["tokens"], tokens[i])
            self.assertEqual(l["text_offset"], offsets[i])
            self.assertEqual(len(l["tokens"]), len(l["token_logprobs"]))
            self.assertEqual("".join(l["tokens"]), c["text"])
            for offset, token in zip(l["text_offset"], l["tokens"]):
                self.assertEqual(c["text"][offset:offset + len(token)], token)
            self.assertEqual(len(l["top_logprobs"][0]), 2)

    def test_old_logprobs_name_bytes_and_what_was_taken(self):
        def unique(pairs):
            self.assertEqual(len(dict(pairs)), len(pairs), pairs)
            return dict(pairs)
        soup = {k: v for k, v in self.bytes_soup().items() if k != "reasoning_effort"}
        for fields in (soup, {"temperature": 2, "max_tokens": 40, "top_k": 0, "top_p": 1}):
            body = {"prompt": "Once upon", "seed": 5, "logprobs": 1, **fields}
            whole = json.loads(self.server.post(COMPLETIONS, body).body, object_pairs_hook=unique)["choices"][0]
            l = whole["logprobs"]
            for token, top, logprob in zip(l["tokens"], l["top_logprobs"], l["token_logprobs"]):
                self.assertEqual(top[token], logprob)
                self.assertLessEqual(len(top), 2)
            self.assertEqual({len(top) for top in l["top_logprobs"]}, {1, 2})  # what was taken is the likeliest, or is not
            for offset, token in zip(l["text_offset"], l["tokens"]):
                self.assertTrue(token.startswith("bytes:\\x") or whole["text"][offset:offset + len(token)] == token, (offset, token))
            self.assertGreater(len(whole["text"].encode()), len(whole["text"]))  # characters are not bytes here
            offsets = [o for e in self.server.stream(COMPLETIONS, body) if e.data != "[DONE]" and e.json["choices"][0]["logprobs"]
                       for o in e.json["choices"][0]["logprobs"]["text_offset"]]
            self.assertEqual(offsets, l["text_offset"])

    def test_a_cut_item_is_incomplete(self):
        body = {"input": ASK, "max_output_tokens": 3, "temperature": 0}
        whole = self.server.post("/v1/responses", body).json
        self.assertEqual((whole["status"], [o["status"] for o in whole["output"]]), ("incomplete", ["incomplete"]))
        done = [e.json["item"] for e in self.server.stream("/v1/responses", body) if e.name == "response.output_item.done"]
        self.assertEqual([i["status"] for i in done], ["incomplete"])

    def test_calls_have_the_ids_of_their_api(self):
        tool = {"name": "get_weather", "input_schema": TOOL["function"]["parameters"]}
        body = {"messages": [{"role": "user", "content": "What is the weather in Paris?"}], "tools": [tool], "tool_choice": {"type": "any"},
                "max_tokens": 200, "temperature": 0}
        self.assertRegex(self.server.post("/v1/messages", body).json["content"][-1]["id"], "^toolu_[0-9a-f]+$")
        chat = self.server.chat("What is the weather in Paris?", tools=[TOOL], tool_choice="required", max_tokens=200).json
        self.assertRegex(chat["choices"][0]["message"]["tool_calls"][0]["id"], "^call_[0-9a-f]+$")

    def test_an_answer_that_is_begun_is_refused(self):
        turns = [{"role": "user", "content": ASK}, {"role": "assistant", "content": "It is"}]
        for path in ("/v1/messages", "/v1/messages/count_tokens"):
            r = self.server.post(path, {"messages": turns, "max_tokens": 5})
            self.assertEqual(r.status, 400)
            self.assertIn("messages.1: the last message is the assistant's", r.json["error"]["message"])

    def test_tool_calls_stream_as_they_are(self):
        whole, joined = self.both("What is the weather in Paris?", tools=[TOOL], reasoning_effort="none", max_tokens=80)
        message = whole["choices"][0]["message"]
        calls = message.get("tool_calls", [])
        self.assertTrue(calls, message)
        self.assertEqual(whole["choices"][0]["finish_reason"], "tool_calls")
        self.assertEqual([(c["function"]["name"], c["function"]["arguments"]) for c in calls], [(c["name"], c["arguments"]) for c in joined.calls])
        for c in joined.calls:
            self.assertIsInstance(json.loads(c["arguments"]), dict)
        self.assertEqual(len({c["id"] for c in calls} | {c["id"] for c in joined.calls}), len(calls) + len(joined.calls))

    def test_R030_without_tools_a_call_is_text(self):
        text = "You have a tool named get_weather. What is the weather in Paris?"
        whole, joined = self.both(text, reasoning_effort="none", max_tokens=80)
        self.assertEqual(joined.calls, [])
        self.assertNotIn("tool_calls", whole["choices"][0]["message"])

    def test_tools_that_break_the_rules(self):
        self.error(self.server.chat(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "nope"}}), 400, "tool_choice")
        r = self.server.chat(tools=[TOOL], tool_choice="required", reasoning_effort="none", max_tokens=200)
        choice = r.json["choices"][0]
        if choice["finish_reason"] != "length":  # the small king may not find the end of a string
            self.assertEqual(choice["finish_reason"], "tool_calls")
        self.assertEqual(choice["message"]["tool_calls"][0]["function"]["name"], "get_weather")

    def test_the_extra_routes(self):
        ids = self.server.post("/tokenize", {"content": "Hello <think>"}).json["tokens"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": ids}).json["content"], "Hello <think>")
        for path, body in (("/tokenize", {}), ("/tokenize", {"content": 5}), ("/detokenize", {"tokens": "x"}),
                           ("/detokenize", {"tokens": [-1]}), ("/apply-template", {}), ("/apply-template", {"messages": []})):
            self.error(self.server.post(path, body), 400)
        beyond = self.server.post("/detokenize", {"tokens": [1 << 30]}).json["error"]["message"]
        most = int(re.search(r"below (\d+)", beyond).group(1))  # ids
        self.error(self.server.post("/detokenize", {"tokens": [most]}), 400)
        self.assertEqual(self.server.post("/detokenize", {"tokens": [most - 1]}).status, 200)
        models = self.server.get("/v1/models").json["data"][0]
        self.assertEqual(models["meta"]["n_token"], most)
        self.assertGreaterEqual(models["meta"]["n_vocab"], most)
        self.assertEqual((models["meta"]["n_ctx"], models["meta"]["drafter"]), (4096, "drafter-q8"))

    def test_completions_refuse_what_they_do_not_do(self):
        for name, same, others in (("echo", False, (True, 1, "no")), ("best_of", 1, (2, True, 0)), ("suffix", None, (False, "", "x"))):
            self.assertEqual(self.server.post("/v1/completions", {"prompt": "a", "max_tokens": 1, name: same}).status, 200)
            for value in others:
                self.error(self.server.post("/v1/completions", {"prompt": "a", "max_tokens": 1, name: value}), 400, param=name)

    def test_metrics_are_well_formed(self):
        self.assertEqual(self.server.post(harness.CHAT, {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}).status, 200)
        seen, buckets = set(), {}
        for line in self.server.get("/metrics").body.decode().splitlines():
            if line.startswith("# TYPE "):
                seen.add(line.split()[2])
            elif not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                float(value)
                base = name.split("{")[0]
                for end in ("_bucket", "_sum", "_count"):
                    base = base[:-len(end)] if base.endswith(end) and base[:-len(end)] in seen else base
                self.assertIn(base, seen)
                if "_bucket{" in name:
                    buckets.setdefault(base, []).append(int(value))
                if name == base + "_count":
                    self.assertEqual(buckets[base], sorted(buckets[base]), "each bucket holds those before it")
                    self.assertEqual(buckets[base][-1], int(value))
        self.assertGreater(buckets["ingot_time_to_first_token_seconds"][-1], 0)
        with open(os.path.join(harness.ROOT, "docs", "http-api.md"), encoding="utf-8") as page:
            told = re.findall(r"^\| `([a-z_]+)(?:\{[a-z,]+\})?` \|", page.read().split("## Metrics")[1], re.M)
        self.assertEqual({f"ingot_{name}" for name in told}, seen)

    def test_routes_are_counted_by_their_names(self):
        with open(os.path.join(harness.ROOT, "docs", "http-api.md"), encoding="utf-8") as page:
            told = set(re.findall(r"`([a-z_]+)`", re.search(r"^Values of `route`: (.*?)$\n\n", page.read(), re.M | re.S).group(1)))
        paths = {"/live": "live", "/health": "health", "/metrics": "metrics", "/slots": "slots", "/models": "models", "/models/x": "model",
                 "/chat/completions": "chat", "/completions": "completions", "/responses": "responses", "/messages": "messages",
                 "/messages/count_tokens": "count_tokens", "/tokenize": "tokenize", "/detokenize": "detokenize",
                 "/apply-template": "template", "/": "page", "/embeddings": "embeddings", "/audio/speech": "audio",
                 "/images/edits": "images", "/nothing": "other"}
        self.assertEqual(set(paths.values()), told)
        for path, name in paths.items():
            label = f'ingot_requests_total{{route="{name}",outcome="refused"}}'
            before = self.server.metric(label)
            self.assertGreaterEqual(self.server.call("DELETE", path if path == "/" else "/v1" + path).status, 400)
            self.assertEqual(self.server.metric(label), before + 1, path)


if __name__ == "__main__":
    harness.main()
