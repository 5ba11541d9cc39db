"""Train the drafter on the king's own greedy answers, thinking and tool calls included.

    python train_drafter.py --king RUN_DIR --out DRAFT_DIR --steps 900

First the king (as its pack makes it) answers prompts of the corpus; the packed rows go to
DRAFT_DIR/answers.pt and are kept. Then the drafter trains on them: for each row a number of
anchors is drawn from the answers. A block starts at its anchor; its rows attend to the king's
residual streams before the anchor and to each other. The loss is the cross entropy of the king's
head on the drafter's rows, weighted by depth, plus that of the candidate selector over the top
candidates. A checkpoint is written every --save steps; the same command resumes from it.
"""

import argparse
import json
import os
import random
import time

import torch
import torch.nn.functional as F

import batches
import corpus
import decode
from drafter import Drafter, DrafterConfig
from export import load_king
from king import row_info
from muon import Muon


# ------------------------------------------------------------------------- the king's answers


def own_answers(king, tok, count, seed, test):
    """Documents (ids, written) of prompts with the king's greedy answers."""
    r = random.Random(seed)
    stop = {tok.token_to_id("<|im_end|>"), tok.token_to_id("<|endoftext|>")}
    prompts = [tok.encode(corpus.render(corpus.draw(r, test))[0]).ids for _ in range(count)]
    answers = decode.greedy(king, prompts, stop, limit=160)
    docs = [(p + a, [False] * len(p) + [True] * len(a)) for p, a in zip(prompts, answers)]
    return [d for d in docs if len(d[0]) <= batches.ROW]


def pack_all(docs):
    """Pack documents in the order they come, a few rows at a time."""
    parts, at, rows = [], 0, 16
    while at < len(docs):
        end, total = at, 0
        while end < len(docs) and total + len(docs[end][0]) < rows * (batches.ROW - 20):
            total += len(docs[end][0])
            end += 1
        parts.append(batches.pack(docs[at:end], rows))
        at = end
    return batches.join(*parts)


def answers(king, tok, args):
    """-> training rows and held-out rows, made once."""
    path = os.path.join(args.out, "answers.pt")
    if not os.path.exists(path):
        train = pack_all(own_answers(king, tok, args.answers, args.seed, False))
        test = pack_all(own_answers(king, tok, args.answers // 10, "test", True))
        torch.save((train, test), path)
    return tuple([x.to(args.device) for x in rows] for rows in torch.load(path))


@torch.no_grad()
def features(king, rows, layers):
    """The king's residual streams [R, ROW, taps * D] for all rows, in bfloat16."""
    return torch.cat([king(rows[0][i:i + 4], row_info(rows[1][i:i + 4]), taps=layers)[1].bfloat16()
                      for i in range(0, len(rows[0]), 4)])


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


def losses(model, king, batch, taps, blocks, generator, gamma=4.0):
    """-> weighted loss sum, weight sum, right chains by depth, blocks by depth."""
    tokens, start, target = batch
    c = model.config
    size, pos = c.block_size, row_info(start)["pos"]
    anchor, after, valid = draw_blocks(tokens, target, blocks, size, generator)
    row = torch.arange(size, device=tokens.device)
    ids = torch.full((*anchor.shape, size), c.mask_token_id, device=tokens.device)
    ids[..., 0] = tokens.gather(1, anchor)
    block_pos = (pos.gather(1, anchor).unsqueeze(-1) + row).flatten(1)
    h = model(taps, king.embed_tokens(ids.flatten(1)), pos, block_pos,
              block_mask(start, anchor, size)).unflatten(1, (-1, size))[:, :, 1:]
    weight = torch.exp(-row[:-1] / gamma).expand(valid.shape)[valid]
    h, goal = h[valid], after[valid]
    logits = king.lm_head(h)
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
    def __init__(self, args, king, model, rows):
        self.args, self.king, self.model, self.step = args, king, model, 0
        self.train, self.test = rows
        self.taps = [features(king, r, tuple(model.config.target_layer_ids)) for r in rows]
        named = dict(model.named_parameters())
        matrices = [p for n, p in named.items() if p.dim() == 2 and "codebook" not in n]
        others = [p for n, p in named.items() if p.dim() != 2 or "codebook" in n]
        self.optimizers = [Muon(matrices, lr=args.lr, weight_decay=0.02),
                           torch.optim.AdamW(others, lr=args.lr, betas=(0.9, 0.95),
                                             weight_decay=0.0)]

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

    def losses(self, which, pick, generator):
        rows = (self.train, self.test)[which]
        return losses(self.model, self.king, [x[pick] for x in rows],
                      self.taps[which][pick].float(), self.args.blocks, generator)

    def train_step(self):
        a = self.args
        rate = min(1.0, (self.step + 1) / 30, (a.steps - self.step) / (a.steps * a.decay))
        for o in self.optimizers:
            for group in o.param_groups:
                group["lr"] = a.lr * rate
        g = torch.Generator(a.device).manual_seed(a.seed * 1000003 + self.step)
        pick = torch.randint(len(self.train[0]), (a.rows,), generator=g, device=a.device)
        loss, weight, chains, valid = self.losses(0, pick, g)
        (loss / weight).backward()
        for o in self.optimizers:
            o.step()
            o.zero_grad()
        self.step += 1
        return float(loss.detach() / weight), chains, valid

    @torch.no_grad()
    def evaluate(self):
        g, sums = torch.Generator(self.args.device).manual_seed(0), []
        for i in range(0, len(self.test[0]), 4):
            sums.append(self.losses(1, slice(i, i + 4), g)[2:])
        return report(*(sum(x) for x in zip(*sums)))


def main():
    ap = argparse.ArgumentParser(description="Train the drafter.")
    ap.add_argument("--king", required=True, help="run folder of the king")
    ap.add_argument("--out", required=True)
    ap.add_argument("--steps", type=int, default=900)
    ap.add_argument("--answers", type=int, default=8000, help="prompts for the king to answer")
    ap.add_argument("--seed", type=int, default=3)
    ap.add_argument("--rows", type=int, default=4, help="rows of 512 tokens in a step")
    ap.add_argument("--blocks", type=int, default=48, help="blocks in a row")
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--decay", type=float, default=0.5, help="share of the steps with decay")
    ap.add_argument("--save", type=int, default=100)
    ap.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    tok = corpus.tokenizer()
    king = load_king(args.king).harden().requires_grad_(False).to(args.device)
    config = DrafterConfig(num_target_layers=king.config.num_hidden_layers,
                           vocab_size=king.config.vocab_size,
                           mask_token_id=tok.token_to_id("<|mask|>"))
    config.save(os.path.join(args.out, "drafter.json"))
    with open(os.path.join(args.out, "training.json"), "w", encoding="utf-8") as f:
        json.dump(dict(steps=args.steps, answers=args.answers), f)
    trainer = Trainer(args, king, Drafter(config).to(args.device), answers(king, tok, args))
    last = os.path.join(args.out, "drafter.pt")
    if os.path.exists(last):
        trainer.load(last)
    print(f"{len(trainer.train[0])} rows, {int(trainer.train[2].sum())} answer tokens, from step "
          f"{trainer.step}", flush=True)
    begin, log = time.time(), []
    while trainer.step < args.steps:
        log.append(trainer.train_step())
        if trainer.step % 20 == 0:
            loss, chains, valid = (sum(x) for x in zip(*log))
            print(f"step {trainer.step} {time.time() - begin:.0f} s loss {loss / len(log):.3f} "
                  f"{report(chains, valid)}", flush=True)
            log = []
        if trainer.step % args.save == 0 or trainer.step == args.steps:
            trainer.save()
            print(f"  held out: {trainer.evaluate()}", flush=True)


if __name__ == "__main__":
    main()
