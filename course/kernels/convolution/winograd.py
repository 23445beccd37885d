"""Launch winograd.cu; the 16 matrix products between its steps are PyTorch's (cuBLAS).

x: (n, h, w, c), w: (k, 3, 3, c), y: (n, h, w, k), all float32 or all bfloat16; stride 1, padding 1.
"""

import ctypes
from pathlib import Path

import torch

from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
THREADS = 128
NUMBERS = {
    torch.float32: "float",
    torch.bfloat16: "__nv_bfloat16",
}
PRODUCTS = 16


class Sizes(ctypes.Structure):
    """The struct of this name in kernels/winograd.cu."""

    _fields_ = [(name, ctypes.c_int) for name in "nhwck"]


@yours.cache
def module(dtype: torch.dtype):
    return cuda_c.load(KERNELS / "winograd.cu", flags=(f"-DNUMBER={NUMBERS[dtype]}",))


def transformed_filters(w):
    """u (16, c, k) of w: once for all pictures."""
    k, _, _, c = w.shape
    u = w.new_empty(PRODUCTS, c, k)
    launch = _blocks(k * c), THREADS
    module(w.dtype).filters[launch](u, w, Sizes(0, 0, 0, c, k))
    return u


def winograd(y, x, u) -> None:
    """Compute y from x and transformed filters."""
    n, h, w, c = x.shape
    k = u.shape[2]
    tiles = n * ceil_div(h, 2) * ceil_div(w, 2)
    sizes = Sizes(n, h, w, c, k)
    v = x.new_empty(PRODUCTS, tiles, c)
    kernels = module(x.dtype)
    launch = _blocks(tiles * c), THREADS
    kernels.pictures[launch](v, x, sizes)
    m = torch.bmm(v, u)
    launch = _blocks(tiles * k), THREADS
    kernels.results[launch](y, m, sizes)


def _blocks(threads: int) -> int:
    return ceil_div(threads, THREADS)
