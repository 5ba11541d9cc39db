"""Files of `ingot capture --prompts`: a king's own answers, with the hidden states that a drafter
reads. Any number of files of any size: what a step needs is read when it needs it.
"""

import random

import torch
from safetensors import safe_open
from torch import nn

import batches

HELD_OUT = 20           # every so many-th answer is for evaluation


class Answers:
    """The documents of several files, which must come from one king and hold the same layers."""

    def __init__(self, paths):
        self.files, self.documents, kings, layers = [], [], set(), set()
        for path in paths:
            f = safe_open(path, framework="pt")
            self.files.append(f)
            names = list(f.keys())
            kings.add(f.metadata()["king"])
            layers |= {tuple(sorted(int(n.split(".")[2]) for n in names
                                    if n.startswith(first + ".hidden.")))
                       for first in {n.split(".")[0] for n in names}}
            for name in sorted(n for n in names if n.endswith(".answer")):
                number = name.removesuffix(".answer")
                length, = f.get_slice(number + ".tokens").get_shape()
                answer = int(f.get_tensor(name)[0])
                if answer < length - 1:         # else no token follows one of the answer
                    self.documents.append((f, number, length, answer))
        if len(kings) != 1 or len(layers) != 1 or layers == {()}:
            raise SystemExit(f"captures: found {len(kings)} kings and hidden states of layers "
                             f"{sorted(layers)}, want those of one king and the same layers")
        if len(self.documents) < HELD_OUT:
            raise SystemExit(f"captures: found {len(self.documents)} answers, want at least "
                             f"{HELD_OUT}")
        self.king, self.layers = kings.pop(), list(layers.pop())
        self.train = [d for i, d in enumerate(self.documents) if i % HELD_OUT]
        self.held_out = self.documents[::HELD_OUT]

    def rows(self, documents, rows, length, seed):
        """Rows of documents drawn by the seed; one longer than a row gives a part of itself.
        -> tokens, start, target (see batches.py) and taps [rows, length, layers * D]."""
        r, picked = random.Random(seed), []
        while sum(p[1] for p in picked) < rows * length:
            d = r.choice(documents)
            n = min(d[2], length)
            # the part holds at least two tokens of the answer
            picked.append((d, n, r.randint(max(0, d[3] + 2 - n), d[2] - n)))
        batch, taps = batches.empty(rows, length), None
        for i, row, at in batches.arrange([p[1] for p in picked], rows, length):
            (f, number, _, answer), n, first = picked[i]
            ids = f.get_slice(number + ".tokens")[first:first + n].tolist()
            batches.place(batch, row, at, ids, [first + k >= answer for k in range(n)])
            hidden = torch.cat([f.get_slice(f"{number}.hidden.{k}")[first:first + n]
                                for k in self.layers], -1)
            if taps is None:
                taps = torch.zeros(rows, length, hidden.shape[1])
            taps[row, at:at + n] = hidden
        return *batch, taps


class Tables(nn.Module):
    """Embedding and output head of the king, of `ingot capture --tables`."""

    def __init__(self, path, dtype=torch.float32):
        super().__init__()
        with safe_open(path, framework="pt") as f:
            self.king, self.n_layer = f.metadata()["king"], int(f.metadata()["layers"])
            embedding, head = (f.get_tensor(n).to(dtype) for n in ("embedding", "head"))
        self.embed_tokens = nn.Embedding.from_pretrained(embedding)
        self.lm_head = nn.Linear(*head.t().shape, bias=False, device="meta")
        self.lm_head.weight = nn.Parameter(head, requires_grad=False)
