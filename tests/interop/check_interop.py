#!/usr/bin/env python3
"""What other programs make of ingot's files. Arguments: the program `ingot`, the root of the tree, and perhaps `all`: every
part must run.

  gguf    the Python package `gguf` reads the GGUF twin of king-tiny and finds every tensor with the bytes that follow
          from the pack by the rules of docs/formats.md
  mlx     MLX loads packs that `ingot quantize` wrote and dequantizes them to what mx.quantize gives
  numpy   NumPy computes the KL divergence and hidden distance of `eval kl` from two captures

INGOT_INTEROP_PYTHON names an interpreter that has all of them (tests/interop/venv makes one), in which this goes on.
Without it each part is skipped where its package is missing, and the exit code is 77 when nothing could run. Prints what
ran.
"""
import importlib.metadata, json, os, subprocess, sys, tempfile

ingot, root = sys.argv[1:3]
whole = sys.argv[3:] == ["all"]
chosen = os.environ.get("INGOT_INTEROP_PYTHON")
if chosen and not whole:
    os.execvp(chosen, [chosen, "-B", sys.argv[0], ingot, root, "all"])
holder = tempfile.TemporaryDirectory()
scratch = holder.name
packs = os.path.join(root, "tests/golden/packs")
ran = []


def run(*args):
    return subprocess.run([ingot, *args], check=True, capture_output=True, text=True).stdout


def tensors(path):
    import numpy as np
    raw = open(path, "rb").read()
    n = int.from_bytes(raw[:8], "little")
    kinds = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "U32": np.uint32, "I32": np.int32, "U8": np.uint8,
             "BF16": np.uint16}
    return {k: np.frombuffer(raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]], kinds[v["dtype"]]).reshape(v["shape"])
            for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__"}


def check_gguf():
    import gguf
    import numpy as np
    king = os.path.join(packs, "king-tiny")
    out = os.path.join(scratch, "tiny.gguf")
    run("convert", king, out)
    # types 142 and 143 are private to one fork; teach the package their block sizes
    known = gguf.GGMLQuantizationType
    for name, number in (("PQ2_0", 142), ("PTQ1_0", 143)):
        if number not in [t.value for t in known]:
            member = int.__new__(known, number)
            member._name_, member._value_ = name, number
            known._member_map_[name] = member
            known._value2member_map_[number] = member
    gguf.GGML_QUANT_SIZES[known(142)] = (128, 34)
    gguf.GGML_QUANT_SIZES[known(143)] = (128, 28)
    reader = gguf.GGUFReader(out)
    pack = tensors(os.path.join(king, "model.safetensors"))
    config = json.load(open(os.path.join(king, "config.json")))["text_config"]
    nk, nv = config["linear_num_key_heads"], config["linear_num_value_heads"]
    kd, vd = config["linear_key_head_dim"], config["linear_value_head_dim"]
    heads = [k * (nv // nk) + r for r in range(nv // nk) for k in range(nk)]  # pack head at each place of the file

    def order(rows, unit, first):
        moved = [first + h * unit + i for h in heads for i in range(unit)]
        return list(range(first)) + moved

    names = {"attn_norm.weight": "input_layernorm.weight", "post_attention_norm.weight": "post_attention_layernorm.weight",
             "ffn_gate.weight": "mlp.gate_proj", "ffn_up.weight": "mlp.up_proj", "ffn_down.weight": "mlp.down_proj",
             "attn_q.weight": "self_attn.q_proj", "attn_k.weight": "self_attn.k_proj", "attn_v.weight": "self_attn.v_proj",
             "attn_output.weight": "self_attn.o_proj", "attn_q_norm.weight": "self_attn.q_norm.weight",
             "attn_k_norm.weight": "self_attn.k_norm.weight", "attn_qkv.weight": "linear_attn.in_proj_qkv",
             "attn_gate.weight": "linear_attn.in_proj_z", "ssm_out.weight": "linear_attn.out_proj",
             "ssm_alpha.weight": "linear_attn.in_proj_a", "ssm_beta.weight": "linear_attn.in_proj_b",
             "ssm_a": "linear_attn.A_log", "ssm_dt.bias": "linear_attn.dt_bias",
             "ssm_conv1d.weight": "linear_attn.conv1d.weight", "ssm_norm.weight": "linear_attn.norm.weight"}
    outer = {"token_embd.weight": "model.embed_tokens", "output.weight": "lm_head", "output_norm.weight": "model.norm.weight"}
    moved = {"attn_qkv.weight": (vd, 2 * nk * kd), "ssm_conv1d.weight": (vd, 2 * nk * kd), "attn_gate.weight": (vd, 0),
             "ssm_alpha.weight": (1, 0), "ssm_beta.weight": (1, 0), "ssm_a": (1, 0), "ssm_dt.bias": (1, 0)}
    count = 0
    for t in reader.tensors:
        if t.name.startswith("blk."):
            _, layer, inner = t.name.split(".", 2)
            path = f"language_model.model.layers.{layer}.{names[inner]}"
        else:
            inner, path = t.name, "language_model." + outer[t.name]
        packed = path + ".scales" in pack
        if packed:
            words, scales = pack[path + ".weight"], pack[path + ".scales"]
            rows, groups = scales.shape
            want = np.concatenate([scales.view(np.uint8).reshape(rows, groups, 2),
                                   words.view(np.uint8).reshape(rows, groups, 32)], axis=2).reshape(rows, groups * 34)
            got = np.asarray(t.data).reshape(rows, groups * 34)
        else:
            want = pack.get(path, pack.get(path + ".weight"))
            want = want.reshape(want.shape[0], -1)
            got = np.asarray(t.data).reshape(want.shape)
        if inner in moved:
            want = want[order(want.shape[0], *moved[inner])]
        if inner == "ssm_a":
            assert np.allclose(got, -np.exp(want.astype(np.float64)), rtol=6e-8, atol=0), t.name
        else:
            assert got.tobytes() == want.tobytes(), t.name
        count += 1
    stored = sum(not k.startswith("vision") and not k.endswith((".scales", ".biases", ".signs")) for k in pack)
    assert count == stored, (count, stored)
    fields = reader.fields
    assert fields["qwen35.ssm.time_step_rank"].contents() == nv
    assert len(fields["tokenizer.ggml.tokens"].data) == config["vocab_size"]
    assert fields["prism.hadamard.gdn_v_grouped"].contents() is True
    ran.append(f"gguf {importlib.metadata.version('gguf')}: {count} tensors")


def check_mlx():
    import mlx.core as mx
    source = os.path.join(packs, "drafter-tiny-bf16")
    dense = mx.load(os.path.join(source, "model.safetensors"))
    modes = [("affine", 2, 64), ("affine", 3, 32), ("affine", 4, 64), ("affine", 5, 64), ("affine", 6, 32), ("affine", 8, 64),
             ("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]
    matrices = 0
    for mode, bits, group in modes:
        out = os.path.join(scratch, f"{mode}{bits}g{group}")
        run("quantize", source, out, "--mode", mode, "--bits", str(bits), "--group", str(group))
        got = mx.load(os.path.join(out, "model.safetensors"))
        for name, w in dense.items():
            stem = name.removesuffix(".weight")
            if stem + ".scales" not in got:
                assert mx.array_equal(got[name], w), name
                continue
            want = mx.quantize(w, group_size=group, bits=bits, mode=mode)
            parts = [got[stem + ".weight"], got[stem + ".scales"]] + ([got[stem + ".biases"]] if mode == "affine" else [])
            for a, b in zip(parts, want):
                assert a.dtype == b.dtype and mx.array_equal(a, b), (mode, name)
            matrices += 1
    ran.append(f"mlx {mx.__version__}: {matrices} matrices in {len(modes)} formats")


def check_numpy():
    import numpy as np
    king = os.path.join(packs, "king-tiny")
    ids = os.path.join(scratch, "ids.json")
    json.dump({"sequences": [[(i * 7 + s) % 1000 for i in range(20 + s)] for s in range(3)]}, open(ids, "w"))
    teacher, mine = (os.path.join(scratch, f"{n}.safetensors") for n in ("teacher", "mine"))
    run("capture", "--king", king, "--tokens", ids, "--out", teacher, "--hidden", "all", "--mode", "f32")
    run("capture", "--king", king, "--tokens", ids, "--out", mine, "--hidden", "all", "--mode", "int8")
    out = os.path.join(scratch, "kl.json")
    run("eval", "kl", "--king", king, "--against", teacher, "--mode", "int8", "--out", out)
    found = json.load(open(out))
    a, b = tensors(teacher), tensors(mine)
    worst = 0.0
    for s in found["sequences"]:
        i = s["index"]
        p, q = (x[f"seq{i}.logits"].astype(np.float64) for x in (a, b))
        lp, lq = (x - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)) - x.max(1, keepdims=True) for x in (p, q))
        kl = (np.exp(lp) * (lp - lq)).sum(1)
        worst = max(worst, np.abs(kl - np.array(s["kl"])).max())
        found_distance = np.array(s["distance"]).reshape(len(found["layers"]), -1)
        for layer, got in zip(found["layers"], found_distance):
            h, teachers = (x[f"seq{i}.hidden.{layer}"].astype(np.float64) for x in (b, a))
            off = np.abs(np.linalg.norm(h - teachers, axis=1) - got) / np.linalg.norm(teachers, axis=1)
            worst = max(worst, off.max())
    assert worst <= 1e-9, worst
    ran.append(f"numpy {np.__version__}: KL and hidden distance within {worst:.1e}")


for check, package in ((check_gguf, "gguf"), (check_mlx, "mlx.core"), (check_numpy, "numpy")):
    try:
        __import__(package)
        __import__("numpy")
    except ImportError:
        if whole:
            raise
        continue
    check()
print("\n".join(ran))
sys.exit(0 if ran else 77)
