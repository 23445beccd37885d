"""The model in plain PyTorch, as a whole and one token at a time, in whatever type weights have.

With weights of float64 it is what kernels are held to; gradients come from autograd.
"""

import torch
from torch.nn import functional

from course.kernels.language_model.problem import PAGE, Cache, Config
from utils.occupancy import ceil_div


def norm(x, weight, eps: float) -> torch.Tensor:
    """x over the root of its mean square, times weight; along the last axis."""
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight


def angles(config: Config, positions) -> torch.Tensor:
    """[..., head / 2] in float64: by how much pair i of a head is turned at positions [...]."""
    pairs = torch.arange(0, config.head, 2, dtype=torch.float64, device=positions.device)
    return positions.double()[..., None] * config.theta ** (-pairs / config.head)


def turned(x, angle) -> torch.Tensor:
    """x [batch, positions, heads, head], its pairs (i, i + head / 2) turned by angle.

    angle: [positions, head / 2], or of each sequence [batch, positions, head / 2].
    """
    cos, sin = (f(angle)[..., None, :].to(x.dtype) for f in (torch.cos, torch.sin))
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


def attend(q, k, v, positions) -> torch.Tensor:
    """q [batch, queries, heads, head] against k, v [batch, keys, kv_heads, head].

    A query sees the keys up to its position. positions: [queries], or [batch, queries].
    """
    group = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(group, 2) for x in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    keys = torch.arange(k.shape[1], device=q.device)
    later = keys > positions[..., None]
    scores = scores.masked_fill(later.reshape(-1, 1, *later.shape[-2:]), -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)


def queries_keys_values(config: Config, x, weight, positions) -> tuple:
    """(q, k, v) of x [batch, positions, width]; q and k are turned.

    Each [batch, positions, its heads, head].
    """
    counts = config.heads, config.kv_heads, config.kv_heads
    parts = functional.linear(x, weight).split([n * config.head for n in counts], -1)
    q, k, v = (x.unflatten(-1, (n, config.head)) for x, n in zip(parts, counts, strict=True))
    angle = angles(config, positions)
    return turned(q, angle), turned(k, angle), v


def swiglu(x, gate_up, down) -> torch.Tensor:
    """down (silu(gate x) * (up x))."""
    gate, up = functional.linear(x, gate_up).chunk(2, -1)
    return functional.linear(functional.silu(gate) * up, down)


def through_layers(config: Config, weights: dict, tokens, positions, keys_of) -> torch.Tensor:
    """Logits [batch, positions, vocabulary].

    keys_of(layer, k, v): all keys and values that queries may see, given those of these positions.
    """
    x = weights["embedding"][tokens]
    for layer in range(config.layers):
        own = {name: weight[layer] for name, weight in weights.items() if name in STACKED}
        y = norm(x, own["norm_1"], config.eps)
        q, k, v = queries_keys_values(config, y, own["qkv"], positions)
        mixed = attend(q, *keys_of(layer, k, v), positions)
        x = x + functional.linear(mixed.flatten(-2), own["out"])
        x = x + swiglu(norm(x, own["norm_2"], config.eps), own["gate_up"], own["down"])
    return functional.linear(norm(x, weights["norm"], config.eps), weights["embedding"])


#: Weights that have one entry for each layer
STACKED = ("norm_1", "qkv", "out", "norm_2", "gate_up", "down")


def forward(config: Config, weights: dict, tokens) -> torch.Tensor:
    """Logits [batch, length, vocabulary] of tokens [batch, length]."""
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    return through_layers(config, weights, tokens, positions, lambda layer, k, v: (k, v))


def decode(config: Config, weights: dict, cache: Cache, token, position) -> torch.Tensor:
    """Logits [batch, vocabulary] of one token of each sequence; appends its keys and values.

    token: [batch]. position: an int, or [batch] where the sequences' positions differ.
    """
    position = torch.as_tensor(position, device=token.device).expand(len(token))
    page = cache.table.long().gather(1, position[:, None] // PAGE)[:, 0]
    length = int(position.max()) + 1
    pages = cache.table[:, : ceil_div(length, PAGE)].long()

    def appended(layer, k, v):
        cache.k[layer, page, position % PAGE] = k[:, 0].to(cache.k.dtype)
        cache.v[layer, page, position % PAGE] = v[:, 0].to(cache.v.dtype)
        rows = [x[layer, pages].flatten(1, 2)[:, :length] for x in (cache.k, cache.v)]
        return [x.to(k.dtype) for x in rows]

    return through_layers(config, weights, token[:, None], position[:, None], appended)[:, 0]
