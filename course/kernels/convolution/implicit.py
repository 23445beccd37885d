"""Launch implicit.cu: convolution and its gradients on any tensor cores, and on the CPU runtime.

x: (n, h, w, c), w: (k, side, side, c), y and dy: (n, p, q, k); all bfloat16 (before Ampere
float16); c and k are multiples of 8.
"""

import ctypes
from pathlib import Path

import torch

from course.kernels.convolution.shapes import Convolution
from utils import cuda_c, has_gpu, machine
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
TILE = 128
THREADS = 256
STEP = 32  # of the kernel along the sum
BLOCKS_OF_AN_SM = 2
CPU_SMS = 4  # on the CPU runtime: there is more than one part
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


@yours.cache
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


def parts_of_weights(conv: Convolution) -> int:
    """Into how many parts of the pixels the weights' gradient is cut: so that all SMs have one."""
    across, down = _grid(conv.k, conv.taps * conv.c)
    steps = ceil_div(conv.n * conv.p * conv.q, STEP)
    blocks = machine().sms or CPU_SMS
    return max(1, min(BLOCKS_OF_AN_SM * blocks // (across * down), steps))


def weights_gradient_in_parts(dw, dy, x, conv: Convolution, stream=0) -> None:
    """Compute dw: parts of the pixels at the same time, then their sum. dw: [k, taps * c]."""
    parts = parts_of_weights(conv)
    sums = torch.empty(parts, *dw.shape, dtype=torch.float32, device=dw.device)
    grid = *_grid(conv.k, conv.taps * conv.c), parts
    kernel = module().weights_gradient_parts[grid, THREADS, 0, stream]
    kernel(sums, dy, x, sizes_of(conv))
    dw.copy_(sums.sum(0))
