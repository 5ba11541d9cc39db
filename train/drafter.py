"""DFlash 2 block drafter for the king: block-masked denoising with a candidate selector.

A block has `block_size` rows: the newest token (anchor) and mask tokens. Row r predicts the
token at its own position. The rows see each other in both directions and the context, which
consists of projected residual streams of the king at every committed token. Embedding and
output head are the king's.

Shapes: B rows of T context tokens, N blocks of R = block_size rows each, D hidden width.
"""

import json
import os
from dataclasses import asdict, dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from king import RMSNorm, repeat_heads, rope


@dataclass
class DrafterConfig:
    hidden_size: int = 512
    intermediate_size: int = 512
    num_hidden_layers: int = 2
    num_attention_heads: int = 8
    num_key_value_heads: int = 2
    head_dim: int = 64
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    sliding_window: int = 2048
    max_position_embeddings: int = 4096
    vocab_size: int = 4096
    num_target_layers: int = 4
    block_size: int = 8
    conv_kernel_size: int = 2
    conv_group_size: int = 16
    mask_token_id: int = 4073
    selector_rank: int = 64
    selector_top_k: int = 16
    target_layer_ids: list = field(default_factory=lambda: [1, 2, 3])

    def save(self, path):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(asdict(self), f, indent=1)

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as f:
            return cls(**json.load(f))


def linear(i, o):
    return nn.Linear(i, o, bias=False)


class GroupedDynamicConv(nn.Module):
    """Two-tap causal convolution over the rows of a block, with input-dependent coefficients
    per channel group; one kernel before and one after the wrapped function."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.groups = c.hidden_size // c.conv_group_size
        base = torch.zeros(2, c.conv_kernel_size, c.hidden_size)
        base[:, 0] = 1.0
        self.base_kernel = nn.Parameter(base)
        self.kernel_projection = linear(c.hidden_size, 2 * c.conv_kernel_size * self.groups)
        nn.init.zeros_(self.kernel_projection.weight)

    def apply_side(self, x, side, dynamic):
        """x [.., R, D], dynamic [.., R, 2, taps, groups]."""
        k = dynamic[..., side, :, :].repeat_interleave(self.c.conv_group_size, dim=-1)
        k = k + self.base_kernel[side]
        previous = F.pad(x, (0, 0, 1, 0))[..., :-1, :]
        return k[..., 0, :] * x + k[..., 1, :] * previous

    def forward(self, x, inner):
        dynamic = self.kernel_projection(x).unflatten(-1, (2, self.c.conv_kernel_size, self.groups))
        return self.apply_side(inner(self.apply_side(x, 0, dynamic)), 1, dynamic)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        D, h, kv, d = c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim
        self.q_proj, self.o_proj = linear(D, h * d), linear(h * d, D)
        self.k_proj, self.v_proj = linear(D, kv * d), linear(D, kv * d)
        self.q_norm, self.k_norm = RMSNorm(d, c.rms_norm_eps), RMSNorm(d, c.rms_norm_eps)

    def keys_values(self, x, pos):
        """x [.., n, D], pos [.., n] -> k, v [.., n, Hkv, d]."""
        kv, d = self.c.num_key_value_heads, self.c.head_dim
        k = self.k_norm(self.k_proj(x).unflatten(-1, (kv, d)))
        k = rope(k, pos.unsqueeze(-1), d, self.c.rope_theta)
        return k, self.v_proj(x).unflatten(-1, (kv, d))

    def forward(self, x, pos, context, mask):
        """x [B, N*R, D]; context k, v [B, T, Hkv, d]; mask [B, 1, N*R, T + N*R]."""
        c = self.c
        q = self.q_norm(self.q_proj(x).unflatten(-1, (c.num_attention_heads, c.head_dim)))
        q = rope(q, pos.unsqueeze(-1), c.head_dim, c.rope_theta)
        k, v = self.keys_values(x, pos)
        k, v = torch.cat([context[0], k], 1), torch.cat([context[1], v], 1)
        times = c.num_attention_heads // c.num_key_value_heads
        q, k, v = (t.transpose(1, 2) for t in (q, repeat_heads(k, times), repeat_heads(v, times)))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(y.transpose(1, 2).flatten(-2))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = linear(c.hidden_size, c.intermediate_size)
        self.up_proj = linear(c.hidden_size, c.intermediate_size)
        self.down_proj = linear(c.intermediate_size, c.hidden_size)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.self_attn, self.mlp = Attention(c), MLP(c)
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.attention_conv, self.mlp_conv = GroupedDynamicConv(c), GroupedDynamicConv(c)

    def forward(self, x, pos, context, mask, rows):
        """x [B, N*R, D]; the convolutions act inside each block of `rows` rows."""
        def blocks(t):
            return t.unflatten(1, (-1, rows))
        def attend(t):
            return blocks(self.self_attn(t.flatten(1, 2), pos, context, mask))
        x = x + self.attention_conv(blocks(self.input_layernorm(x)), attend).flatten(1, 2)
        return x + self.mlp_conv(blocks(self.post_attention_layernorm(x)), self.mlp).flatten(1, 2)


class CandidateSelector(nn.Module):
    """Scores a step from predecessor p to candidate c: logit(c) + sum_k A[p,k] g[k] B[c,k]."""

    def __init__(self, c):
        super().__init__()
        self.predecessor_codebook = nn.Embedding(c.vocab_size, c.selector_rank)
        self.successor_codebook = nn.Embedding(c.vocab_size, c.selector_rank)
        self.hidden_projection = linear(c.hidden_size, c.selector_rank)
        nn.init.normal_(self.predecessor_codebook.weight, std=0.3)
        nn.init.zeros_(self.successor_codebook.weight)

    def edges(self, hidden, previous, candidates):
        """hidden [.., D], previous [..], candidates [.., K] -> [.., K]."""
        g = self.hidden_projection(hidden) * self.predecessor_codebook(previous)
        return (g.unsqueeze(-2) * self.successor_codebook(candidates)).sum(-1)


class Drafter(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = c = config
        self.fc = linear(len(c.target_layer_ids) * c.hidden_size, c.hidden_size)
        self.hidden_norm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.num_hidden_layers))
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.candidate_selector = CandidateSelector(c)

    def forward(self, taps, block, pos_context, pos_block, mask):
        """taps [B, T, taps*D]; block [B, N*R, D] embedded tokens -> hidden states [B, N*R, D]."""
        ctx = self.hidden_norm(self.fc(taps))
        x = block
        rows = self.config.block_size
        for layer in self.layers:
            context = layer.self_attn.keys_values(ctx, pos_context)
            x = layer(x, pos_block, context, mask, rows)
        return self.norm(x)


def load_drafter(run):
    model = Drafter(DrafterConfig.load(os.path.join(run, "drafter.json")))
    model.load_state_dict(torch.load(os.path.join(run, "drafter.pt"), map_location="cpu")["model"])
    return model.eval()
