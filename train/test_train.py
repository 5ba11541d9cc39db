"""Tests of the training code: python test_train.py [NAME]; exit 77 means skipped, and why is said.

Expected values come from arithmetic done here, or from the format's own examples.
"""

import argparse
import functools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

try:
    import jinja2
    import tokenizers
    import torch
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing} (see requirements.txt)")
    sys.exit(77)

import batches
import captures
import card
import corpus
import decode
import drafter
import export
import king
import muon
import train_drafter
import train_king
from corpus import drills

SMALL = king.KingConfig(
    vocab_size=4096, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
    full_attention_interval=2, num_attention_heads=2, num_key_value_heads=1,
    linear_num_key_heads=1, linear_num_value_heads=2, block=128)


def samples(count, test=False):
    r = random.Random("samples")
    return [corpus.draw(r, test) for _ in range(count)]


def small_king():
    torch.manual_seed(5)
    return king.King(SMALL).eval()


def document_rows(*docs):
    """One row of random tokens with documents of these lengths."""
    g = torch.Generator().manual_seed(3)
    tokens = torch.randint(0, 4064, (1, sum(docs)), generator=g)
    start = torch.zeros_like(tokens, dtype=torch.bool)
    for i in range(len(docs)):
        start[0, sum(docs[:i])] = True
    return tokens, start


# ------------------------------------------------------------------------- corpus


def test_calculations_are_right():
    seen = 0
    for s in samples(1200):
        text = s["reasoning"] + "\n" + s["answer"]
        for a, op, b, c in re.findall(r"(?<![\d+\-*/] )\b(\d+) ([-+*/]) (\d+) = (-?\d+)\b", text):
            value = dict(zip("+-*/", (int(a) + int(b), int(a) - int(b), int(a) * int(b),
                                      int(a) / max(int(b), 1))))[op]
            assert value == int(c), text
            seen += 1
        seen += right_columns(text)
    assert seen > 500, seen


def right_columns(text):
    """Check the lines of written calculations; returns their number."""
    seen = 0
    for column, value in re.findall(r"^(\d[+-]\d[+-]\d)=(-?\d+)", text, re.M):
        assert eval(column) == int(value), text         # pylint: disable=eval-used
        seen += 1
    for numbers in re.findall(r"^(\d)\*(\d)=(\d\d)\+(\d)=(\d\d)$", text, re.M):
        x, y, product, carry, total = map(int, numbers)
        assert x * y == product and product + carry == total, text
        seen += 1
    return seen


def test_drills_are_right():
    r, seen, heads = random.Random(1), 0, dict(zip(("Smallest first.", "Largest first."), (min, max)))
    for _ in range(400):
        document = drills.draw(r)
        text = "".join(t for t, _ in document)
        assert text.endswith("\n") and any(counts for _, counts in document)
        seen += right_columns(text)
        head, *rows = text.splitlines()
        for row in rows if head in (*heads, "sort:", "in order:") else ():
            given, result = (re.split(", ", x) for x in row.split(": "))
            given = [int(x) if x.isdigit() else x for x in given]
            assert result == ([str(heads[head](given))] if head in heads else
                              [str(x) for x in sorted(given)]), text
            seen += 1
        for word, spelt, turned in re.findall(r"^(\w+): ([\w-]+): ([\w-]+)$", text, re.M):
            assert spelt == "-".join(word) and turned == spelt[::-1], text
            seen += 1
        for a, op, b, value in re.findall(r"^(\d+) ([-+*/]) (\d+) = (\d+)$", text, re.M):
            assert eval(f"{a}{op}{b}") == int(value), text      # pylint: disable=eval-used
            seen += 1
        for first, last, items in re.findall(r"^(\d+) to (\d+): (.*)$", text, re.M):
            items = items.split(", ")
            assert (items[0], items[-1]) == (first, last), text
            seen += 1
    assert seen > 2000, seen


def test_sorted_lists_are_sorted():
    for s in samples(1500):
        if s["task"] in ("sort_words", "sort_numbers"):
            items = s["answer"].split(", ")
            keys = [int(x) if x.isdigit() else x for x in items]
            assert keys in (sorted(keys), sorted(keys, reverse=True)), s
            asked = s["messages"][-1]["content"].lower()
            assert all(x in asked for x in items), s


def test_json_and_arguments_come_from_the_question():
    for s in samples(1500):
        asked = " ".join(m["content"] for m in s["messages"])
        if s["task"] == "extract_json":
            assert all(str(v) in asked for v in json.loads(s["answer"]).values()), s
        for call in s["calls"]:
            tools = {t["function"]["name"]: t["function"]["parameters"] for t in s["tools"]}
            assert set(call["arguments"]) == set(tools[call["name"]]["properties"]), s
            assert all(str(v) in asked for v in call["arguments"].values()), s


def test_held_out_questions_stay_out():
    train = {(s["task"], s["key"]) for s in samples(3000)}
    test = {(s["task"], s["key"]) for s in samples(300, test=True)}
    assert not train & test
    assert len(test) > 100


def test_pieces_join_to_the_rendered_text():
    tok, calls = corpus.tokenizer(), 0
    for s in samples(400):
        pieces = corpus.pieces(s)
        text = "".join(t for t, _ in pieces)
        assert text == "".join(corpus.render(s))
        ids, written = batches.encode(tok, s)
        assert tok.encode(text).ids == ids, text
        assert len(ids) == len(written) and written[-1] and not written[0]
        turns = [t for t, by_model in pieces if by_model]
        assert all(t.endswith("<|im_end|>") for t in turns)
        if s["task"] == "tool_answer":
            assert len(turns) == 2 and "<tool_call>" in turns[0], text
            calls += 1
    assert calls > 5


# ------------------------------------------------------------------------- batches


def test_rows_hold_whole_documents():
    tok = corpus.tokenizer()
    tokens, start, target = batches.corpus_rows(tok, 4, "rows")
    again = batches.corpus_rows(tok, 4, "rows")
    assert all(torch.equal(a, b) for a, b in zip((tokens, start, target), again))
    end_of_turn = tok.token_to_id("<|im_end|>")
    assert tokens.shape == (4, batches.ROW) and start[:, 0].all()
    for row in range(4):
        cuts = start[row].nonzero()[:, 0].tolist() + [batches.ROW]
        assert cuts[-2] > batches.ROW * 0.8                 # little of a row stays empty
        for a, b in zip(cuts, cuts[1:]):
            where = target[row, a:b].nonzero()[:, 0]
            if len(where):
                assert tokens[row, a + where[-1] + 1] == end_of_turn
                assert b - a == where[-1] + 2               # no target reaches over the end


def test_copy_rows_repeat():
    tokens, start, target = batches.copy_rows(2, 4064, "copies")
    for row in range(2):
        cuts = start[row].nonzero()[:, 0].tolist() + [batches.ROW]
        for a, b in zip(cuts, cuts[1:]):
            doc, goals = tokens[row, a:b].tolist(), target[row, a:b].nonzero()[:, 0].tolist()
            period = min((p for p in range(1, len(doc)) if doc[p:] == doc[:-p]), default=len(doc))
            assert all(t + 1 > period for t in goals)       # the first time cannot be foreseen
    assert target.float().mean() > 0.3


def test_skill_rows_count_results():
    tok = corpus.tokenizer()
    tokens, _, target = batches.skill_rows(tok, 2, "rows")
    assert tokens.shape == (2, batches.ROW) and 0.3 < target.float().mean() < 0.8
    row = tokens[0].tolist()
    for i in target[0].nonzero()[:, 0].tolist():
        assert row[i + 1] < corpus.BASE_VOCAB


def test_lists_name_the_same_words():
    tok = corpus.tokenizer()
    tokens, start, target = batches.list_rows(tok, 2, "lists")
    ends = [*start[0].nonzero()[:, 0].tolist(), batches.ROW]
    for a, b in zip(ends[:-2], ends[1:]):
        first, *again = tok.decode(tokens[0, a:b].tolist()).split("\n\n")[:-1]
        letters = sorted(c for c in first.lower() if c.isalpha())
        for other in again:
            rest = sorted(c for c in other.lower() if c.isalpha())
            assert set(rest) >= set(letters) - set("word"), (first, other)
    assert target.float().mean() > 0.4


def test_feed_gives_the_batches_in_order():
    make = functools.partial(batches.copy_rows, 2, 64)      # the seed is the step
    feed = batches.Feed(make, 7, 2)
    try:
        for step in range(7, 12):
            assert all(torch.equal(a, b) for a, b in zip(feed.next(), make(step)))
    finally:
        feed.close()


# ------------------------------------------------------------------------- king


def test_rotation_of_the_format_page():
    x = torch.arange(1.0, 9.0)
    s = torch.tensor([-1.0, -1, -1, 1, -1, 1, 1, 1])
    h = king.hadamard(8)
    forward = king.blockwise((x * s).unsqueeze(0), h)[0] * 8 ** 0.5
    inverse = king.blockwise(x.unsqueeze(0), h)[0] * s * 8 ** 0.5
    assert forward.round().tolist() == [14, -18, -18, -2, -18, 6, 10, 18]
    assert inverse.round().tolist() == [-36, 4, 8, 0, 16, 0, 0, 0]


def test_pack_stands_for_the_ternary_form():
    """Read the packed words back by hand: values d * (code - 1), then the rotation undone."""
    model = small_king()
    name = "layers.0.mlp.down_proj.weight"
    t = export.king_tensors(model)
    base = "language_model.model.layers.0.mlp.down_proj."
    words = t[base + "weight"].to(torch.int64)
    codes = torch.stack([(words >> (2 * k)) & 3 for k in range(16)], -1).flatten(1)
    assert set(codes.unique().tolist()) == {0, 1, 2}
    assert torch.equal(t[base + "biases"], -t[base + "scales"])
    rotated = (codes - 1) * t[base + "scales"].float().repeat_interleave(128, 1)
    blocks = rotated.unflatten(1, (-1, 128)) @ king.hadamard(128)
    want = blocks.flatten(1) * t[base + "signs"]
    got = king.ternary_form(model.get_parameter(name).detach(), SMALL)
    assert torch.allclose(got, want, atol=1e-6)
    assert torch.nn.functional.cosine_similarity(
        got.flatten(), model.get_parameter(name).flatten(), dim=0) > 0.85


def test_delta_rule_in_chunks_is_the_recurrence():
    g = torch.Generator().manual_seed(1)
    B, H, T, D = 2, 3, 64, 8
    q, k, v = (torch.randn(B, H, T, D, generator=g) for _ in range(3))
    k = k / k.norm(dim=-1, keepdim=True)
    log_g, beta = -torch.rand(B, H, T, generator=g), torch.rand(B, H, T, generator=g)
    S, want = torch.zeros(B, H, D, D, dtype=torch.float64), []
    for t in range(T):
        S = S * log_g[..., t, None, None].double().exp()
        known = torch.einsum("bhij,bhj->bhi", S, k[:, :, t].double())
        delta = beta[..., t, None].double() * (v[:, :, t].double() - known)
        S = S + torch.einsum("bhi,bhj->bhij", delta, k[:, :, t].double())
        want.append(torch.einsum("bhij,bhj->bhi", S, q[:, :, t].double()))
    got = king.delta_rule(q, k, v, log_g, beta)
    assert torch.allclose(got.double(), torch.stack(want, 2), atol=1e-4)


def test_documents_of_a_row_do_not_touch():
    model = small_king()
    tokens, start = document_rows(32, 64)
    with torch.no_grad():
        both = model(tokens, king.row_info(start))
        second = model(tokens[:, 32:], king.row_info(start[:, 32:]))
    assert torch.allclose(both[:, 32:], second, atol=1e-4)


def test_decoding_is_the_forward_pass():
    model = small_king()
    tokens, start = document_rows(64)
    with torch.no_grad():
        want = model.lm_head(model(tokens, king.row_info(start)))[0]
        state = decode.new_state(model, 1, 64)
        got = torch.cat([decode.step(model, tokens[:, t], state, t) for t in range(64)])
    assert torch.allclose(got, want, atol=1e-4)


# ------------------------------------------------------------------------- training


def test_orthogonal_update():
    g = torch.Generator().manual_seed(2)
    for shape in ((1, 40, 90), (1, 90, 40)):
        values = torch.linalg.svdvals(muon.orthogonal(torch.randn(shape, generator=g))[0])
        assert values.min() > 0.5 and values.max() < 1.4, values


def trainer(folder):
    args = argparse.Namespace(out=folder, steps=6, ternary_from=3, blend=2, rows=2, micro=1,
                              lr=3e-3, workers=1, compile=False, device="cpu")
    torch.manual_seed(5)
    return train_king.Trainer(args, king.King(SMALL))


def test_training_resumes_where_it_stopped():
    batch = [batches.copy_rows(2, 4064, i) for i in range(5)]
    with tempfile.TemporaryDirectory() as folder:
        straight = trainer(folder)
        for i in range(5):
            straight.train_step(batch[i])
            if i == 2:
                straight.save("king.pt")
        resumed = trainer(folder)
        resumed.load(os.path.join(folder, "king.pt"))
        assert resumed.step == 3
        for i in (3, 4):
            resumed.train_step(batch[i])
    for (name, a), b in zip(straight.king.named_parameters(), resumed.king.parameters()):
        assert torch.equal(a, b), name
    assert straight.schedule() == resumed.schedule() == (0.2, 1.0)


def test_training_learns():
    with tempfile.TemporaryDirectory() as folder:
        t, batch = trainer(folder), batches.copy_rows(2, 64, "one")
        t.args.steps, t.args.ternary_from = 100, 60
        losses = [t.train_step(batch)[0] for _ in range(30)]
    assert losses[-1] < losses[0] - 2, losses


def test_every_tensor_is_made_on_the_device_of_the_model():
    """With another default device, an operation that forgets the device fails."""
    with tempfile.TemporaryDirectory() as folder:
        t, d = trainer(folder), draft_trainer(folder)
        batch = batches.copy_rows(2, 64, "device")
        t.step = 4                              # in the ternary phase
        rows = d.read(d.answers.train, "device")
        with torch.device("meta"):
            t.train_step(batch)
            t.evaluate(batch)
            decode.greedy_batch(t.king, [[1, 2, 3], [4]], {0}, 4)
            assert d.losses(rows, torch.Generator().manual_seed(0))[1] > 0


# ------------------------------------------------------------------------- drafter


def test_affine_is_bit_equal_to_mlx():
    golden = os.path.join(corpus.HERE, "..", "..", "tests", "golden", "quant")
    w = load_file(os.path.join(golden, "affine_inputs.safetensors"))["w"].bfloat16()
    for bits in (4, 8):
        want = load_file(os.path.join(golden, f"affine_b{bits}_g64.safetensors"))
        for part, got in zip(("weight", "scales", "biases"), export.affine(w, bits)):
            assert torch.equal(got, want["bf16." + part]), (bits, part)


def test_blocks_stay_in_their_answer():
    target = torch.zeros(1, 40, dtype=torch.bool)
    target[0, 9:20] = True                      # the tokens 10..20 are an answer
    tokens = torch.arange(40).unsqueeze(0)
    g = torch.Generator().manual_seed(0)
    anchor, after, valid = train_drafter.draw_blocks(tokens, target, 64, 8, g)
    assert anchor.min() >= 10 and anchor.max() <= 19
    assert torch.equal(after[valid], (anchor.unsqueeze(-1) + torch.arange(1, 8))[valid])
    assert after[valid].max() == 20
    assert torch.equal(valid.sum(-1), (20 - anchor).clamp_max(7))


def test_block_sees_its_document_before_the_anchor():
    start = torch.zeros(1, 12, dtype=torch.bool)
    start[0, [0, 5]] = True
    mask = train_drafter.block_mask(start, torch.tensor([[3, 8]]), 2)[0, 0]
    seen = [row.nonzero()[:, 0].tolist() for row in mask]
    assert seen == [[0, 1, 2, 12, 13]] * 2 + [[5, 6, 7, 14, 15]] * 2


def write_captures(folder, parts=2, king="k"):
    """Answers that count to ten again and again, as ingot capture writes them, and tables."""
    g = torch.Generator().manual_seed(7)
    embedding = torch.randn(64, 128, generator=g)
    for part in range(parts):
        tensors = {}
        for i in range(part, 60, parts):
            ids = torch.arange(i, i + 40, dtype=torch.int32) % 10
            tensors |= {f"seq{i}.tokens": ids,
                        f"seq{i}.answer": torch.tensor([4 + i % 3], dtype=torch.int32),
                        f"seq{i}.hidden.2": embedding[ids.long()] * 2,
                        f"seq{i}.hidden.5": embedding[ids.long()] + i}
        save_file(tensors, os.path.join(folder, f"part{part}.safetensors"), {"king": king})
    save_file({"embedding": embedding, "head": embedding.clone()},
              os.path.join(folder, "tables.safetensors"), {"king": "k", "layers": "6"})
    return [os.path.join(folder, f"part{part}.safetensors") for part in range(parts)]


def draft_trainer(folder):
    args = argparse.Namespace(
        steps=40, rows=2, length=96, blocks=16, lr=3e-3, decay=0.5, seed=1, device="cpu",
        out=folder, tables=os.path.join(folder, "tables.safetensors"),
        config=os.path.join(folder, "config.json"))
    answers = captures.Answers(write_captures(folder))
    tables = captures.Tables(args.tables)
    export.dump(args.config, dict(
        intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        mask_token_id=63))
    config = train_drafter.configure(args, answers, tables)
    config.save(os.path.join(folder, "drafter.json"))
    torch.manual_seed(6)
    return train_drafter.Trainer(args, tables, drafter.Drafter(config), answers)


def test_captures_are_read_as_they_are_needed():
    with tempfile.TemporaryDirectory() as folder:
        answers = captures.Answers(write_captures(folder))
        assert (answers.king, answers.layers) == ("k", [2, 5])
        assert len(answers.documents) == 60 and len(answers.held_out) == 3
        assert not set(answers.train) & set(answers.held_out)
        tables = captures.Tables(os.path.join(folder, "tables.safetensors"))
        for length in (96, 16):             # whole answers, and parts of them
            tokens, start, target, taps = answers.rows(answers.train, 3, length, "s")
            assert torch.equal(taps, answers.rows(answers.train, 3, length, "s")[3])
            assert tokens.shape == (3, length) and taps.shape == (3, length, 256)
            used = taps[..., 0] != 0
            want = tables.embed_tokens(tokens[used]) * 2
            assert torch.equal(taps[used][:, :128], want)
            assert torch.equal(tokens[:, 1:][target[:, :-1]],
                               (tokens[:, :-1][target[:, :-1]] + 1) % 10)
            assert int(target.sum()) >= 3 * (length // 40 or 1) and int(start.sum()) >= 3
        other = write_captures(folder, 1, "another")
        for paths in (other + [os.path.join(folder, "part1.safetensors")], other):
            try:
                train_drafter.configure(argparse.Namespace(tables="t", config=None),
                                        captures.Answers(paths), tables)
                raise AssertionError("captures of another king were taken")
            except SystemExit as refused:
                assert "king" in str(refused), refused


def test_drafter_learns_and_resumes():
    """On captures that count to ten, the drafter gets better."""
    with tempfile.TemporaryDirectory() as folder:
        first = draft_trainer(folder)
        assert first.model.config.target_layer_ids == [2, 5]
        log = [first.train_step()[0] for _ in range(30)]
        assert min(log[-5:]) < log[0] - 2, log
        assert first.evaluate().startswith("loss")
        first.save()
        second = draft_trainer(folder)
        second.load(os.path.join(folder, "drafter.pt"))
        assert second.train_step()[0] == first.train_step()[0]
        for bits in (4, 8, 16):
            export.export_drafter(folder, folder, bits)
            names = load_file(os.path.join(folder, "model.safetensors"))
            book = "candidate_selector.successor_codebook"
            assert (book in names) == (bits != 8) and (book + ".scales" in names) == (bits == 8)
            assert ("fc.scales" in names) == (bits < 16)


def ingot(*words):
    return subprocess.run([os.environ["INGOT"], *words], capture_output=True, text=True,
                          check=True).stdout


def test_ingot_captures_and_drafts():
    """The whole way with the program: capture, train, export, draft; drafts change no token."""
    if "INGOT" not in os.environ:
        print("skipped: $INGOT names no program")
        return
    with tempfile.TemporaryDirectory() as folder:
        def path(name):
            return os.path.join(folder, name)
        asked = [dict(messages=[dict(role="user", content=f"What is {i} + {i}?")])
                 for i in range(24)]
        with open(path("prompts"), "w", encoding="utf-8") as f:
            f.write("\n".join(map(json.dumps, asked)))
        for part in range(2):
            ingot("capture", "--king", corpus.KING, "--prompts", path("prompts"), "--shard",
                  f"{part}/2", "--hidden", "1,3", "--logits", "none", "--max-tokens", "24",
                  "--out", path(f"answers-{part}"))
        ingot("capture", "--king", corpus.KING, "--tables", path("tables"))
        subprocess.run([sys.executable, os.path.join(corpus.HERE, "..", "train_drafter.py"),
                        "--tables", path("tables"), "--out", path("draft"), "--steps", "2",
                        "--rows", "1", "--length", "128", "--blocks", "4", "--device", "cpu",
                        path("answers-0"), path("answers-1")], check=True, stdout=subprocess.PIPE)
        how = ["generate", "--king", corpus.KING, "--prompt", "What is 3 + 4?", "--json",
               "--max-tokens", "24"]
        want = json.loads(ingot(*how, "--no-drafter"))
        for bits in ("4", "8", "16"):
            export.export_drafter(path("draft"), path(bits), int(bits))
            got = json.loads(ingot(*how, "--drafter", path(bits), "--block", "4", "--no-copy"))
            assert got["sha256"] == want["sha256"] and got["speculation"]["drafted"] > 0


# ------------------------------------------------------------------------- card


def test_card_tells_the_figures():
    rows = {"code": dict(n=4, answer=4), "code (thinking)": dict(n=4, answer=1),
            "code that compiles": dict(n=8, answer=6), "all": dict(n=8, answer=5)}
    q8 = {"block 4": {"all": 2.6, "code": 3.3}, "block 8": {"all": 3.1, "code": 4.5}}
    values = {
        "scores.json": dict(rows=rows), "accept-q8.json": q8,
        "accept-q4.json": {"block 4": {"all": 2.5}},
        "tries.json": [[dict(role="user", content="Hi"), dict(role="assistant", content="Yes")]],
        "king/training.json": dict(steps=30, tokens=2500000, ternary_steps=10),
        "drafter/training.json": dict(steps=20, answers=80)}
    with tempfile.TemporaryDirectory() as work:
        os.symlink(os.path.dirname(os.path.abspath(corpus.KING)), os.path.join(work, "nugget"))
        for name, value in values.items():
            path = os.path.join(work, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                json.dump(value, f)
        text = card.card(work)
    for part in ("| `king/` |", "2.5 M tokens", "62% of 8", "75% of 8", "| code | 100% of 4 | 25%",
                 "Weak, below 80%: code (thinking), code that compiles.",
                 "| block 4 | block 8 |", "| code | 3.3 | 4.5 |\n| all | 2.6 | 3.1 |",
                 "| all, q4 | 2.5 |  |", "user: 'Hi' → assistant: 'Yes'"):
        assert part in text, (part, text)


if __name__ == "__main__":
    torch.set_num_threads(1)
    tests = {n.removeprefix("test_"): f for n, f in list(globals().items())
             if n.startswith("test_")}
    for name in sys.argv[1:] or tests:
        tests[name]()
        print("ok", name)
