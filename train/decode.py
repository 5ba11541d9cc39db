"""Greedy decoding with a trained king, many prompts at once.

One token of each of B sequences at a time: the recurrent form of the layers in king.py.
"""

import math

import torch
import torch.nn.functional as F

from king import rope


def new_state(king, B, length):
    c, out, new = king.config, [], king.lm_head.weight.new_zeros
    for layer in king.layers:
        if layer.kind == "self_attn":
            shape = (B, c.num_key_value_heads, length, c.head_dim)
            out.append(dict(k=new(shape), v=new(shape)))
        else:
            gdn = layer.linear_attn
            out.append(dict(
                conv=new(B, c.linear_conv_kernel_dim - 1, gdn.conv1d.shape[0]),
                S=new(B, c.linear_num_value_heads, c.linear_key_head_dim, c.linear_value_head_dim)))
    return out


def delta_net_step(m, x, state, t):
    """x [B, D] -> [B, D]; updates the convolution window and the memory."""
    c = m.c
    window = torch.cat([state["conv"], m.in_proj_qkv(x).unsqueeze(1)], 1)     # [B, taps, C]
    state["conv"] = window[:, 1:]
    u = F.silu((window * m.conv1d.t()).sum(1))
    q, k, v = u.split([c.key_dim, c.key_dim, c.value_dim], -1)
    times = c.linear_num_value_heads // c.linear_num_key_heads

    def unit(p):
        p = p.unflatten(-1, (c.linear_num_key_heads, c.linear_key_head_dim))
        p = p * torch.rsqrt(p.pow(2).sum(-1, keepdim=True) + 1e-6)
        return p.repeat_interleave(times, 1)
    q, k = unit(q) * c.linear_key_head_dim ** -0.5, unit(k)
    v = v.unflatten(-1, (c.linear_num_value_heads, -1))
    g = torch.exp(-torch.exp(m.A_log) * F.softplus(m.in_proj_a(x) + m.dt_bias))
    S = state["S"] * g[..., None, None]
    delta = torch.sigmoid(m.in_proj_b(x)).unsqueeze(-1) * (v - (k.unsqueeze(-2) @ S).squeeze(-2))
    state["S"] = S + k.unsqueeze(-1) * delta.unsqueeze(-2)
    y = (q.unsqueeze(-2) @ state["S"]).squeeze(-2)
    z = m.in_proj_z(x).unflatten(-1, (c.linear_num_value_heads, -1))
    return m.out_proj((m.norm(y) * F.silu(z)).flatten(-2))


def attention_step(m, x, state, t):
    """x [B, D] at position t -> [B, D]; appends to the keys and values."""
    c = m.c
    h, kv, d = c.num_attention_heads, c.num_key_value_heads, c.head_dim
    rotary, pos = int(d * c.partial_rotary_factor), torch.full((x.shape[0], 1), t, device=x.device)
    q, gate = m.q_proj(x).unflatten(-1, (h, 2 * d)).split([d, d], -1)
    q = rope(m.q_norm(q), pos, rotary, c.rope_theta)
    state["k"][:, :, t] = rope(m.k_norm(m.k_proj(x).unflatten(-1, (kv, d))), pos, rotary,
                               c.rope_theta)
    state["v"][:, :, t] = m.v_proj(x).unflatten(-1, (kv, d))
    q = q.unflatten(1, (kv, h // kv)) / math.sqrt(d)
    p = torch.softmax(q @ state["k"][:, :, :t + 1].transpose(-1, -2), -1)
    y = (p @ state["v"][:, :, :t + 1]).flatten(1)
    return m.o_proj(y * torch.sigmoid(gate.flatten(-2)))


def step(king, tokens, state, t):
    """Feed token [B] at position t -> logits [B, V]."""
    h = king.embed_tokens(tokens)
    for layer, s in zip(king.layers, state):
        mix = attention_step if layer.kind == "self_attn" else delta_net_step
        h = h + mix(getattr(layer, layer.kind), layer.input_layernorm(h), s, t)
        h = h + layer.mlp(layer.post_attention_layernorm(h))
    return king.lm_head(king.norm(h))


@torch.no_grad()
def greedy_batch(king, prompts, stop, limit):
    """Prompts (lists of ids) -> the new ids of each, up to and with a stop token."""
    device, B = king.lm_head.weight.device, len(prompts)
    lens = torch.tensor([len(p) for p in prompts], device=device)
    stop = torch.tensor(sorted(stop), device=device)
    ids = torch.zeros(B, int(lens.max()) + limit + 1, dtype=torch.long, device=device)
    for i, p in enumerate(prompts):
        ids[i, :len(p)] = torch.tensor(p, device=device)
    state, end = new_state(king, B, ids.shape[1]), torch.full((B,), -1, device=device)
    for t in range(ids.shape[1] - 1):
        choice = step(king, ids[:, t], state, t).argmax(-1)
        free = t + 1 >= lens
        ids[:, t + 1] = torch.where(free, choice, ids[:, t + 1])
        over = torch.isin(ids[:, t + 1], stop) | (t + 2 - lens >= limit)
        end = torch.where(free & over & (end < 0), t + 2, end)
        if bool((end >= 0).all()):
            break
    return [ids[i, lens[i]:end[i]].tolist() for i in range(B)]


def greedy(king, prompts, stop, limit=256, batch=64):
    """As greedy_batch, for any number of prompts; prompts of like length go together."""
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    out = [None] * len(prompts)
    for at in range(0, len(order), batch):
        part = order[at:at + batch]
        for i, new in zip(part, greedy_batch(king, [prompts[i] for i in part], stop, limit)):
            out[i] = new
    return out
