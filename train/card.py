"""Write the model card of an exported pair from what evaluate.py measured.

    python card.py --work WORK_DIR

Reads the packs in WORK_DIR/nugget, and of WORK_DIR scores.json, accept-q8.json, accept-q4.json,
tries.json, and training.json of king and drafter; writes WORK_DIR/nugget/README.md.
"""

import argparse
import json
import os

WEAK = 0.8          # families below this share of right answers are named as weak

INTRO = """# nugget: a small king and its drafter

A ternary language model in the Hadamard pack layout (schema 2) with a DFlash 2 drafter, both
trained from scratch on synthetic data, small enough to live in the source tree. They make `make
run` work without a download and give the tests a real pair. The model is a toy: it shows the
machinery, not intelligence. This page is written by `train/card.py`.
"""

TAIL = """
`golden.json`: 12 prompts with ids, greedy continuations, logit margins and accepted drafts per step
at blocks 4 and 8 with the q8 drafter, from mlx-vlm with float32 activations. Where a margin is
below 0.01, a correct engine may choose differently.

Trained from scratch on text made by the programs in `train/`; no licence of others applies.
"""


def megabytes(folder):
    return f"{os.path.getsize(os.path.join(folder, 'model.safetensors')) / 1e6:.1f} MB"


def parts(nugget):
    """The table of folders."""
    def config(name):
        with open(os.path.join(nugget, name, "config.json"), encoding="utf-8") as f:
            return json.load(f)
    king, draft = config("king"), config("drafter-q8")
    t, d = king["text_config"], draft["dflash_config"]
    full = t["layer_types"].count("full_attention")
    taps = ", ".join(map(str, d["target_layer_ids"]))
    lines = {
        "king": f"{t['num_hidden_layers']} layers ({t['num_hidden_layers'] - full} gated delta "
                f"nets, {full} gated attention), hidden {t['hidden_size']}, MLP "
                f"{t['intermediate_size']}, vocabulary {t['vocab_size']}, Hadamard block "
                f"{king['modules'][0]['block']}; no vision tower",
        "drafter-q8": f"{draft['num_hidden_layers']} layers, block {d['block_size']}, taps after "
                      f"layers {taps}, mask id {d['mask_token_id']}; linears and codebooks affine "
                      "8-bit g64",
        "drafter-q4": "the same weights; linears affine 4-bit g64, codebooks bfloat16 under their "
                      "bare names"}
    rows = [f"| `{name}/` | {megabytes(os.path.join(nugget, name))} | {text} |"
            for name, text in lines.items()]
    return "\n".join(["| folder | weights | content |", "|---|---|---|", *rows])


def answers(rows):
    """The table of right answers, and a sentence about the weak families."""
    def share(name):
        row = rows.get(name)
        return f"{row['answer'] / row['n']:.0%} of {row['n']}" if row and row["n"] else ""
    names = sorted({n.removesuffix(" (thinking)") for n in rows} - {"all", "code that compiles"})
    lines = [f"| {n} | {share(n)} | {share(n + ' (thinking)')} |" for n in names]
    weak = sorted(n for n, row in rows.items() if n != "all" and row["answer"] < WEAK * row["n"])
    table = "\n".join(["| family | plain | thinking |", "|---|---|---|", *lines])
    return (f"Right answers (the text after the think block, greedy, by ingot) to held-out "
            f"questions: {share('all')}. Programs that compile: "
            f"{share('code that compiles')}.\n\n{table}\n\n"
            f"Weak, below {WEAK:.0%}: {', '.join(weak) or 'none of these'}.")


def acceptance(q8, q4):
    """Tokens a step of the q8 drafter by family and block; of q4 the mean only."""
    blocks = list(q8)
    lines = [f"| {name} | {' | '.join(str(q8[b].get(name, '')) for b in blocks)} |"
             for name in sorted(q8[blocks[0]], key=lambda n: (n == "all", n))]
    lines.append(f"| all, q4 | {' | '.join(str(q4.get(b, {}).get('all', '')) for b in blocks)} |")
    return "\n".join([f"| family | {' | '.join(blocks)} |", "|---" * (len(blocks) + 1) + "|",
                      *lines])


def tries(items):
    """Conversations, one line for each turn."""
    return "\n".join("* " + " → ".join(f"{turn['role']}: {turn['content']!r}" for turn in item)
                     for item in items)


def card(work):
    def load(name):
        with open(os.path.join(work, name), encoding="utf-8") as f:
            return json.load(f)
    king, drafter = load("king/training.json"), load("drafter/training.json")
    return "\n".join([
        INTRO, parts(os.path.join(work, "nugget")),
        "\nReplies end with `<|im_end|>`; `generation_config.json` names that and "
        "`<|endoftext|>`.\n\n## Training\n",
        f"King: {king['steps']} steps, {king['tokens'] / 1e6:.1f} M tokens, the last "
        f"{king['ternary_steps']} steps with ternary weights. Drafter: {drafter['steps']} steps on "
        f"{drafter['answers']} greedy answers of the king. How: `train/README.md`.",
        "\n## What it can do\n", answers(load("scores.json")["rows"]),
        "\n## Tokens a step\n\nGreedy, by ingot, drafts of the drafter only (`--no-copy`), at most "
        "128 tokens.\n", acceptance(load("accept-q8.json"), load("accept-q4.json")),
        "\n## Ten tries\n", tries(load("tries.json")), TAIL])


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description="Write the model card.")
    ap.add_argument("--work", required=True)
    folder = ap.parse_args().work
    with open(os.path.join(folder, "nugget", "README.md"), "w", encoding="utf-8") as out:
        out.write(card(folder))
