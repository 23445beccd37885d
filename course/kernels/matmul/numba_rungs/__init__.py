"""The ladder's kernels in Numba, each the twin of one in CUDA C."""

import numpy as np
from numba import cuda

from course.kernels.matmul.ladder import Multiply, blocks
from course.kernels.matmul.numba_rungs.coalesced import coalesced
from course.kernels.matmul.numba_rungs.naive import naive
from course.kernels.matmul.numba_rungs.tile import tile
from course.kernels.matmul.numba_rungs.tile_1d import tile_1d
from course.kernels.matmul.numba_rungs.tile_2d import tile_2d
from course.kernels.matmul.numba_rungs.unsigned import unsigned
from utils import has_gpu

__all__ = [
    "RUNGS",
    "coalesced",
    "multiplier",
    "naive",
    "small",
    "tile",
    "tile_1d",
    "tile_2d",
    "unsigned",
]

#: name -> kernel, (rows, columns) of C that a block computes, threads of a block
RUNGS = {
    "naive": (naive, (32, 8), (32, 8)),
    "coalesced": (coalesced, (8, 32), (32, 8)),
    "tile": (tile, (32, 32), (32, 32)),
    "tile_1d": (tile_1d, (64, 64), 512),
    "tile_2d": (tile_2d, (128, 128), 256),
    "unsigned": (unsigned, (128, 128), 256),
}


def multiplier(name: str, kernel=None) -> Multiply:
    """multiply(c, a, b) with one of `RUNGS`, on PyTorch's own memory. kernel: in its place."""
    ours, (rows, columns), threads = RUNGS[name]
    kernel = kernel or ours

    def multiply(c, a, b):
        grid = blocks(c.shape[1], columns), blocks(c.shape[0], rows)
        if name == "naive":  # x: rows
            grid = grid[::-1]
        kernel[grid, threads](_view(c), _view(a), _view(b))

    return multiply


def small(m: int, n: int, k: int) -> tuple[np.ndarray, ...]:
    """c (m × n, zeros), a (m × k) and b (k × n, random) of a product to trace."""
    rng = np.random.default_rng(m + n + k)
    a = rng.random((m, k), dtype=np.float32)
    b = rng.random((k, n), dtype=np.float32)
    return np.zeros((m, n), np.float32), a, b


def _view(tensor):
    """A tensor as Numba sees it, without copying."""
    return cuda.as_cuda_array(tensor) if has_gpu() else tensor.numpy()
