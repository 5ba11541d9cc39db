"""Rows of packed documents, made as training goes: the rows of a step depend on its number only.

A batch is (tokens [R, ROW] int64, start [R, ROW] bool, target [R, ROW] bool): start marks the
first token of each document, and target[t] says that the token t + 1 counts for the loss.
"""

import os
import random
import threading
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process

import torch

import corpus
from corpus import drills, words

ROW = 512


def encode(tok, sample):
    """A sample -> (token ids, whether each of them is written by the model)."""
    ids, written = [], []
    for text, by_model in corpus.pieces(sample):
        part = tok.encode(text).ids
        ids += part
        written += [by_model] * len(part)
    return ids, written


def empty(rows, length=ROW):
    return (torch.zeros(rows, length, dtype=torch.long),
            torch.zeros(rows, length, dtype=torch.bool),
            torch.zeros(rows, length, dtype=torch.bool))


def place(batch, row, at, ids, written):
    """Write one document into a row; returns the position after it."""
    tokens, start, target = batch
    end = at + len(ids)
    tokens[row, at:end] = torch.tensor(ids)
    start[row, at] = True
    target[row, at:end - 1] = torch.tensor(written[1:], dtype=torch.bool)
    if end < tokens.shape[1]:
        start[row, end] = True          # the rest of the row is a document without targets
    return end


def arrange(lengths, rows, length=ROW):
    """Places for documents of these lengths, the longest first; what does not fit is left out.
    -> (document, row, position) of each."""
    used, places = [0] * rows, []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        row = min(range(rows), key=lambda r: (used[r] + lengths[i] > length, -used[r]))
        if used[row] + lengths[i] <= length:
            places.append((i, row, used[row]))
            used[row] += lengths[i]
    return places


def pack(docs, rows):
    batch = empty(rows)
    for i, row, at in arrange([len(ids) for ids, _ in docs], rows):
        place(batch, row, at, *docs[i])
    return batch


def corpus_rows(tok, rows, seed, test=False):
    """Packed rows of fresh samples."""
    docs, total, r = [], 0, random.Random(seed)
    while total < rows * ROW:
        doc = encode(tok, corpus.draw(r, test))
        if len(doc[0]) <= ROW:
            docs.append(doc)
            total += len(doc[0])
    return pack(docs, rows)


def copy_rows(rows, vocab, seed):
    """Rows of random tokens that are repeated; the repetitions are the targets. They teach to
    copy any token from the context long before the corpus would."""
    r, batch = random.Random(seed), empty(rows)
    for row in range(rows):
        at = 0
        while at < ROW - 4:
            n = r.randrange(2, 25)
            ids = ([r.randrange(vocab) for _ in range(n)] * r.randrange(2, 5))[:ROW - at]
            at = place(batch, row, at, ids, [i >= n + 1 for i in range(len(ids))])
    return batch


def list_rows(tok, rows, seed):
    """Rows of lists of words that are written again in other ways; all but the first are targets,
    each from its second token on."""
    docs, total, r = [], 0, random.Random(f"lists {seed}")
    while total < rows * ROW:
        first, *again = [tok.encode(text).ids for text in words.lists(r)]
        ids, written = list(first), [False] * len(first)
        for part in again:
            ids += part
            written += [False] + [True] * (len(part) - 1)
        if len(ids) <= ROW:
            docs.append((ids, written))
            total += len(ids)
    return pack(docs, rows)


def skill_rows(tok, rows, seed):
    """Rows of drills of single skills."""
    docs, total, r = [], 0, random.Random(f"skills {seed}")
    while total < rows * ROW:
        ids, written = [], []
        for text, counts in drills.draw(r):
            part = tok.encode(text).ids
            ids += part
            written += [counts] * len(part)
        if len(ids) <= ROW:
            docs.append((ids, written))
            total += len(ids)
    return pack(docs, rows)


def join(*batches):
    return tuple(torch.cat(parts) for parts in zip(*batches))


class Feed:
    """The batches of the steps from `step` on, made ahead by other processes.

    make(step) gives a batch; it must be a function of a module, or a partial of one.
    """

    def __init__(self, make, step, processes):
        self.pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"),
                                        initializer=end_with_parent)
        self.make, self.step, self.ahead = make, step, deque()
        self.depth = 3 * processes

    def next(self):
        while len(self.ahead) < self.depth:
            self.ahead.append(self.pool.submit(arrays, self.make, self.step))
            self.step += 1
        return [torch.from_numpy(x) for x in self.ahead.popleft().result()]

    def close(self):
        self.pool.shutdown(cancel_futures=True)


def end_with_parent():
    """Let a worker process end when the training is killed."""
    def wait():
        parent_process().join()
        os._exit(1)
    threading.Thread(target=wait, daemon=True).start()


def arrays(make, step):
    """A batch as numpy arrays, which travel between processes by value."""
    return [x.numpy() for x in make(step)]
