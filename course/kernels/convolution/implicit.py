"""Launch implicit.cu: convolution and its gradients on any tensor cores, and on the CPU runtime.

x: (n, h, w, c), w: (k, side, side, c), y and dy: (n, p, q, k); all bfloat16 (before Ampere
float16); c and k are multiples of 8.
"""

import ctypes
import functools
from pathlib import Path

import torch

from course.kernels.convolution.shapes import Convolution
from utils import cuda_c, has_gpu, machine
from utils.occupancy import ceil_div

KERNELS = Path(__file__).parent / "kernels"
TILE = 128
THREADS = 256
AMPERE = (8, 0)


SIZES = "n h w c k side p q stride padding dilation"


class Sizes(ctypes.Structure):
    """The struct of this name in kernels/implicit.cu."""

    _fields_ = [(name, ctypes.c_int) for name in SIZES.split()]


def sixteen_bits() -> torch.dtype:
    """The type of 2 bytes that this machine's tensor cores multiply."""
    if has_gpu() and machine().gpu.compute_capability < AMPERE:
        return torch.float16
    return torch.bfloat16


def sizes_of(conv: Convolution) -> Sizes:
    """The struct of a convolution's numbers."""
    numbers = [getattr(conv, name) for name in SIZES.split()]
    return Sizes(*numbers)


@functools.cache
def module():
    flags = ("-DHALF",) if sixteen_bits() == torch.float16 else ()
    return cuda_c.load(KERNELS / "implicit.cu", flags=flags)


def _grid(m: int, n: int) -> tuple[int, int]:
    return ceil_div(n, TILE), ceil_div(m, TILE)


def forward(y, x, w, conv: Convolution) -> None:
    """Compute y."""
    pixels = conv.n * conv.p * conv.q
    grid = _grid(pixels, conv.k)
    module().forward[grid, THREADS](y, x, w, sizes_of(conv))


def data_gradient(dx, dy, w, conv: Convolution) -> None:
    """Compute dx."""
    pixels = conv.n * conv.h * conv.w
    grid = _grid(pixels, conv.c)
    module().data_gradient[grid, THREADS](dx, dy, w, sizes_of(conv))


def weights_gradient(dw, dy, x, conv: Convolution) -> None:
    """Compute dw."""
    grid = _grid(conv.k, conv.taps * conv.c)
    module().weights_gradient[grid, THREADS](dw, dy, x, sizes_of(conv))
