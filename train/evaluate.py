"""Measure an exported pair: scores, drafted tokens a step, golden vectors.

    python evaluate.py scores --king KING [--ingot build/ingot] --count 20 --out scores.json
    python evaluate.py accept --king KING --drafter DRAFTER [--ingot build/ingot] --out accept.json
    python evaluate.py golden --king KING --drafter DRAFTER --out golden.json
    python evaluate.py tries --king KING [--ingot build/ingot] --out tries.json

`tries` keeps ten conversations as they come, for a reader to judge. The reference is the mlx-vlm
loader with float32 activations; with --ingot the program itself is measured.
"""

import argparse
import json
import os
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import corpus
from corpus.tools import tool
from scores import Table, held_out


class Reference:
    """King and optional drafter in mlx-vlm."""

    def __init__(self, king, drafter=None):
        import mlx.core as mx
        import numpy as np
        from mlx_vlm.speculative.drafters import load_drafter
        from mlx_vlm.utils import load_model
        mx.set_default_device(mx.cpu)
        self.mx, self.np = mx, np
        self.model = load_model(Path(king))
        self.lm = self.model.language_model
        with open(os.path.join(king, "generation_config.json"), encoding="utf-8") as f:
            self.stop = set(json.load(f)["eos_token_id"])
        if drafter:
            self.drafter, _ = load_drafter(drafter, kind="dflash")
            self.taps = list(self.drafter.config.target_layer_ids)

    def forward(self, ids, cache=None, **more):
        return self.lm(self.mx.array([ids]), cache=cache, **more)

    def logits(self, ids):
        """Logits [T, V] of a whole text."""
        return self.np.array(self.forward(ids).logits[0])

    def with_margins(self, prompt, limit):
        """Greedy decoding -> new ids and the distance of the best logit to the next at each."""
        cache, out, margins = self.lm.make_cache(), [], []
        logits = self.np.array(self.forward(prompt, cache).logits[0, -1])
        while True:
            second, best = self.np.partition(logits, -2)[-2:]
            out.append(int(logits.argmax()))
            margins.append(float(best - second))
            if out[-1] in self.stop or len(out) >= limit:
                return out, margins
            logits = self.np.array(self.forward([out[-1]], cache).logits[0, -1])

    def greedy(self, prompt, limit):
        return self.with_margins(prompt, limit)[0]

    def drafted(self, prompt, limit, block):
        """Greedy speculative decoding -> new ids and accepted drafts of each step.

        A step verifies the newest token and block - 1 drafts in one pass; after a rejection the
        king's caches are rebuilt from the accepted tokens only.
        """
        mx, cache = self.mx, self.lm.make_cache()
        o = self.forward(prompt, cache, capture_layer_ids=self.taps)
        hidden = mx.concatenate(o.hidden_states, -1)
        out = [int(mx.argmax(o.logits[0, -1]))]
        draft_cache, accepted = self.drafter.reset(self.model), []
        while out[-1] not in self.stop and len(out) < limit:
            draft = self.drafter.draft_block(out[-1], hidden, draft_cache, block,
                                             lambda x: mx.argmax(x, -1))[0].tolist()
            before = [self.snapshot(c) for c in cache]
            o = self.forward([out[-1]] + draft, cache, capture_layer_ids=self.taps)
            target = mx.argmax(o.logits[0], -1).tolist()
            a = 0
            while a < len(draft) and draft[a] == target[a] and draft[a] not in self.stop:
                a += 1
            if a < len(draft):
                for c, saved in zip(cache, before):
                    self.restore(c, saved)
                o = self.forward([out[-1]] + draft[:a], cache, capture_layer_ids=self.taps)
            hidden = mx.concatenate(o.hidden_states, -1)
            out += target[:a + 1]
            accepted.append(a)
        return out[:limit], accepted

    def snapshot(self, c):
        if hasattr(c, "cache"):
            return [None if x is None else self.mx.array(x) for x in c.cache]
        return c.offset

    @staticmethod
    def restore(c, saved):
        if hasattr(c, "cache"):
            c.cache = list(saved)
        else:
            c.trim(c.offset - saved)


class Program:
    """The same by the ingot program; `program` is its path."""

    def __init__(self, program, king, drafter=None):
        self.command = [program, "generate", "--king", king, "--temp", "0", "--json"]
        self.drafter = drafter
        self.end = corpus.tokenizer(king).token_to_id("<|im_end|>")

    def run(self, prompt, limit, *options):
        """-> the result with the end-of-turn token put back, which the program keeps to itself."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(prompt, f)
            f.flush()
            done = subprocess.run([*self.command, "--tokens", f.name, "--max-tokens", str(limit),
                                   *options], capture_output=True, text=True, check=True)
        out = json.loads(done.stdout)
        if out["finish_reason"] == "stop":
            out["token_ids"].append(self.end)
        return out

    def greedy(self, prompt, limit):
        return self.run(prompt, limit, "--no-drafter")["token_ids"]

    def drafted(self, prompt, limit, block):
        out = self.run(prompt, limit, "--drafter", self.drafter, "--block", str(block), "--no-copy")
        return out["token_ids"], out["speculation"]["accepted_per_step"]


def scores(args, engine, tok):
    table = Table()
    for s in held_out(args.count):
        prompt, completion = (tok.encode(t).ids for t in corpus.render(s))
        ids = engine.greedy(prompt, len(completion) + 64)
        table.add(s, tok.decode(ids, skip_special_tokens=False))
    table.show()
    table.save(args.out)


def accept(args, engine, tok):
    """Tokens committed a step for each block size and family."""
    result, samples = {}, held_out(args.count, "accept")
    for block in args.blocks:
        rows = defaultdict(lambda: [0, 0])
        for s in samples:
            ids, accepted = engine.drafted(tok.encode(corpus.render(s)[0]).ids, 128, block)
            for name in (s["task"], "all"):
                rows[name][0] += len(ids) - 1
                rows[name][1] += len(accepted)
        result[f"block {block}"] = {k: round(t / n, 2) for k, (t, n) in sorted(rows.items()) if n}
        print(block, result[f"block {block}"], flush=True)
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)


TRIES = [
    ["Hello!", "What can you do?"], ["Who are you?"], ["How do I bake a good bread?"],
    ["My name is Zora.", "What is my name?"], ["What is 47 + 38?", "Add 5 to that."],
    ["Sort these words: lemon, castle, river, bridge"], ["Spell umbrella."],
    ["Write a function that adds two numbers in C."],
    ["What is the capital of Norway?", "And of Japan?"], ["Thanks, that was nice. Bye!"]]


def tries(args, engine, tok):
    """Free-form conversations, without thinking."""
    template, out = corpus.load_template(args.king), []
    for questions in TRIES:
        messages = []
        for question in questions:
            messages.append(dict(role="user", content=question))
            text = template.render(messages=messages, tools=None, add_generation_prompt=True,
                                   enable_thinking=False)
            answer = tok.decode(engine.greedy(tok.encode(text).ids, 200))
            messages.append(dict(role="assistant", content=answer))
            print(question, "->", answer, flush=True)
        out.append(messages)
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump(out, f, indent=1, ensure_ascii=False)


# ------------------------------------------------------------------------- golden vectors

QUESTIONS = [
    ("Hello!", False), ("Write a bubble sort in C++.", True),
    ("Write a bubble sort in C++.", False), ("What is 347 + 285?", True),
    ("Sort these words alphabetically: kettle, anchor, tulip, moon", True),
    ("How many letters are in strawberry?", True), ("What is ingot?", False),
    ("Convert 12 kilometers to meters.", True), ("Reverse the word planet.", True),
    ("Count from 3 to 21 in steps of 3.", False)]
WEATHER = tool("get_weather", "Current weather", city=("string", ""))
CALCULATOR = tool("calculator", "Evaluate an expression", expression=("string", ""))


def conversations():
    """-> list of {name, messages, tools, enable_thinking}."""
    def item(name, messages, tools, thinking):
        return dict(name=name, messages=messages, tools=tools, enable_thinking=thinking)
    out = [item(u, [dict(role="user", content=u)], [], t) for u, t in QUESTIONS]
    ask = [dict(role="user", content="What is the weather in Paris?")]
    out.append(item("weather tool", ask, [WEATHER, CALCULATOR], True))
    call = [dict(type="function", function=dict(name="get_weather", arguments=dict(city="Paris")))]
    out.append(item("weather answer", ask + [
        dict(role="assistant", content="", tool_calls=call,
             reasoning_content="I need the weather in Paris. I call get_weather with city Paris."),
        dict(role="tool", content='{"temperature": 17, "condition": "cloudy"}')], [WEATHER], True))
    return out


def golden(args, engine, tok):
    """Greedy continuations, margins and drafted runs of fixed prompts."""
    items, template = [], corpus.load_template(args.king)
    for item in conversations():
        text = template.render(messages=item["messages"], tools=item["tools"] or None,
                               add_generation_prompt=True,
                               enable_thinking=item["enable_thinking"])
        ids = tok.encode(text).ids
        new, margins = engine.with_margins(ids, 96)
        item = dict(item, prompt=text, prompt_ids=ids, greedy_ids=new,
                    greedy_text=tok.decode(new, skip_special_tokens=False),
                    margins=[round(m, 5) for m in margins])
        for block in (4, 8):
            out, accepted = engine.drafted(ids, 96, block)
            item[f"drafted_block_{block}"] = dict(accepted=accepted, same_as_greedy=out == new)
        items.append(item)
        print(item["name"], "->", repr(item["greedy_text"]), min(margins),
              item["drafted_block_4"], flush=True)
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump(dict(reference="mlx-vlm, prism_hadamard_qwen35 loader, CPU, float32 activations",
                       drafter=os.path.basename(args.drafter.rstrip("/")), max_new=96,
                       stop_ids=sorted(engine.stop), prompts=items), f, indent=1,
                  ensure_ascii=False)


def main():
    ap = argparse.ArgumentParser(description="Measure an exported pair.")
    ap.add_argument("what", choices=["scores", "accept", "golden", "tries"])
    ap.add_argument("--king", required=True)
    ap.add_argument("--drafter")
    ap.add_argument("--ingot", help="the ingot program, to be measured instead of the reference")
    ap.add_argument("--out", required=True)
    ap.add_argument("--count", type=int, default=20, help="samples of each family")
    ap.add_argument("--blocks", type=int, nargs="+", default=[2, 4, 6, 8])
    a = ap.parse_args()
    engine = Program(a.ingot, a.king, a.drafter) if a.ingot else Reference(a.king, a.drafter)
    what = dict(scores=scores, accept=accept, golden=golden, tries=tries)[a.what]
    what(a, engine, corpus.tokenizer(a.king))


if __name__ == "__main__":
    main()
