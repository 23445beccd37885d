"""The rungs for any GPU: three kernels, one with online softmax, and one with mma.sync.

Source of the algorithm: Dao et al., FlashAttention (2022) and FlashAttention-2 (2023).
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from course.kernels.attention.problem import (
    check,
    flat,
    problem_of,
    results_for,
    stream,
    strides_of,
)
from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
DIMS = (64, 128)
WARPS = 4  # of an mma block
ONLINE_QUERIES = 16  # of an online block


@yours.cache
def module(file: str, *flags: str):
    """A compiled file of kernels."""
    return cuda_c.load(KERNELS / f"{file}.cu", flags=flags)


def described(*tensors) -> tuple[list, list]:
    """(their memory, their strides), as the kernels take them."""
    return [flat(tensor) for tensor in tensors], [strides_of(tensor) for tensor in tensors]


def naive(q, k, v, causal: bool = False, *, out=None, lse=None) -> tuple:
    """(out, lse) of float32 by three kernels; scores of all heads lie in global memory between."""
    check(q, k, v, torch.float32, DIMS)
    out, lse = results_for(q, out, lse)
    problem = problem_of(q, k, causal)
    kernels = module("naive", f"-DDIM={q.shape[-1]}")
    (to, *given), (of_out, of_q, of_k, of_v) = described(out, q, k, v)
    batch, queries, heads, dim = q.shape
    keys = k.shape[1]
    scores = torch.empty(batch * heads * queries * keys, device=q.device)
    all_heads = batch * heads
    grid = ceil_div(keys, 256), queries, all_heads
    on = stream()
    kernels.score[grid, 256, 0, on](scores, given[0], given[1], problem, of_q, of_k)
    kernels.weigh[(queries, all_heads), 32, 0, on](scores, lse, problem)
    kernels.add[(queries, all_heads), dim, 0, on](to, scores, given[2], problem, of_out, of_v)
    return out, lse


def online(q, k, v, causal: bool = False, *, out=None, lse=None) -> tuple:
    """(out, lse) of float32 by one kernel."""
    check(q, k, v, torch.float32, DIMS)
    out, lse = results_for(q, out, lse)
    batch, queries, heads, dim = q.shape
    arrays, strides = described(out, q, k, v)
    launch = module("online", f"-DDIM={dim}").attention
    grid = ceil_div(queries, ONLINE_QUERIES), heads, batch
    launch[grid, 256, 0, stream()](*arrays, lse, problem_of(q, k, causal), *strides)
    return out, lse


@dataclass(frozen=True)
class Tile:
    """How mma.cu is compiled. down: products of 16 queries for each warp. blocks: of an SM."""

    down: int = 2
    keys: int = 64
    blocks: int = 2

    def flags(self, dim: int, dtype: torch.dtype) -> tuple[str, ...]:
        """The compiler's flags for it."""
        named = {"DIM": dim, "DOWN": self.down, "KEYS": self.keys, "BLOCKS": self.blocks}
        flags = [f"-D{name}={value}" for name, value in named.items()]
        return (*flags, "-DHALF") if dtype == torch.float16 else tuple(flags)

    @property
    def queries(self) -> int:
        """Of a block."""
        return 16 * self.down * WARPS

    def shared(self, dim: int) -> int:
        """Bytes of shared memory for each block: q, and two tiles each of k and v."""
        return 2 * dim * (self.queries + 4 * self.keys)


ROOMY = Tile()
SMALL = Tile(down=1, keys=32, blocks=1)  # 48 KB with heads of 128: for GPUs before Ampere


def mma(q, k, v, causal: bool = False, *, out=None, lse=None, tile: Tile = ROOMY) -> tuple:
    """(out, lse) of bfloat16 or float16, by mma.sync."""
    dtype = q.dtype if q.dtype == torch.float16 else torch.bfloat16
    check(q, k, v, dtype, DIMS)
    out, lse = results_for(q, out, lse)
    batch, queries, heads, dim = q.shape
    arrays, strides = described(out, q, k, v)
    launch = module("mma", *tile.flags(dim, dtype)).attention
    grid = ceil_div(queries, tile.queries), heads, batch
    shape = grid, 32 * WARPS, tile.shared(dim), stream()
    launch[shape](*arrays, lse, problem_of(q, k, causal), *strides)
    return out, lse
