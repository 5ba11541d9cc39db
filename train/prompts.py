"""Prompts of the corpus, a line each, for `ingot capture --prompts`.

    python prompts.py --count 8000 > prompts.jsonl
"""

import argparse
import json
import random

import corpus

if __name__ == "__main__":
    ap = argparse.ArgumentParser(description="Write prompts for a king to answer.")
    ap.add_argument("--count", type=int, default=8000)
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args()
    r, tok = random.Random(args.seed), corpus.tokenizer()
    for _ in range(args.count):
        print(json.dumps(dict(tokens=tok.encode(corpus.render(corpus.draw(r))[0]).ids)))
