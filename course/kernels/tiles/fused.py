"""Small fused kernels: a linear layer with its GELU, and attention in one pass."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_gelu(
    out, x, weight, bias, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """out = gelu(x weight.T + bias); weight has n rows of k, as torch.nn.Linear keeps it."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        inner = k0 + tl.arange(0, BK)
        inside_x = (row[:, None] < m) & (inner[None, :] < k)
        inside_w = (column[None, :] < n) & (inner[:, None] < k)
        tile_x = tl.load(x + row[:, None] * k + inner[None, :], mask=inside_x, other=0.0)
        tile_w = tl.load(weight + column[None, :] * k + inner[:, None], mask=inside_w, other=0.0)
        total = tl.dot(tile_x, tile_w, total)
    total += tl.load(bias + column, mask=column < n, other=0.0)[None, :]
    result = 0.5 * total * (1 + tl.erf(total * 0.7071067811865476))
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(out + row[:, None] * n + column[None, :], result.to(out.dtype.element_ty), mask=inside)


def run_linear_gelu(x, weight, bias, tile: int = 64) -> torch.Tensor:
    """gelu(x weight.T + bias) for x [m, k], weight [n, k], bias [n]."""
    (m, k), n = x.shape, len(weight)
    out = torch.empty(m, n, device=x.device, dtype=x.dtype)
    grid = triton.cdiv(m, tile), triton.cdiv(n, tile)
    linear_gelu[grid](out, x, weight, bias, m, n, k, BM=tile, BN=tile, BK=32)
    return out


@triton.jit
def attention(out, q, k, v, n, scale, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """softmax(q k.T * scale) v for BLOCK queries; keys and values come by in blocks.

    What softmax needs of a row, its maximum and its sum, is kept and corrected on the way: no
    matrix of n × n is ever in memory.
    """
    head = tl.program_id(1).to(tl.int64) * n * WIDTH
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, WIDTH)
    queries = tl.load(q + head + row[:, None] * WIDTH + d, mask=row[:, None] < n, other=0.0)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    result = tl.zeros((BLOCK, WIDTH), tl.float32)
    for first in range(0, n, BLOCK):
        other = first + tl.arange(0, BLOCK)
        at = head + other[:, None] * WIDTH + d
        keys = tl.load(k + at, mask=other[:, None] < n, other=0.0)
        values = tl.load(v + at, mask=other[:, None] < n, other=0.0)
        scores = tl.dot(queries, tl.trans(keys)) * scale
        scores = tl.where(other[None, :] < n, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - higher)
        powers = tl.exp(scores - higher[:, None])
        total = total * shrink + tl.sum(powers, 1)
        result = result * shrink[:, None] + tl.dot(powers.to(values.dtype), values)
        top = higher
    result = result / total[:, None]
    at = head + row[:, None] * WIDTH + d
    tl.store(out + at, result.to(out.dtype.element_ty), mask=row[:, None] < n)


def run_attention(q, k, v, block: int = 64) -> torch.Tensor:
    """Attention of [heads, n, width] queries, keys and values, each contiguous."""
    heads, n, width = q.shape
    out = torch.empty_like(q)
    attention[(triton.cdiv(n, block), heads)](
        out, q, k, v, n, width**-0.5, WIDTH=width, BLOCK=block
    )
    return out
