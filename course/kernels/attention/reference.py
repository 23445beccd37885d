"""Attention in float64, and what a case of it is: its shapes and its inputs.

Layouts are those of PyTorch's models: q and out [batch, queries, heads, dim], k and v
[batch, keys, key heads, dim]. Heads of queries share the heads of keys in groups (GQA, MQA).
A causal query sees no key later than itself; where the lengths differ, the last query sees the
last key. A query that sees no key at all has the result zero.
"""

from dataclasses import dataclass

import torch

from utils import has_gpu

DEVICE = "cuda" if has_gpu() else "cpu"


@dataclass(frozen=True)
class Case:
    """Shapes of an attention. keys, key_heads: None for as many as of queries."""

    batch: int = 1
    queries: int = 128
    keys: int | None = None
    heads: int = 1
    key_heads: int | None = None
    dim: int = 128
    causal: bool = False

    @property
    def shape_of_queries(self) -> tuple[int, int, int, int]:
        """[batch, queries, heads, dim]."""
        return self.batch, self.queries, self.heads, self.dim

    @property
    def shape_of_keys(self) -> tuple[int, int, int, int]:
        """[batch, keys, key heads, dim]."""
        return self.batch, self.keys or self.queries, self.key_heads or self.heads, self.dim


def seen(row: int, queries: int, keys: int) -> int:
    """How many keys a causal query in this row sees: the first ones."""
    return max(0, min(keys, row + 1 + keys - queries))


def inputs(case: Case, dtype=torch.bfloat16, *, spread: float = 1.0, seed: int = 0) -> tuple:
    """q, k, v: random and normally distributed. spread: of q, and so of all scores."""
    generator = torch.Generator(DEVICE).manual_seed(seed)
    draw = {"generator": generator, "device": DEVICE}
    q = spread * torch.randn(case.shape_of_queries, **draw)
    k = torch.randn(case.shape_of_keys, **draw)
    v = torch.randn(case.shape_of_keys, **draw)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def attention(q, k, v, causal: bool = False, scale: float | None = None) -> tuple:
    """(out, lse) in float64: softmax(scale q kᵀ) v, and the logarithm of each row's sum.

    scale: 1 / √dim unless given. lse: [batch, heads, queries], -inf where a query sees no key.
    """
    _, queries, heads, dim = q.shape
    keys = k.shape[1]
    group = heads // k.shape[2]
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    k = k.repeat_interleave(group, 1)
    v = v.repeat_interleave(group, 1)
    scores = (scale or dim**-0.5) * q @ k.mT
    if causal:
        row = torch.arange(queries, device=q.device)[:, None]
        column = torch.arange(keys, device=q.device)
        scores.masked_fill_(column > row + keys - queries, -torch.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse[..., None]).exp().nan_to_num(0.0)  # -inf - -inf: sees no key
    return (weights @ v).transpose(1, 2), lse


@dataclass(frozen=True)
class Gradients:
    """What the backward pass computes in float64, and what it comes from.

    dq, dk, dv: as q, k, v. The others are [batch, heads, ...], heads of keys once for each query's.
    """

    dq: torch.Tensor
    dk: torch.Tensor
    dv: torch.Tensor
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    dout: torch.Tensor
    out: torch.Tensor
    weights: torch.Tensor
    ds: torch.Tensor  # of each score


def gradients(q, k, v, dout, causal: bool = False) -> Gradients:
    """Of the sum of dout times attention's out, with respect to q, k and v, in float64."""
    _, queries, _, dim = q.shape
    keys, key_heads = k.shape[1:3]
    group = q.shape[2] // key_heads
    scale = dim**-0.5
    out, lse = attention(q, k, v, causal)
    q, k, v, dout, out = (x.double().transpose(1, 2) for x in (q, k, v, dout, out))
    k = k.repeat_interleave(group, 1)
    v = v.repeat_interleave(group, 1)
    weights = (scale * q @ k.mT - lse[..., None]).exp()
    if causal:
        row = torch.arange(queries, device=q.device)[:, None]
        column = torch.arange(keys, device=q.device)
        weights.masked_fill_(column > row + keys - queries, 0)
    delta = (dout * out).sum(-1)
    ds = weights * (dout @ v.mT - delta[..., None])
    dq = (scale * ds @ k).transpose(1, 2)
    dk = over_groups(scale * ds.mT @ q, key_heads)
    dv = over_groups(weights.mT @ dout, key_heads)
    return Gradients(dq, dk, dv, q, k, v, dout, out, weights, ds)


def over_groups(x: torch.Tensor, key_heads: int) -> torch.Tensor:
    """[batch, heads, keys, dim] summed over each group of heads: [batch, keys, key heads, dim]."""
    return x.unflatten(1, (key_heads, -1)).sum(2).transpose(1, 2)


def largest_score(q, k) -> float:
    """The largest magnitude of a score, a key that nobody sees among them."""
    group = q.shape[2] // k.shape[2]
    q = q.double().transpose(1, 2)
    k = k.double().transpose(1, 2).repeat_interleave(group, 1)
    return (q @ k.mT).abs().max().item() * q.shape[-1] ** -0.5
