"""Score a king's greedy answers on held-out samples, family by family.

    python scores.py --run RUN_DIR --count 40 [--plain] [--out scores.json]

With --plain the weights are used as trained, before the ternary phase; otherwise the king is what
its pack makes of it. "answer": the text after the think block is the expected one. Code counts
when it is valid: C and C++ must pass the compiler's syntax check, Python must compile.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
from collections import defaultdict

import corpus


def held_out(per_task, seed="scores"):
    """Held-out samples, `per_task` of each family (fewer where the family is rare)."""
    r, out, count, seen = random.Random(seed), [], defaultdict(int), set()
    for _ in range(100 * per_task):
        s = corpus.draw(r, test=True)
        text = "".join(corpus.render(s))
        if count[s["task"]] < per_task and text not in seen:
            seen.add(text)
            count[s["task"]] += 1
            out.append(s)
    return out


def compiles(text):
    """Whether the one program of an answer is valid; None without a compiler for it."""
    block = re.search(r"```(c|cpp|python)\n(.*?)\n```", text, re.S)
    if not block:
        return False
    language, body = block.groups()
    if language == "python":
        try:
            compile(body, "answer", "exec")
            return True
        except SyntaxError:
            return False
    compiler = shutil.which({"c": "cc", "cpp": "c++"}[language])
    if not compiler:
        return None
    run = subprocess.run([compiler, "-fsyntax-only", "-x", {"c": "c", "cpp": "c++"}[language], "-"],
                         input=body, text=True, capture_output=True, check=False)
    return run.returncode == 0


def visible(text):
    return text.split("</think>")[-1].strip()


class Table:
    """Counts by family: samples, right answers, right to the last token of the think block."""

    def __init__(self):
        self.rows, self.failures = defaultdict(lambda: dict(n=0, answer=0, exact=0)), []

    def add(self, sample, got):
        prompt, want = corpus.render(sample)
        right = visible(got) == visible(want)
        rows = [sample["task"] + (" (thinking)" if sample["thinking"] else ""), "all"]
        if sample["task"] == "code":
            ok = compiles(visible(got).removesuffix("<|im_end|>"))
            if ok is not None:
                self.rows["code that compiles"]["n"] += 1
                self.rows["code that compiles"]["answer"] += ok
        for row in rows:
            self.rows[row]["n"] += 1
            self.rows[row]["answer"] += right
            self.rows[row]["exact"] += got == want
        if not right:
            self.failures.append(dict(task=sample["task"], prompt=prompt[-200:], want=want,
                                      got=got))

    def show(self):
        for name, row in sorted(self.rows.items()):
            n = row["n"]
            print(f"{name:26} n {n:4} answer {row['answer'] / n:4.0%} "
                  f"exact {row['exact'] / n:4.0%}")

    def save(self, path):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(dict(rows=self.rows, failures=self.failures), f, indent=1,
                      ensure_ascii=False)


def score(king, samples, batch):
    import decode       # PyTorch; the rest of this file is used without it
    tok, table = corpus.tokenizer(), Table()
    stop = {tok.token_to_id("<|im_end|>"), tok.token_to_id("<|endoftext|>")}
    prompts = [tok.encode(corpus.render(s)[0]).ids for s in samples]
    for s, ids in zip(samples, decode.greedy(king, prompts, stop, batch=batch)):
        table.add(s, tok.decode(ids, skip_special_tokens=False))
    return table


def main():
    ap = argparse.ArgumentParser(description="Score greedy answers of a trained king.")
    ap.add_argument("--run", required=True)
    ap.add_argument("--count", type=int, default=40, help="samples of each family")
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--plain", action="store_true")
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--out")
    args = ap.parse_args()
    from export import load_king
    king = load_king(args.run).to(args.device)
    if not args.plain:
        king.harden()
    table = score(king, held_out(args.count), args.batch)
    table.show()
    if args.out:
        table.save(args.out)


if __name__ == "__main__":
    main()
