"""Small fused kernels: a linear layer with its GELU, and attention in one pass."""

import torch
import triton
import triton.language as tl

from course.kernels.tiles.softmax import in_order


@triton.jit
def linear_gelu(
    out,
    x,
    weight,
    bias,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """out = gelu(x weight.T + bias); weight has n rows of k, as torch.nn.Linear keeps it."""
    first_row = tl.program_id(0) * BM
    first_column = tl.program_id(1) * BN
    row = first_row + tl.arange(0, BM)[:, None]
    column = first_column + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        inner = k0 + tl.arange(0, BK)
        right = inner[None, :]
        down = inner[:, None]
        inside_x = (row < m) & (right < k)
        inside_w = (column < n) & (down < k)
        tile_x = tl.load(x + row * k + right, mask=inside_x, other=0.0)
        tile_w = tl.load(weight + column * k + down, mask=inside_w, other=0.0)
        total = tl.dot(tile_x, tile_w, total)
    total += tl.load(bias + column, mask=column < n, other=0.0)
    share = 0.5 * (1 + tl.erf(total * 0.7071067811865476))
    result = total * share
    inside = (row < m) & (column < n)
    kind = out.dtype.element_ty
    tl.store(out + row * n + column, result.to(kind), mask=inside)


def run_linear_gelu(x, weight, bias, tile: int = 64) -> torch.Tensor:
    """gelu(x weight.T + bias) for x [m, k], weight [n, k], bias [n]."""
    in_order(x=x, weight=weight, bias=bias)
    m, k = x.shape
    n = len(weight)
    out = torch.empty(
        m,
        n,
        device=x.device,
        dtype=x.dtype,
    )
    grid = (triton.cdiv(m, tile), triton.cdiv(n, tile))
    launch = linear_gelu[grid]
    launch(
        out,
        x,
        weight,
        bias,
        m,
        n,
        k,
        BM=tile,
        BN=tile,
        BK=32,
    )
    return out


@triton.jit
def attention(out, q, k, v, n, scale, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """softmax(q k.T * scale) v for BLOCK queries; keys and values come by in blocks."""
    head = tl.program_id(1).to(tl.int64) * n * WIDTH
    first_row = tl.program_id(0) * BLOCK
    row = first_row + tl.arange(0, BLOCK)[:, None]
    d = tl.arange(0, WIDTH)
    here = head + row * WIDTH + d
    queries = tl.load(q + here, mask=row < n, other=0.0)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    result = tl.zeros((BLOCK, WIDTH), tl.float32)
    for first in range(0, n, BLOCK):
        other = first + tl.arange(0, BLOCK)
        at = head + other[:, None] * WIDTH + d
        inside = other[:, None] < n
        keys = tl.load(k + at, mask=inside, other=0.0)
        values = tl.load(v + at, mask=inside, other=0.0)
        scores = tl.dot(queries, tl.trans(keys)) * scale
        scores = tl.where(other[None, :] < n, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - higher)
        powers = tl.exp(scores - higher[:, None])
        total = total * shrink + tl.sum(powers, 1)
        weights = powers.to(values.dtype)
        result = result * shrink[:, None] + tl.dot(weights, values)
        top = higher
    result = result / total[:, None]
    tl.store(out + here, result.to(out.dtype.element_ty), mask=row < n)


def run_attention(q, k, v, block: int = 64) -> torch.Tensor:
    """Attention of [heads, n, width] queries, keys and values, each contiguous."""
    in_order(q=q, k=k, v=v)
    heads, n, width = q.shape
    out = torch.empty_like(q)
    grid = (triton.cdiv(n, block), heads)
    scale = width**-0.5
    attention[grid](
        out,
        q,
        k,
        v,
        n,
        scale,
        WIDTH=width,
        BLOCK=block,
    )
    return out
