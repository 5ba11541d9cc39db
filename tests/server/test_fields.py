"""test_fields.py - fields of the published clients that a call does not honour: refused by name, or taken and without effect.

What docs/http-api.md says of them is checked here, field by field.
"""
import harness

CHAT, COMPLETIONS, RESPONSES, MESSAGES = harness.CHAT, harness.COMPLETIONS, "/v1/responses", "/v1/messages"
ASK = "What is 5 plus 6?"
TURN = [{"role": "user", "content": ASK}]
PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}}
LEAST = {CHAT: {"messages": TURN, "max_tokens": 12, "temperature": 0}, COMPLETIONS: {"prompt": ASK, "max_tokens": 12, "temperature": 0},
         RESPONSES: {"input": ASK, "max_output_tokens": 12, "temperature": 0}, MESSAGES: {"messages": TURN, "max_tokens": 12, "temperature": 0}}

# field: its name in this call, or None where there is nothing for it
REFUSED = {
    CHAT: {"functions": "tools", "function_call": "tool_choice", "audio": None, "web_search_options": None, "moderation": None, "system": "messages",
           "instructions": "messages", "max_output_tokens": "max_completion_tokens", "stop_sequences": "stop"},
    COMPLETIONS: {"messages": "prompt", "tools": None, "response_format": None, "top_logprobs": "logprobs", "max_completion_tokens": "max_tokens",
                  "max_output_tokens": "max_tokens", "stop_sequences": "stop", "suffix": None, "best_of": None, "echo": None},
    RESPONSES: {"background": None, "conversation": None, "prompt": None, "max_tool_calls": None, "moderation": None, "n": None, "logprobs": None,
                "top_logprobs": None, "messages": "input", "system": "instructions", "max_tokens": "max_output_tokens",
                "max_completion_tokens": "max_output_tokens", "stop_sequences": "stop", "response_format": "text.format",
                "reasoning_effort": "reasoning.effort", "thinking": "reasoning"},
    MESSAGES: {"mcp_servers": None, "container": None, "compaction": None, "thread": None, "n": None, "logprobs": None, "top_logprobs": None,
               "response_format": "output_config.format", "output_format": "output_config.format", "stop": "stop_sequences",
               "max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens", "instructions": "system", "reasoning": "thinking",
               "reasoning_effort": "output_config.effort", "reasoning_budget": "thinking.budget_tokens", "chat_template_kwargs": "thinking",
               "parallel_tool_calls": "tool_choice.disable_parallel_tool_use"},
}
VALUE = {"background": True, "echo": True, "best_of": 2, "suffix": "x"}  # others are refused whatever they hold

OPENAI = {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "priority", "safety_identifier": "s", "prompt_cache_key": "k",
          "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "explicit"}}
IGNORED = {
    CHAT: {**OPENAI, "verbosity": "low", "prediction": {"type": "content", "content": "5 plus 6"}},
    COMPLETIONS: {"user": "u"},
    RESPONSES: {**OPENAI, "include": ["reasoning.encrypted_content", "web_search_call.action.sources"], "truncation": "auto",
                "text": {"verbosity": "low"}, "reasoning": {"summary": "detailed", "generate_summary": "auto", "context": "all_turns", "mode": "pro"},
                "context_management": [{"type": "compaction", "compact_threshold": 5}], "client_metadata": {"a": "b"},
                "access_programs": {"cyber": "standard"}, "return_progress": True, "stream_options": {"include_obfuscation": False}},
    MESSAGES: {"metadata": {"user_id": "u"}, "service_tier": "auto", "speed": "fast", "inference_geo": "eu", "cache_control": {"type": "ephemeral"},
               "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "diagnostics": {"previous_message_id": "m"},
               "fallbacks": "default", "fallback_credit_token": "t", "billing_policy": {"type": "billing_policy", "bill_to": "self"},
               "user_profile_id": "u", "workspace_id": "w", "betas": ["x"], "output_config": {"task_budget": {"type": "tokens", "total": 5}},
               "thinking": {"type": "disabled", "display": "omitted"}},
}
OF_A_TOOL = {
    RESPONSES: ({"type": "function", "name": "f", "parameters": PARAMETERS},
                {"strict": True, "defer_loading": True, "allowed_callers": ["direct"], "output_schema": PARAMETERS}),
    MESSAGES: ({"name": "f", "input_schema": PARAMETERS},
               {"strict": True, "type": "custom", "cache_control": {"type": "ephemeral"}, "defer_loading": True, "allowed_callers": ["direct"],
                "eager_input_streaming": True, "input_examples": [{"a": "x"}]}),
}


class Fields(harness.Case):
    def said(self, path, **fields):
        """What was answered, and to how many tokens."""
        r = self.server.post(path, {**LEAST[path], **fields})
        self.assertEqual(r.status, 200, r.body)
        u = r.json["usage"]
        prompt = u.get("prompt_tokens", u.get("input_tokens")) + u.get("cache_read_input_tokens", 0)
        return prompt, r.json["timings"]["tokens_sha256"] if "timings" in r.json else r.json["content"]

    def refused(self, path, name, value):
        r = self.server.post(path, {**LEAST[path], name: value})
        self.assertEqual((r.status, r.json["error"].get("param", name)), (400, name), r.body)
        return r.json["error"]["message"]

    def test_what_is_not_honoured_is_refused_by_name(self):
        for path, names in REFUSED.items():
            for name, instead in names.items():
                with self.subTest(path=path, field=name):
                    message = self.refused(path, name, VALUE.get(name, "x"))
                    if instead:
                        self.assertEqual(message, f"'{name}': not a field of this call, which has '{instead}'")
                    else:
                        self.assertEqual(message, f"'{name}': not supported")
                    self.said(path, **{name: None})

    def test_what_has_no_effect_here_has_none(self):
        for path, fields in IGNORED.items():
            want = self.said(path)
            for name, value in fields.items():
                with self.subTest(path=path, field=name):
                    self.assertEqual(self.said(path, **{name: value}), want)

    def test_what_has_no_effect_in_a_tool_has_none(self):
        for path, (tool, fields) in OF_A_TOOL.items():
            want = self.said(path, tools=[tool])
            self.assertGreater(want[0], self.said(path)[0])
            for name, value in fields.items():
                with self.subTest(path=path, field=name):
                    self.assertEqual(self.said(path, tools=[{**tool, name: value}]), want)

    def test_what_has_no_effect_in_a_block_has_none(self):
        def turns(text, use, result):
            return [{"role": "user", "content": [{"type": "text", "text": ASK, **text}]},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}, **use}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r", **result}]}]
        cached = {"cache_control": {"type": "ephemeral"}}
        want = self.said(MESSAGES, messages=turns({}, {}, {}))
        self.assertEqual(self.said(MESSAGES, messages=turns(
            {"citations": [], **cached}, {"caller": {"type": "direct"}, **cached}, {"is_error": True, **cached})), want)

    def test_log_probabilities_are_no_part_of_a_response(self):
        self.assertIn("message.output_text.logprobs", self.refused(RESPONSES, "include", ["reasoning.encrypted_content", "message.output_text.logprobs"]))
        self.refused(RESPONSES, "include", "x")

    def test_a_tool_choice_of_another_kind_is_refused_by_its_kind(self):
        tools = [OF_A_TOOL[RESPONSES][0]]
        for wanted in ({"type": "allowed_tools", "mode": "auto", "tools": tools}, {"type": "custom", "name": "f"}, {"type": "web_search"}):
            r = self.server.post(RESPONSES, {**LEAST[RESPONSES], "tools": tools, "tool_choice": wanted})
            self.assertIn(f'found "{wanted["type"]}", want function', self.error(r, 400, "tool_choice")["message"])

    def test_responses_take_the_thinking_fields_of_a_chat(self):
        for fields in ({"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_budget": 0}, {"reasoning_budget": 4}):
            self.assertEqual(self.said(RESPONSES, **fields), self.said(CHAT, **fields))
            self.assertNotEqual(self.said(RESPONSES, **fields), self.said(RESPONSES))


if __name__ == "__main__":
    harness.main()
