"""Attention's forward pass in Triton: a program per tile of queries and head.

Tiles of keys that all of its queries see whole come first, without a mask, then those that the
diagonal or the last key cuts. Source of the algorithm: Dao, FlashAttention-2 (2023).
"""

import math

import triton
import triton.language as tl

from course.kernels.attention.problem import results_for
from course.kernels.tiles.softmax import in_order
from utils import has_gpu

#: Queries of a program, keys of a tile, warps, and tiles on their way at a time
TILE = {"QUERIES": 128, "KEYS": 64, "num_warps": 8, "num_stages": 3}
SMALL = {"QUERIES": 16, "KEYS": 16}  # without a GPU: several tiles of short sequences, too
MASKED = tl.constexpr(-float("inf"))
LN_2 = tl.constexpr(math.log(2))


@triton.jit
def take(state, q, k, v, first, sees, keys, key_stride, scale, MASK: tl.constexpr):
    """The state (largest score, sum of weights, weighted sum of values) with one more tile."""
    largest, total, result = state
    KEYS: tl.constexpr = k.shape[0]
    column = first + tl.arange(0, KEYS)
    at = (first * key_stride).to(tl.int64)
    inside = column[:, None] < keys
    tile_k = tl.load(k + at, mask=inside, other=0.0)
    scores = tl.dot(q, tl.trans(tile_k), input_precision="ieee") * scale
    if MASK:
        scores = tl.where(column[None, :] < sees[:, None], scores, MASKED)
    new = tl.maximum(largest, tl.max(scores, 1))
    shift = tl.where(new == MASKED, 0.0, new)  # -inf - -inf would be NaN
    factor = tl.exp2(largest - shift)
    weights = tl.exp2(scores - shift[:, None])
    total = total * factor + tl.sum(weights, 1)
    tile_v = tl.load(v + at, mask=inside, other=0.0)
    product = tl.dot(weights.to(tile_v.dtype), tile_v, input_precision="ieee")
    return new, total, result * factor[:, None] + product


@triton.jit
def flash(
    out,
    lse,
    q,
    k,
    v,
    queries,
    keys,
    heads,
    key_heads,
    scale,
    CAUSAL: tl.constexpr,
    DIM: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """scale: of a score, times log2(e): weights are powers of 2."""
    first_row = tl.program_id(0) * QUERIES
    head = tl.program_id(1)
    batch = tl.program_id(2).to(tl.int64)
    key_head = head // (heads // key_heads)
    row = first_row + tl.arange(0, QUERIES)
    x = tl.arange(0, DIM)[None, :]
    own = ((batch * queries + row[:, None]) * heads + head) * DIM + x
    is_query = row[:, None] < queries
    tile_q = tl.load(q + own, mask=is_query, other=0.0)
    tile = tl.arange(0, KEYS)[:, None]
    of_keys = ((batch * keys + tile) * key_heads + key_head) * DIM + x
    key_stride = key_heads * DIM

    sees = row + 1 + keys - queries if CAUSAL else row * 0 + keys
    least = first_row + 1 + keys - queries if CAUSAL else keys  # of the first query
    most = least + QUERIES - 1 if CAUSAL else keys
    whole = tl.maximum(0, tl.minimum(least, keys)) // KEYS * KEYS
    end = tl.maximum(0, tl.minimum(most, keys))
    largest = tl.full((QUERIES,), MASKED, tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    result = tl.zeros((QUERIES, DIM), tl.float32)
    for first in range(0, whole, KEYS):
        largest, total, result = take(
            (largest, total, result), tile_q, k + of_keys, v + of_keys, first, sees, keys,
            key_stride, scale, False,
        )  # fmt: skip
    for first in range(whole, end, KEYS):
        largest, total, result = take(
            (largest, total, result), tile_q, k + of_keys, v + of_keys, first, sees, keys,
            key_stride, scale, True,
        )  # fmt: skip
    sum = tl.where(total > 0, total, 1.0)  # 0: it sees no key
    shares = tl.where(total[:, None] > 0, result / sum[:, None], 0.0)
    tl.store(out + own, shares.to(out.dtype.element_ty), mask=is_query)
    own_lse = (batch * heads + head) * queries + row
    logarithm = (largest + tl.log2(sum)) * LN_2
    tl.store(lse + own_lse, logarithm, mask=row < queries)


def attention(q, k, v, causal: bool = False, *, out=None, lse=None, **tile: int) -> tuple:
    """(out, lse) of [batch, length, heads, dim], contiguous; dim: a power of two from 16 on.

    lse: float32 [batch, heads, queries]. tile: in place of TILE. ValueError where they do not fit.
    """
    in_order(q=q, k=k, v=v)
    dim = q.shape[-1]
    if dim < 16 or dim & (dim - 1):
        raise ValueError(f"heads must have 16, 32, 64 ... numbers, not {dim}")
    if k.shape != v.shape or k.shape[::3] != q.shape[::3] or q.shape[2] % k.shape[2]:
        shapes = f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
        raise ValueError(f"q, k and v do not fit together: {shapes}")
    out, lse = results_for(q, out, lse)
    tile = tile or (TILE if has_gpu() else SMALL)
    batch, queries, heads, _ = q.shape
    grid = triton.cdiv(queries, tile["QUERIES"]), heads, batch
    sizes = queries, k.shape[1], heads, k.shape[2]
    scale = dim**-0.5 * math.log2(math.e)
    flash[grid](out, lse, q, k, v, *sizes, scale, CAUSAL=causal, DIM=dim, **tile)
    return out, lse
