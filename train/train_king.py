"""Train the king: plain weights first, ternary ones in the last quarter.

    python train_king.py --out RUN_DIR

Matrices are optimized by Muon, everything else by AdamW. From step --ternary-from on (three
quarters of the steps unless given), the forward pass moves over --blend steps from the plain
weights to what a pack makes of them, and the gradient goes straight through; from then on the
learning rate falls linearly to zero. A checkpoint is written every --save steps, and the same
command resumes from it. RUN_DIR/plain.pt is the last state before the ternary phase: to train
longer, copy it over RUN_DIR/king.pt and raise --steps.
"""

import argparse
import copy
import functools
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")   # parallel over rows instead of inside operators

import torch
import torch.nn.functional as F

import batches
import corpus
from king import King, KingConfig, row_info, ternary_form
from muon import Muon


def answer_loss(king, batch):
    """-> summed cross entropy of the targets, their number, the hits."""
    tokens, start, target = batch
    hidden = king(tokens, row_info(start))[target]
    goal = torch.roll(tokens, -1, 1)[target]
    logits = king.lm_head(hidden)
    hits = (logits.detach().argmax(-1) == goal).sum()
    return F.cross_entropy(logits, goal, reduction="sum"), len(goal), int(hits)


class Trainer:
    """The king, its optimizers and one replica of it for each worker thread."""

    def __init__(self, args, king):
        self.args, self.king, self.step = args, king, 0
        self.packed = set(king.packed_matrices())
        tables = ("embed_tokens.weight", "lm_head.weight")
        named = dict(king.named_parameters())
        self.muon = Muon([named[n] for n in named if n in self.packed and n not in tables],
                         lr=args.lr)
        rest = [p for n, p in named.items() if n in tables or n not in self.packed]
        self.adam = torch.optim.AdamW(rest, lr=args.lr, betas=(0.9, 0.95), eps=1e-10,
                                      weight_decay=0.0)
        self.replicas = [copy.deepcopy(king) for _ in range(args.workers)]
        self.pool = ThreadPoolExecutor(args.workers)
        self.warm = False
        if args.compile:
            for replica in self.replicas:
                for layer in replica.layers:
                    layer.compile()

    def save(self, name):
        path = os.path.join(self.args.out, name)
        torch.save(dict(step=self.step, king=self.king.state_dict(), muon=self.muon.state_dict(),
                        adam=self.adam.state_dict()), path + ".new")
        os.replace(path + ".new", path)

    def load(self, path):
        state = torch.load(path, map_location=self.args.device)
        self.step = state["step"]
        self.king.load_state_dict(state["king"])
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])

    def schedule(self):
        """-> learning rate factor and share of the ternary form at this step."""
        a = self.args
        decay_from = a.ternary_from + a.blend
        rate = min(1.0, (self.step + 1) / 30, (a.steps - self.step) / (a.steps - decay_from))
        return rate, min(1.0, max(0, self.step - a.ternary_from) / a.blend)

    @torch.no_grad()
    def spread(self, ternary_share):
        """Give the replicas the weights of this step."""
        names = [n for n, _ in self.king.named_parameters()]

        def effective(name):
            p = self.king.get_parameter(name).detach()
            if name in self.packed and ternary_share > 0:
                return p.lerp(ternary_form(p, self.king.config), ternary_share)
            return p
        for name, value in zip(names, self.pool.map(effective, names)):
            for replica in self.replicas:
                replica.get_parameter(name).data = value

    def passes(self, worker, batch, total):
        """Forward and backward passes of the rows of one worker -> loss sum and hits."""
        replica, mine = self.replicas[worker], [x[worker::self.args.workers] for x in batch]
        loss_sum = hits = 0
        for i in range(0, len(mine[0]), self.args.micro):
            loss, _, h = answer_loss(replica, [x[i:i + self.args.micro] for x in mine])
            (loss / total).backward()
            loss_sum, hits = loss_sum + float(loss.detach()), hits + h
        return loss_sum, hits

    def train_step(self, batch):
        """-> mean loss of the targets, share of hits."""
        rate, share = self.schedule()
        self.spread(share)
        total = int(batch[2].sum())
        work = range(self.args.workers)
        run = map if not self.warm else self.pool.map     # compilation is not thread-safe
        self.warm = True
        done = list(run(lambda w: self.passes(w, batch, total), work))
        for name, p in self.king.named_parameters():
            parts = [r.get_parameter(name) for r in self.replicas]
            p.grad = sum(q.grad for q in parts)
            for q in parts:
                q.grad = None
        torch.nn.utils.clip_grad_norm_(self.adam.param_groups[0]["params"], 1.0)
        for group in (*self.muon.param_groups, *self.adam.param_groups):
            group["lr"] = self.args.lr * rate
        torch.set_num_threads(self.args.workers)
        self.muon.step()
        self.adam.step()
        torch.set_num_threads(1)
        self.step += 1
        return sum(l for l, _ in done) / total, sum(h for _, h in done) / total

    @torch.no_grad()
    def evaluate(self, batch):
        """Loss and hits on held-out rows with the weights of the last step."""
        loss = count = hits = 0
        for i in range(0, len(batch[0]), self.args.micro):
            l, n, h = answer_loss(self.replicas[0], [x[i:i + self.args.micro] for x in batch])
            loss, count, hits = loss + float(l), count + n, hits + h
        return f"loss {loss / count:.4f} next token {hits / count:.4f}"


def arguments():
    ap = argparse.ArgumentParser(description="Train the king.")
    ap.add_argument("--out", required=True, help="run folder")
    ap.add_argument("--steps", type=int, default=3600)
    ap.add_argument("--ternary-from", type=int)
    ap.add_argument("--blend", type=int, default=60)
    ap.add_argument("--rows", type=int, default=16, help="rows of 512 tokens in a late step")
    ap.add_argument("--ramp", type=int, nargs=2, default=(400, 1200), metavar=("A", "B"),
                    help="a quarter of the rows before step A, half of them before B")
    ap.add_argument("--drills-first", type=int, default=400,
                    help="first steps, in which half of the rows are drills")
    ap.add_argument("--micro", type=int, default=2, help="rows of one forward pass")
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--save", type=int, default=50)
    ap.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    ap.add_argument("--workers", type=int, help="threads that train: one a core, or one on a GPU")
    ap.add_argument("--feeders", type=int, help="processes that make batches")
    ap.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    args = ap.parse_args()
    cores = os.cpu_count()
    args.workers = args.workers or (cores if args.device == "cpu" else 1)
    args.feeders = args.feeders or (1 if args.device == "cpu" else max(1, cores - 1))
    if args.ternary_from is None:
        args.ternary_from = args.steps * 3 // 4
    if args.ternary_from + args.blend >= args.steps:
        ap.error("no step is left after the change to ternary weights")
    return args


def rows_of(args, step):
    return args.rows // (4 if step < args.ramp[0] else 2 if step < args.ramp[1] else 1)


def make_batch(args, step):
    """The rows of a step: samples of the corpus, and drills in copying."""
    tok, seed, rows = corpus.tokenizer(), f"{args.seed}/{step}", rows_of(args, step)
    drills = max(1, rows // (2 if step < args.drills_first else 8))
    copies = (drills + step % 2) // 2
    skills = rows * (3 if step < args.ternary_from else 2) // 8
    return batches.join(batches.corpus_rows(tok, rows - drills - skills, seed),
                        batches.skill_rows(tok, skills, seed),
                        batches.copy_rows(copies, corpus.BASE_VOCAB, seed),
                        batches.list_rows(tok, drills - copies, seed))


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    os.makedirs(args.out, exist_ok=True)
    tok = corpus.tokenizer()
    config = KingConfig()
    config.save(os.path.join(args.out, "king.json"))
    with open(os.path.join(args.out, "training.json"), "w", encoding="utf-8") as f:
        json.dump(dict(steps=args.steps, ternary_steps=args.steps - args.ternary_from,
                       tokens=sum(rows_of(args, i) for i in range(args.steps)) * batches.ROW), f)
    trainer = Trainer(args, King(config).to(args.device))
    last = os.path.join(args.out, "king.pt")
    if os.path.exists(last):
        trainer.load(last)
    test, test_copy = ([x.to(args.device) for x in rows] for rows in (
        batches.corpus_rows(tok, 24, "test", test=True),
        batches.copy_rows(4, corpus.BASE_VOCAB, "test")))
    print(f"{sum(p.numel() for p in trainer.king.parameters()) / 1e6:.2f} M parameters, "
          f"from step {trainer.step}", flush=True)
    begin, log = time.time(), []
    feed = batches.Feed(functools.partial(make_batch, args), trainer.step, args.feeders)
    while trainer.step < args.steps:
        if trainer.step == args.ternary_from:
            trainer.save("plain.pt")
        log.append(trainer.train_step([x.to(args.device) for x in feed.next()]))
        if trainer.step % 10 == 0:
            loss, hits = (sum(x) / len(log) for x in zip(*log))
            print(f"step {trainer.step} {time.time() - begin:.0f} s loss {loss:.4f} "
                  f"next token {hits:.4f}", flush=True)
            log = []
        if trainer.step % args.save == 0 or trainer.step == args.steps:
            trainer.save("king.pt")
            print(f"  held out: {trainer.evaluate(test)}; copying: {trainer.evaluate(test_copy)}",
                  flush=True)
    feed.close()


if __name__ == "__main__":
    main()
