"""test_sampling.py - how tokens are picked: what a request says about it, what the model's pack says, and what counts when both do."""
import json
import os
import shutil
import tempfile

import harness

ASK = "Tell a story."
NEUTRAL = {"temperature": 1, "top_p": 1, "top_k": 0}  # what is done when neither request nor pack says anything


def king_that_says(folder, **defaults):
    """The small king with other sampling defaults."""
    shutil.copytree(f"{harness.NUGGET}/king", folder)
    with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as f:
        json.dump({"eos_token_id": [4066, 4064], "do_sample": True, **defaults}, f)


class Given(harness.Case):
    def said(self, **fields):
        r = self.server.chat(ASK, **fields)
        self.assertEqual(r.status, 200, r.body)
        return r.json["choices"][0]["message"]

    def test_an_unknown_effort_is_refused_by_the_library(self):
        for word in ("huge", ""):
            e = self.error(self.server.chat(ASK, reasoning_effort=word), 400, "reasoning_effort")
            self.assertEqual(e["message"], f'reasoning_effort: found "{word}", want none, off, minimal, low, medium, high, xhigh or max')

    def test_top_p_of_nothing_is_one_token(self):
        hot = {"temperature": 2, "top_k": 0}
        self.assertNotEqual(self.said(**hot, top_p=1, seed=1), self.said())
        for p in (0, 0.0, 1e-60):
            self.assertEqual(self.said(**hot, top_p=p, seed=1), self.said(), p)


class OtherDialects(harness.Case):
    """/v1/messages and /v1/responses have the same fields."""

    def answer(self, path, **fields):
        limit = {"max_tokens": 24, "messages": [{"role": "user", "content": ASK}]}
        if path == "/v1/responses":
            limit = {"max_output_tokens": 24, "input": ASK, "reasoning": {"effort": "none"}}
        return self.server.post(path, {**limit, "temperature": 0, **fields})

    def text(self, path, **fields):
        r = self.answer(path, **fields)
        self.assertEqual(r.status, 200, r.body)
        items = r.json["output"][0]["content"] if "output" in r.json else r.json["content"]
        return items[0]["text"]

    def test_every_field_counts(self):
        hot = {"temperature": 2, "top_k": 0, "top_p": 1, "seed": 1}
        for path in ("/v1/messages", "/v1/responses"):
            plain, wild = self.text(path), self.text(path, **hot)
            self.assertEqual(self.text(path, **hot, min_p=1), plain)
            self.assertNotEqual(wild, plain)
            for name, value in (("presence_penalty", 2), ("frequency_penalty", 2), ("repetition_penalty", 3)):
                self.assertNotEqual(self.text(path, **{name: value}), plain, (path, name))
            self.assertEqual(self.text(path, grammar='root ::= "yes"'), "yes")
            token, = self.server.post("/tokenize", {"content": "!"}).json["tokens"]
            self.assertEqual(set(self.text(path, logit_bias={str(token): 100})), {"!"})

    def test_what_is_wrong_is_refused_by_name(self):
        for path in ("/v1/messages", "/v1/responses"):
            for name, value in (("min_p", 2), ("presence_penalty", 3), ("logit_bias", {"x": 1}), ("grammar", 1)):
                r = self.answer(path, **{name: value})
                self.assertEqual(r.status, 400, (path, name))
                self.assertIn(f"'{name}'", r.json["error"]["message"])


class OfThePack(harness.Case):
    """What a pack says counts like the same words in a request, and gives way to a request's own."""

    def said(self, server, **fields):
        r = server.post(harness.CHAT, {"messages": [{"role": "user", "content": ASK}], "max_tokens": 48, "seed": 5, **fields})
        self.assertEqual(r.status, 200, r.body)
        return r.json["choices"][0]["message"]

    def check(self, others, **defaults):
        """`others`: fields of a request that undo what the pack says."""
        with tempfile.TemporaryDirectory() as folder:
            king_that_says(f"{folder}/king", **defaults)
            with harness.Server("--king", f"{folder}/king") as s:
                silent, undone = self.said(s), self.said(s, **others)
        defaults = {**NEUTRAL, **defaults}
        self.assertEqual(silent, self.said(self.server, **defaults))
        self.assertEqual(undone, self.said(self.server, **{**defaults, **others}))
        self.assertNotEqual(silent, undone)

    def test_top_p_of_nothing_is_one_token(self):
        self.check({"top_p": 1}, temperature=2.0, top_p=0.0, top_k=0)

    def test_min_p_and_penalties(self):
        self.check({"min_p": 0}, temperature=2.0, min_p=0.9)
        self.check({"presence_penalty": 0}, temperature=0.0, presence_penalty=2.0)
        self.check({"repetition_penalty": 1}, temperature=0.0, repetition_penalty=3.0)


if __name__ == "__main__":
    harness.main()
