"""Write a trained king as a Hadamard pack (schema 2), a drafter as MLX weights.

    python export.py king --run RUN_DIR --out KING_DIR
    python export.py drafter --run DRAFT_DIR --bits 8 --out OUT_DIR

Bits 8: linears and codebooks of the drafter in affine groups of 64; bits 4: linears only, the
codebooks stay bfloat16; bits 16: all bfloat16.
"""

import argparse
import json
import os
import shutil

import torch
from safetensors.torch import save_file

import corpus
from drafter import load_drafter
from king import GROUP, King, KingConfig, packed_form, signs


def dump(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


def write(tensors, out):
    tensors = {k: v.detach().contiguous().clone() for k, v in tensors.items()}
    path = os.path.join(out, "model.safetensors")
    save_file(tensors, path, metadata={"format": "mlx"})
    os.chmod(path, 0o644)


def pack_codes(codes, bits):
    """Integer codes [rows, n] -> uint32 words [rows, n * bits / 32], low bits first."""
    per = 32 // bits
    words = codes.to(torch.int64).unflatten(-1, (-1, per)) << (torch.arange(per) * bits)
    return words.sum(-1).to(torch.uint32)


# ------------------------------------------------------------------------- king


def load_king(run):
    king = King(KingConfig.load(os.path.join(run, "king.json")))
    king.load_state_dict(torch.load(os.path.join(run, "king.pt"), map_location="cpu")["king"])
    return king.eval()


def pack_name(parameter):
    """Name that a parameter of `King` has in a pack."""
    name = parameter if parameter.startswith("lm_head") else "model." + parameter
    return "language_model." + name + (".weight" if name.endswith("conv1d") else "")


def king_tensors(king):
    tensors, packed = {}, set(king.packed_matrices())
    for name, p in king.named_parameters():
        if name in packed:
            base = pack_name(name).removesuffix("weight")
            codes, d = packed_form(p.detach(), king.config)
            tensors |= {base + "weight": pack_codes(codes + 1, 2), base + "scales": d,
                        base + "biases": -d,
                        base + "signs": signs(p.shape[1], king.config.sign_seed)}
        else:
            tensors[pack_name(name)] = p.unsqueeze(-1) if name.endswith("conv1d") else p
    return tensors


def hadamard_json(king):
    c, packed = king.config, king.packed_matrices()
    widths = sorted({king.get_parameter(n).shape[1] for n in packed})
    return {
        "prism.hadamard.version": 1,
        "prism.hadamard.block_size": c.block,
        "prism.hadamard.transform": "normalized-sylvester-walsh-hadamard",
        "prism.hadamard.axis": "input-last-dimension",
        "prism.hadamard.sign_mode": "explicit",
        "prism.hadamard.weight_names": sorted(pack_name(n) for n in packed
                                              if n != "embed_tokens.weight"),
        "prism.hadamard.inverse_weight_names": [pack_name("embed_tokens.weight")],
        "prism.hadamard.sign_widths": widths,
        "prism.hadamard.sign_values": [int(v) for w in widths
                                       for v in signs(w, c.sign_seed).tolist()],
        "prism.hadamard.gdn_v_grouped": True}


def text_config(c, end_of_text):
    kinds = ["full_attention" if c.is_attention(i) else "linear_attention"
             for i in range(c.num_hidden_layers)]
    own = {k: getattr(c, k) for k in (
        "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "full_attention_interval", "num_attention_heads", "num_key_value_heads", "head_dim",
        "partial_rotary_factor", "linear_num_key_heads", "linear_num_value_heads",
        "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim", "rms_norm_eps")}
    return own | {
        "model_type": "qwen3_5_text", "attention_bias": False, "attention_dropout": 0.0,
        "attn_output_gate": True, "bos_token_id": end_of_text, "eos_token_id": end_of_text,
        "pad_token_id": None, "dtype": "float32", "hidden_act": "silu",
        "initializer_range": 0.02, "layer_types": kinds, "mamba_ssm_dtype": "float32",
        "max_position_embeddings": 4096, "mtp_num_hidden_layers": 0,
        "mtp_use_dedicated_embeddings": False, "output_gate_type": "swish",
        "rope_parameters": {
            "mrope_interleaved": True, "mrope_section": c.mrope_section,
            "partial_rotary_factor": c.partial_rotary_factor, "rope_theta": int(c.rope_theta),
            "rope_type": "default"},
        "tie_word_embeddings": False, "use_cache": True}


def export_king(run, out):
    king = load_king(run)
    os.makedirs(out, exist_ok=True)
    write(king_tensors(king), out)
    dump(os.path.join(out, "hadamard.json"), hadamard_json(king))
    tok = corpus.tokenizer()
    end, end_of_text = tok.token_to_id("<|im_end|>"), tok.token_to_id("<|endoftext|>")
    paths = [pack_name(n).removeprefix("language_model.").removesuffix(".weight")
             for n in king.packed_matrices()]
    dump(os.path.join(out, "config.json"), {
        "schema_version": 2,
        "model_type": "prism_hadamard_qwen35",
        "base_model_type": "qwen3_5",
        "hadamard_config": "hadamard.json",
        "tensor_namespace": "mlx-vlm-qwen3_5",
        "gdn_activation_layout": "grouped",
        "components": {"text": True, "vision": False, "mtp": False},
        "quantization": {"bits": 2, "group_size": GROUP, "mode": "affine"},
        "tie_word_embeddings": False,
        "modules": [{"path": p, "block": king.config.block, "dtype": "float16",
                     "embedding": p == "model.embed_tokens"} for p in reversed(paths)],
        "text_config": text_config(king.config, end_of_text)})
    dump(os.path.join(out, "generation_config.json"), {
        "bos_token_id": end_of_text, "eos_token_id": [end, end_of_text],
        "pad_token_id": end_of_text, "do_sample": True, "temperature": 0.6, "top_k": 20,
        "top_p": 0.95})
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        source = os.path.join(corpus.KING, name)
        if os.path.realpath(out) != os.path.realpath(corpus.KING):
            shutil.copy(source, os.path.join(out, name))


# ------------------------------------------------------------------------- drafter


def affine(w, bits, group=64):
    """MLX affine quantization of [rows, n] -> packed words, scales, biases (bfloat16).

    The end of the range with the larger magnitude is met exactly, and zero is a code.
    """
    top = 2 ** bits - 1
    g = w.float().unflatten(-1, (-1, group))
    lo, hi = g.amin(-1), g.amax(-1)
    low_side = lo.abs() > hi.abs()
    scale = ((hi - lo) / top).clamp_min(1e-7)
    scale = torch.where(low_side, scale, -scale)
    edge = torch.where(low_side, lo, hi)
    steps = (edge / scale).round()
    scale = torch.where(steps != 0, edge / steps, scale)
    bias = torch.where(steps != 0, edge, torch.zeros_like(edge))
    q = ((g - bias.unsqueeze(-1)) / scale.unsqueeze(-1)).round().clamp(0, top)
    return pack_codes(q.flatten(-2), bits), scale.bfloat16(), bias.bfloat16()


def drafter_tensors(model, bits):
    tensors = {}
    for name, p in model.state_dict().items():
        codebook = name.endswith("_codebook.weight")
        matrix = name.endswith(".weight") and p.dim() == 2 and not codebook
        if bits < 16 and (matrix or (codebook and bits == 8)):
            base = name.removesuffix("weight")
            words, scales, biases = affine(p.bfloat16(), bits)
            tensors |= {base + "weight": words, base + "scales": scales, base + "biases": biases}
        else:
            tensors[name.removesuffix(".weight") if codebook else name] = p.bfloat16()
    return tensors


def export_drafter(run, out, bits):
    model = load_drafter(run)
    c = model.config
    os.makedirs(out, exist_ok=True)
    write(drafter_tensors(model, bits), out)
    own = {k: getattr(c, k) for k in (
        "head_dim", "hidden_size", "intermediate_size", "num_attention_heads",
        "num_hidden_layers", "num_key_value_heads", "num_target_layers", "rms_norm_eps",
        "sliding_window", "vocab_size", "max_position_embeddings")}
    config = {
        "architectures": ["DFlash2DraftModel"], "model_type": "qwen3", "dtype": "bfloat16",
        "is_causal": False, "attention_bias": False, "attention_dropout": 0.0,
        "hidden_act": "silu", "layer_types": ["sliding_attention"] * c.num_hidden_layers,
        "rope_parameters": {"rope_theta": int(c.rope_theta), "rope_type": "default"},
        "use_sliding_window": True, "tie_word_embeddings": False} | own | {
        "dflash_config": {k: getattr(c, k) for k in (
            "block_size", "conv_kernel_size", "conv_group_size", "mask_token_id",
            "selector_rank", "selector_top_k", "target_layer_ids")}}
    if bits < 16:
        config["quantization"] = {"group_size": 64, "bits": bits, "mode": "affine"}
    dump(os.path.join(out, "config.json"), config)


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description="Export a trained king or drafter.")
    ap.add_argument("what", choices=["king", "drafter"])
    ap.add_argument("--run", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--bits", type=int, default=8, choices=[4, 8, 16])
    a = ap.parse_args()
    if a.what == "king":
        export_king(a.run, a.out)
    else:
        export_drafter(a.run, a.out, a.bits)
