"""Attention's forward pass in Numba, as small as it gets: a thread per query, no matrix of scores.

Source of the algorithm: Dao et al., FlashAttention (2022).
"""

import math

import numpy as np
import torch
from numba import cuda, float32

from course.kernels.attention.problem import results_for
from utils import has_gpu
from utils.occupancy import ceil_div

QUERIES = 64  # of a block, one for each thread
KEYS = 16  # of a tile
MOST = 128  # numbers of a head, at most: Numba wants an array's size by a constant's name
LOWEST = float32(-math.inf)


@cuda.jit(device=True)
def bring(tile, rows, first):
    """All threads of a block copy rows from `first` on into a tile, and zeros behind the last."""
    dim = rows.shape[1]
    for j in range(cuda.threadIdx.x, KEYS * dim, cuda.blockDim.x):
        row = first + j // dim
        tile[j // dim, j % dim] = rows[row, j % dim] if row < rows.shape[0] else float32(0)


@cuda.jit(device=True)
def product(a, b, dim):
    total = float32(0)
    for x in range(dim):
        total += a[x] * b[x]
    return total


@cuda.jit
def flash_batch(out, lse, q, k, v, scale, causal):
    tile_k = cuda.shared.array((KEYS, MOST), float32)
    tile_v = cuda.shared.array((KEYS, MOST), float32)
    result = cuda.local.array(MOST, float32)
    i, head, batch = cuda.grid(1), cuda.blockIdx.y, cuda.blockIdx.z
    queries, keys, dim = q.shape[1], k.shape[1], q.shape[3]
    key_head = head * k.shape[2] // q.shape[2]
    query = q[batch, min(i, queries - 1), head]
    sees = min(keys, i + 1 + keys - queries) if causal else keys
    largest, total = LOWEST, float32(0)
    for x in range(dim):
        result[x] = 0
    for first in range(0, keys, KEYS):
        cuda.syncthreads()  # all have used the tiles before
        bring(tile_k, k[batch, :, key_head], first)
        bring(tile_v, v[batch, :, key_head], first)
        cuda.syncthreads()
        for key in range(min(KEYS, sees - first)):
            score = scale * product(query, tile_k[key], dim)
            new = max(largest, score)
            factor, weight = math.exp(largest - new), math.exp(score - new)
            total = total * factor + weight
            for x in range(dim):
                result[x] = result[x] * factor + weight * tile_v[key, x]
            largest = new
    if i < queries:
        for x in range(dim):
            out[batch, i, head, x] = result[x] / total if total > 0 else float32(0)
        lse[batch, head, i] = largest + math.log(total) if total > 0 else LOWEST


def attention(q, k, v, causal: bool = False, *, out=None, lse=None, kernel=flash_batch) -> tuple:
    """(out, lse) of float32 [batch, length, heads, dim], heads of up to 128 numbers.

    lse: float32 [batch, heads, queries]. kernel: with the parameters of `flash_batch`. ValueError
    where types or shapes do not fit.
    """
    for name, tensor in {"q": q, "k": k, "v": v}.items():
        if tensor.dtype != torch.float32 or tensor.dim() != 4 or tensor.shape[-1] > MOST:
            raise ValueError(f"{name} must be float32 [batch, length, heads, up to {MOST}]")
    if k.shape != v.shape or k.shape[::3] != q.shape[::3] or q.shape[2] % k.shape[2]:
        shapes = f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
        raise ValueError(f"q, k and v do not fit together: {shapes}")
    out, lse = results_for(q, out, lse)
    batch, queries, heads, dim = q.shape
    arrays = [as_array(tensor) for tensor in (out, lse, q, k, v)]
    kernel[(ceil_div(queries, QUERIES), heads, batch), QUERIES](
        *arrays, np.float32(dim**-0.5), causal
    )
    return out, lse


def as_array(tensor: torch.Tensor):
    """A tensor's memory as Numba takes it."""
    return cuda.as_cuda_array(tensor) if has_gpu() else tensor.numpy()
