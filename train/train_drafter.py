"""Train a drafter on a king's own answers, thinking and tool calls included.

    ingot capture --king KING --prompts PROMPTS --hidden 1,2,3 --logits none --out answers-0.safetensors
    ingot capture --king KING --tables tables.safetensors
    python train_drafter.py --tables tables.safetensors --out DRAFT_DIR answers-*.safetensors

The king may be any that ingot loads; its layers in the captures are those that the drafter reads.
For each row a number of anchors is drawn from the answers. A block starts at its anchor; its rows
attend to the king's residual streams before the anchor and to each other. The loss is the cross
entropy of the king's head on the drafter's rows, weighted by depth, plus that of the candidate
selector over the top candidates. The rows of a step depend on its number only, and a checkpoint is
written every --save steps: the same command goes on where it stopped.
"""

import argparse
import contextlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F

from captures import Answers, Tables
from drafter import Drafter, DrafterConfig
from king import row_info
from muon import Muon


# ------------------------------------------------------------------------- blocks


def draw_blocks(tokens, target, blocks, size, generator):
    """Anchor positions [B, N], the tokens after them [B, N, size - 1] and which of those count."""
    T = target.shape[1]
    inside = target.clone()
    inside[:, 0] = False
    inside[:, 1:] &= target[:, :-1]                        # the anchor is an answer token itself
    anchor = torch.multinomial(inside.float() + 1e-9, blocks, replacement=True, generator=generator)
    at = anchor.unsqueeze(-1) + torch.arange(size - 1, device=anchor.device)
    at = at.clamp_max(T - 1)
    valid = target.gather(1, at.flatten(1)).view_as(at).long().cummin(-1).values.bool()
    after = torch.roll(tokens, -1, 1).gather(1, at.flatten(1)).view_as(at)
    return anchor, after, valid & inside.gather(1, anchor).unsqueeze(-1)


def block_mask(start, anchor, size):
    """Mask [B, 1, N*size, T + N*size]: the context before the anchor, and the own block."""
    B, T = start.shape
    doc = start.long().cumsum(1)
    context = (torch.arange(T, device=start.device) < anchor.unsqueeze(-1)) & (
        doc.unsqueeze(1) == doc.gather(1, anchor).unsqueeze(-1))
    n = torch.arange(anchor.shape[1] * size, device=start.device) // size
    own = (n.unsqueeze(0) == n.unsqueeze(1)).expand(B, -1, -1)
    return torch.cat([context.repeat_interleave(size, dim=1), own], -1).unsqueeze(1)


def losses(model, tables, batch, blocks, generator, gamma=4.0):
    """-> weighted loss sum, weight sum, right chains by depth, blocks by depth."""
    tokens, start, target, taps = batch
    c = model.config
    size, pos = c.block_size, row_info(start)["pos"]
    anchor, after, valid = draw_blocks(tokens, target, blocks, size, generator)
    row = torch.arange(size, device=tokens.device)
    ids = torch.full((*anchor.shape, size), c.mask_token_id, device=tokens.device)
    ids[..., 0] = tokens.gather(1, anchor)
    block_pos = (pos.gather(1, anchor).unsqueeze(-1) + row).flatten(1)
    h = model(taps, tables.embed_tokens(ids.flatten(1)).float(), pos, block_pos,
              block_mask(start, anchor, size)).unflatten(1, (-1, size))[:, :, 1:]
    weight = torch.exp(-row[:-1] / gamma).expand(valid.shape)[valid]
    h, goal = h[valid], after[valid]
    logits = tables.lm_head(h.to(tables.lm_head.weight.dtype)).float()
    before = torch.cat([ids[..., :1], after[..., :-1]], -1)[valid]
    unary, candidates = logits.topk(c.selector_top_k, -1)
    hit = candidates == goal.unsqueeze(-1)
    scores = unary + model.candidate_selector.edges(h, before, candidates)
    loss = F.cross_entropy(logits, goal, reduction="none") + hit.any(-1) * F.cross_entropy(
        scores, hit.float().argmax(-1), reduction="none")
    with torch.no_grad():
        good = torch.zeros_like(valid)
        good[valid] = candidates.gather(-1, scores.argmax(-1, keepdim=True))[:, 0] == goal
        chains = (good & valid).long().cumprod(-1)
    return (weight * loss).sum(), weight.sum(), chains.sum((0, 1)), valid.sum((0, 1))


def report(chains, valid):
    p = (chains / valid[0].clamp_min(1)).tolist()
    return (f"chains {' '.join(f'{x:.2f}' for x in p)}; tokens a step at block 4 "
            f"{1 + sum(p[:3]):.2f}, at 8 {1 + sum(p):.2f}")


# ------------------------------------------------------------------------- training


class Trainer:
    """The drafter, its optimizers, and a thread that reads the rows of the next step."""

    def __init__(self, args, tables, model, answers):
        self.args, self.tables, self.model, self.answers, self.step = args, tables, model, answers, 0
        named = dict(model.named_parameters())
        matrices = [p for n, p in named.items() if p.dim() == 2 and "codebook" not in n]
        others = [p for n, p in named.items() if p.dim() != 2 or "codebook" in n]
        self.optimizers = [Muon(matrices, lr=args.lr, weight_decay=0.02),
                           torch.optim.AdamW(others, lr=args.lr, betas=(0.9, 0.95),
                                             weight_decay=0.0)]
        self.reader, self.ahead = ThreadPoolExecutor(1), {}

    def save(self):
        path = os.path.join(self.args.out, "drafter.pt")
        torch.save(dict(step=self.step, model=self.model.state_dict(),
                        optimizers=[o.state_dict() for o in self.optimizers]), path + ".new")
        os.replace(path + ".new", path)

    def load(self, path):
        state = torch.load(path, map_location=self.args.device)
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        for o, s in zip(self.optimizers, state["optimizers"]):
            o.load_state_dict(s)

    def read(self, documents, seed):
        return self.answers.rows(documents, self.args.rows, self.args.length, seed)

    def batch(self):
        """The rows of this step; those of the next are read meanwhile."""
        for step in (self.step, self.step + 1):
            if step not in self.ahead:
                self.ahead[step] = self.reader.submit(self.read, self.answers.train,
                                                      f"{self.args.seed}/{step}")
        return self.ahead.pop(self.step).result()

    def losses(self, batch, generator):
        """On GPUs products are made in bfloat16."""
        fast = self.args.device != "cpu"
        with torch.autocast(self.args.device, torch.bfloat16) if fast else contextlib.nullcontext():
            return losses(self.model, self.tables, [x.to(self.args.device) for x in batch],
                          self.args.blocks, generator)

    def train_step(self):
        a = self.args
        rate = min(1.0, (self.step + 1) / 30, (a.steps - self.step) / (a.steps * a.decay))
        for o in self.optimizers:
            for group in o.param_groups:
                group["lr"] = a.lr * rate
        g = torch.Generator(a.device).manual_seed(a.seed * 1000003 + self.step)
        loss, weight, chains, valid = self.losses(self.batch(), g)
        (loss / weight).backward()
        for o in self.optimizers:
            o.step()
            o.zero_grad()
        self.step += 1
        return float(loss.detach() / weight), chains, valid

    @torch.no_grad()
    def evaluate(self, batches=4):
        """On held-out answers, the same at every call."""
        g, sums = torch.Generator(self.args.device).manual_seed(0), []
        for i in range(batches):
            sums.append(self.losses(self.read(self.answers.held_out, f"held out {i}"), g))
        loss, weight, chains, valid = (sum(x) for x in zip(*sums))
        return f"loss {float(loss / weight):.3f} {report(chains, valid)}"


def arguments():
    ap = argparse.ArgumentParser(description="Train a drafter on captured answers of its king.")
    ap.add_argument("captures", nargs="+", help="files of ingot capture --prompts")
    ap.add_argument("--tables", required=True, help="file of ingot capture --tables")
    ap.add_argument("--out", required=True)
    ap.add_argument("--config", help="JSON file: fields of DrafterConfig that differ")
    ap.add_argument("--steps", type=int, default=900)
    ap.add_argument("--seed", type=int, default=3)
    ap.add_argument("--rows", type=int, default=4, help="rows in a step")
    ap.add_argument("--length", type=int, default=512, help="tokens in a row")
    ap.add_argument("--blocks", type=int, default=48, help="blocks in a row")
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--decay", type=float, default=0.5, help="share of the steps with decay")
    ap.add_argument("--save", type=int, default=100)
    ap.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu",
                    help="cpu, cuda or mps")
    return ap.parse_args()


def configure(args, answers, tables):
    """The drafter's dimensions: those of the king, what --config says, else those of the nugget."""
    if answers.king != tables.king:
        raise SystemExit(f"{args.tables}: of king {tables.king[:12]}, the captures are of "
                         f"{answers.king[:12]}")
    given = {}
    if args.config:
        with open(args.config, encoding="utf-8") as f:
            given = json.load(f)
    vocab, width = tables.embed_tokens.weight.shape
    config = DrafterConfig(**given | dict(
        num_target_layers=tables.n_layer, vocab_size=vocab, hidden_size=width,
        target_layer_ids=answers.layers))
    if not 0 <= config.mask_token_id < vocab:
        raise SystemExit(f"mask_token_id: found {config.mask_token_id}, want one below {vocab} "
                         "(see --config)")
    if args.length > config.sliding_window:
        raise SystemExit(f"--length: found {args.length}, want at most the drafter's window of "
                         f"{config.sliding_window}")
    return config


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    answers = Answers(args.captures)
    tables = Tables(args.tables, torch.float32 if args.device == "cpu" else torch.bfloat16)
    config = configure(args, answers, tables)
    config.save(os.path.join(args.out, "drafter.json"))
    with open(os.path.join(args.out, "training.json"), "w", encoding="utf-8") as f:
        json.dump(dict(steps=args.steps, answers=len(answers.documents)), f)
    trainer = Trainer(args, tables.to(args.device), Drafter(config).to(args.device), answers)
    last = os.path.join(args.out, "drafter.pt")
    if os.path.exists(last):
        trainer.load(last)
    print(f"{len(answers.train)} answers and {len(answers.held_out)} held out, from step "
          f"{trainer.step}: {trainer.evaluate()}", flush=True)
    begin, log = time.time(), []
    while trainer.step < args.steps:
        log.append(trainer.train_step())
        if trainer.step % 20 == 0:
            loss, chains, valid = (sum(x) for x in zip(*log))
            print(f"step {trainer.step} {time.time() - begin:.0f} s loss {loss / len(log):.3f} "
                  f"{report(chains, valid)}", flush=True)
            log = []
        if trainer.step % args.save == 0:
            trainer.save()
            print(f"  held out: {trainer.evaluate()}", flush=True)
    trainer.save()


if __name__ == "__main__":
    main()
