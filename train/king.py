"""The nugget king: a small language model of the Qwen3.5 family, whose layers are gated delta nets
(GDN) and gated full attention in turn.

The model itself is ordinary float32 PyTorch. What makes it a king is `packed_matrices`: the
matrices that a pack stores ternary, in a rotated basis. For a matrix W [out, in] the pack holds
W' = W . S . H, with S a diagonal of signs and H a blockwise normalized Hadamard matrix, as codes
in {-1, 0, 1} and one scale per 128 inputs. Training keeps W; `ternary_form` gives what the pack
would make of it.

Shapes: B rows, T tokens, D hidden width. Rows hold several documents; no state passes from one
to the next (`row_info`).
"""

import functools
import json
import math
from dataclasses import asdict, dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

GROUP = 128


@dataclass
class KingConfig:
    vocab_size: int = 4096
    hidden_size: int = 512
    intermediate_size: int = 1024
    num_hidden_layers: int = 4
    full_attention_interval: int = 2
    num_attention_heads: int = 8
    num_key_value_heads: int = 2
    head_dim: int = 64
    partial_rotary_factor: float = 0.25
    rope_theta: float = 10000.0
    linear_num_key_heads: int = 4
    linear_num_value_heads: int = 8
    linear_key_head_dim: int = 64
    linear_value_head_dim: int = 64
    linear_conv_kernel_dim: int = 4
    rms_norm_eps: float = 1e-6
    block: int = 512
    sign_seed: int = 7
    mrope_section: list = field(default_factory=lambda: [3, 3, 2])

    @property
    def key_dim(self):
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def value_dim(self):
        return self.linear_num_value_heads * self.linear_value_head_dim

    def is_attention(self, layer):
        return (layer + 1) % self.full_attention_interval == 0

    def save(self, path):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(asdict(self), f, indent=1)

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as f:
            return cls(**json.load(f))


# ------------------------------------------------------------------------- the ternary form


@functools.cache
def hadamard(n, device="cpu"):
    """Normalized Sylvester-Hadamard matrix [n, n]; symmetric and its own inverse."""
    h = torch.ones(1, 1, device=device)
    while h.shape[0] < n:
        h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)], 0)
    return h / math.sqrt(n)


@functools.cache
def signs(width, seed, device="cpu"):
    """Fixed +-1 vector [width]; a pack has one for each input width."""
    g = torch.Generator().manual_seed(seed * 100003 + width)
    return (torch.randint(0, 2, (width,), generator=g).float() * 2 - 1).to(device)


def blockwise(w, h):
    """Multiply each block of columns of w [out, in] by h [block, block]."""
    return (w.unflatten(-1, (-1, h.shape[0])) @ h).flatten(-2)


def ternary(rotated):
    """[out, in] -> codes in {-1, 0, 1} of the same shape and float16 scales [out, in / 128]."""
    g = rotated.float().unflatten(-1, (-1, GROUP))
    d = g.abs().mean(-1).clamp_min(1e-5).half()
    codes = (g / d.float().unsqueeze(-1)).round().clamp(-1, 1)
    return codes.flatten(-2), d


def packed_form(w, config):
    """W [out, in] in the plain basis -> the codes and scales that a pack stores."""
    s, h = signs(w.shape[1], config.sign_seed, w.device), hadamard(config.block, w.device)
    return ternary(blockwise(w * s, h))


def ternary_form(w, config):
    """W [out, in] -> the matrix in the plain basis that its pack stands for."""
    codes, d = packed_form(w, config)
    rotated = (codes.unflatten(-1, (-1, GROUP)) * d.float().unsqueeze(-1)).flatten(-2)
    s, h = signs(w.shape[1], config.sign_seed, w.device), hadamard(config.block, w.device)
    return blockwise(rotated, h) * s


# ------------------------------------------------------------------------- layers


def linear(width, rows, std):
    m = nn.Linear(width, rows, bias=False)
    nn.init.normal_(m.weight, std=std)
    return m


def repeat_heads(x, times):
    """[.., heads, d] -> [.., heads * times, d], each head repeated in place."""
    return x.unsqueeze(-2).expand(*x.shape[:-1], times, x.shape[-1]).flatten(-3, -2)


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class UnitLowerInverse(torch.autograd.Function):
    """(I + A)^-1 for strictly lower triangular A [.., C, C]: the product of I + (-A)^(2^i)."""

    @staticmethod
    def forward(ctx, a):
        size = a.shape[-1]
        power = -a.reshape(-1, size, size)
        inverse = power + torch.eye(size, device=a.device)
        for _ in range((size - 1).bit_length() - 1):
            power = torch.bmm(power, power)
            inverse = torch.baddbmm(inverse, inverse, power)
        ctx.save_for_backward(inverse)
        return inverse.view_as(a)

    @staticmethod
    def backward(ctx, grad):
        inverse, = ctx.saved_tensors
        t = inverse.transpose(1, 2)
        return -torch.bmm(torch.bmm(t, grad.reshape(inverse.shape)), t).view_as(grad)


def delta_rule(q, k, v, log_g, beta, chunk=32):
    """Gated delta rule over whole rows in chunked form.

    q, k [B, H, T, Dk], v [B, H, T, Dv], log_g, beta [B, H, T]; T a multiple of `chunk`.
    Returns y [B, H, T, Dv]. Inside a chunk G is the running sum of log_g, and with
    A[i, j] = beta[i] exp(G[i] - G[j]) (k[i] . k[j]) for j < i the corrected values are
    (I + A)^-1 applied to beta v and to beta exp(G) k; the state M [Dk, Dv] links the chunks.
    """
    B, H, T, _ = q.shape
    n = T // chunk
    q, k, v = (x.unflatten(2, (n, chunk)) for x in (q, k, v))
    beta = beta.unflatten(2, (n, chunk)).unsqueeze(-1)
    G = log_g.unflatten(2, (n, chunk)).cumsum(-1)
    lower = torch.ones(chunk, chunk, dtype=torch.bool, device=q.device).tril()
    decay = torch.exp((G.unsqueeze(-1) - G.unsqueeze(-2)).masked_fill(~lower, float("-inf")))
    inverse = UnitLowerInverse.apply(
        (k @ k.transpose(-1, -2)) * decay * beta * (1 - torch.eye(chunk, device=q.device)))
    from_start = torch.exp(G).unsqueeze(-1)
    U = inverse @ (beta * v)
    W = inverse @ (beta * from_start * k)
    inside = (q @ k.transpose(-1, -2)) * decay
    q = q * from_start
    last = G[..., -1:]
    k = (k * torch.exp(last - G).unsqueeze(-1)).transpose(-1, -2)
    keep = torch.exp(last).unsqueeze(-1)
    M = torch.zeros(B, H, k.shape[-2], v.shape[-1], device=q.device)
    new, old = [], []
    for u, w, r, s, e in zip(*(x.unbind(2) for x in (U, W, q, k, keep))):
        new.append(u - w @ M)
        old.append(r @ M)
        M = M * e + s @ new[-1]
    return (torch.stack(old, 2) + inside @ torch.stack(new, 2)).flatten(2, 3)


class GatedDeltaNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        D, heads = c.hidden_size, c.linear_num_value_heads
        channels = 2 * c.key_dim + c.value_dim
        self.in_proj_qkv = linear(D, channels, D ** -0.5)
        self.in_proj_z = linear(D, c.value_dim, D ** -0.5)
        self.in_proj_a = linear(D, heads, 0.02)
        self.in_proj_b = linear(D, heads, 0.02)
        self.conv1d = nn.Parameter(torch.randn(channels, c.linear_conv_kernel_dim) * 0.1)
        self.A_log = nn.Parameter(torch.linspace(-4.0, 1.0, heads))
        self.dt_bias = nn.Parameter(torch.full((heads,), -2.0))
        self.norm = RMSNorm(c.linear_value_head_dim, c.rms_norm_eps)
        self.out_proj = linear(c.value_dim, D, D ** -0.5 * 0.5)
        self.start_as_memory()

    @torch.no_grad()
    def start_as_memory(self):
        """Start as an associative memory: the key of a token is its predecessor, a query looks
        for its own token, and a value is written back in the direction it was read from. Such a
        layer recalls what followed the current token earlier, so copying need not be found by
        chance."""
        kd = self.c.key_dim
        w = self.in_proj_qkv.weight
        w[kd:2 * kd] = w[:kd]
        self.conv1d[:kd, -1] += 1
        self.conv1d[kd:2 * kd, -2] += 1
        self.conv1d[2 * kd:, -1] += 1
        self.out_proj.weight.copy_(w[2 * kd:].t() * 0.5)

    def forward(self, x, rows):
        """x [B, T, D] -> [B, T, D]."""
        c = self.c
        qkv = self.in_proj_qkv(x)
        taps = c.linear_conv_kernel_dim
        u = qkv * self.conv1d[:, taps - 1]
        for shift in range(1, taps):
            past = F.pad(qkv, (0, 0, shift, 0))[:, :x.shape[1]]
            u = u + past * rows["same"][shift - 1] * self.conv1d[:, taps - 1 - shift]
        q, k, v = F.silu(u).split([c.key_dim, c.key_dim, c.value_dim], -1)
        times = c.linear_num_value_heads // c.linear_num_key_heads

        def unit(t):
            t = t.unflatten(-1, (c.linear_num_key_heads, c.linear_key_head_dim))
            return repeat_heads(t * torch.rsqrt(t.pow(2).sum(-1, keepdim=True) + 1e-6), times)
        q, k = unit(q) * c.linear_key_head_dim ** -0.5, unit(k)
        v = v.unflatten(-1, (c.linear_num_value_heads, -1))
        log_g = -torch.exp(self.A_log) * F.softplus(self.in_proj_a(x) + self.dt_bias)
        log_g = log_g - 60.0 * rows["start"]            # forget the document before
        beta = torch.sigmoid(self.in_proj_b(x))
        y = delta_rule(*(t.transpose(1, 2) for t in (q, k, v, log_g, beta))).transpose(1, 2)
        z = self.in_proj_z(x).unflatten(-1, (c.linear_num_value_heads, -1))
        return self.out_proj((self.norm(y) * F.silu(z)).flatten(-2))


def rope(x, pos, dims, theta):
    """Half-split rotary embedding of the first `dims` of the last axis; pos [.., 1]."""
    half = dims // 2
    angle = pos.float().unsqueeze(-1) * theta ** (-torch.arange(half, device=x.device) / half)
    cos, sin = angle.cos(), angle.sin()
    a, b, rest = x[..., :half], x[..., half:dims], x[..., dims:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], -1)


class GatedAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        D, h, kv, d = c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim
        self.q_proj = linear(D, h * d * 2, D ** -0.5)
        self.k_proj = linear(D, kv * d, D ** -0.5)
        self.v_proj = linear(D, kv * d, D ** -0.5)
        self.o_proj = linear(h * d, D, D ** -0.5 * 0.5)
        self.q_norm = RMSNorm(d, c.rms_norm_eps)
        self.k_norm = RMSNorm(d, c.rms_norm_eps)

    def forward(self, x, rows):
        c = self.c
        h, kv, d = c.num_attention_heads, c.num_key_value_heads, c.head_dim
        rotary, pos = int(d * c.partial_rotary_factor), rows["pos"].unsqueeze(-1)
        q, gate = self.q_proj(x).unflatten(-1, (h, 2 * d)).split([d, d], -1)
        q = rope(self.q_norm(q), pos, rotary, c.rope_theta)
        k = rope(self.k_norm(self.k_proj(x).unflatten(-1, (kv, d))), pos, rotary, c.rope_theta)
        v = self.v_proj(x).unflatten(-1, (kv, d))
        q, k, v = (t.transpose(1, 2)
                   for t in (q, repeat_heads(k, h // kv), repeat_heads(v, h // kv)))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=rows["mask"])
        return self.o_proj(y.transpose(1, 2).flatten(-2) * torch.sigmoid(gate.flatten(-2)))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        D, wide = c.hidden_size, c.intermediate_size
        self.gate_proj = linear(D, wide, D ** -0.5)
        self.up_proj = linear(D, wide, D ** -0.5)
        self.down_proj = linear(wide, D, wide ** -0.5 * 0.5)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One decoder layer; its children carry the names that they have in a pack."""

    def __init__(self, c, index):
        super().__init__()
        self.kind = "self_attn" if c.is_attention(index) else "linear_attn"
        self.add_module(self.kind, GatedAttention(c) if c.is_attention(index) else GatedDeltaNet(c))
        self.mlp = MLP(c)
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, h, rows):
        h = h + getattr(self, self.kind)(self.input_layernorm(h), rows)
        return h + self.mlp(self.post_attention_layernorm(h))


class King(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = c = config
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        nn.init.normal_(self.embed_tokens.weight, std=0.1)
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c.num_hidden_layers))
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.lm_head = nn.Linear(c.hidden_size, c.vocab_size, bias=False)
        with torch.no_grad():       # a recalled token is its own prediction
            self.lm_head.weight.copy_(self.embed_tokens.weight * 0.25)

    def forward(self, tokens, rows):
        """tokens [B, T] -> normalized hidden states [B, T, D]."""
        h = self.embed_tokens(tokens)
        for layer in self.layers:
            h = layer(h, rows)
        return self.norm(h)

    def packed_matrices(self):
        """Names of the parameters that a pack stores ternary, in model order."""
        plain = ("in_proj_a.weight", "in_proj_b.weight", "conv1d")
        return [n for n, p in self.named_parameters() if p.dim() == 2 and not n.endswith(plain)]

    @torch.no_grad()
    def harden(self):
        """Replace the packed matrices by what a pack makes of them."""
        for name in self.packed_matrices():
            p = self.get_parameter(name)
            p.copy_(ternary_form(p, self.config))
        return self


def row_info(start):
    """start [B, T] bool, true at the first token of each document -> what the layers need to
    keep the documents of a row apart."""
    B, T = start.shape
    index = torch.arange(T, device=start.device).expand(B, T)
    pos = index - torch.where(start, index, torch.zeros_like(index)).cummax(1).values
    doc = start.long().cumsum(1)
    mask = (doc.unsqueeze(2) == doc.unsqueeze(1)) & (index.unsqueeze(2) >= index.unsqueeze(1))
    return dict(start=start.float().unsqueeze(-1), pos=pos, mask=mask.unsqueeze(1),
                same=[(pos >= s).float().unsqueeze(-1) for s in range(1, 4)])
