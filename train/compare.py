"""Compare an exported king in the mlx-vlm reference with the trained model in PyTorch.

    python compare.py dump --run RUN_DIR --out dump.npz       (PyTorch environment)
    python compare.py check --king KING_DIR --out dump.npz    (reference environment)

`dump` stores the token ids and float32 logits of held-out samples; `check` runs the pack on the
same ids and prints the largest difference of the logits and both mean losses.
"""

import argparse
import random

import numpy as np

import corpus


def dump(args):
    import torch
    import torch.nn.functional as F
    from export import load_king
    from king import row_info
    king, tok, out = load_king(args.run).harden(), corpus.tokenizer(), {}
    r = random.Random("compare")
    with torch.no_grad():
        for i in range(args.count):
            p, c = (tok.encode(t).ids for t in corpus.render(corpus.draw(r, test=True)))
            ids = torch.tensor([p + c])
            padded = F.pad(ids, (0, -ids.shape[1] % 32))
            start = torch.zeros_like(padded, dtype=torch.bool)
            start[0, 0] = True
            h = king(padded, row_info(start))[0, :ids.shape[1]]
            out |= {f"ids{i}": ids[0].numpy(), f"prompt{i}": len(p),
                    f"logits{i}": king.lm_head(h).numpy()}
    np.savez(args.out, n=args.count, **out)


def loss(logits, ids):
    """Summed cross entropy of ids [n] under logits [n, V]."""
    x = logits.astype(np.float64)
    top = x.max(-1)
    logz = np.log(np.exp(x - top[:, None]).sum(-1)) + top
    return (logz - x[np.arange(len(ids)), ids]).sum()


def check(args):
    from evaluate import Reference
    reference, ref = Reference(args.king), np.load(args.out)
    worst, agree, losses, n = 0.0, 0, np.zeros(2), 0
    for i in range(int(ref["n"])):
        ids, p = ref[f"ids{i}"], int(ref[f"prompt{i}"])
        both = [x[p - 1:-1] for x in (reference.logits(ids.tolist()), ref[f"logits{i}"])]
        worst = max(worst, float(np.abs(both[0] - both[1]).max()))
        agree += int((both[0].argmax(-1) == both[1].argmax(-1)).sum())
        losses += [loss(x, ids[p:]) for x in both]
        n += len(ids) - p
    print(f"{n} answer tokens: largest logit difference {worst:.5f}, same top token "
          f"{agree / n:.5f}, loss of the pack {losses[0] / n:.5f}, of the trained model "
          f"{losses[1] / n:.5f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description="Compare a pack with the model it was made from.")
    ap.add_argument("what", choices=["dump", "check"])
    ap.add_argument("--run")
    ap.add_argument("--king")
    ap.add_argument("--out", required=True)
    ap.add_argument("--count", type=int, default=100)
    a = ap.parse_args()
    dump(a) if a.what == "dump" else check(a)
