"""Launch cuda/by_hand.cu: the transform as a sum, a pass a launch, in one block, in one warp.

    by_hand.dft(x, out)

x, out: contiguous complex64 [rows, n] on the GPU (NumPy arrays where there is none).
"""

from course.kernels.fft.kernels import load
from course.kernels.fft.plans import count, floats
from utils.occupancy import ceil_div

THREADS = 256
BLOCK_POINTS = 256  # as in by_hand.cu
WARP = 32


def _launch(kernel: str, threads: int):
    """A kernel of by_hand.cu, as so many threads."""
    blocks = ceil_div(threads, THREADS)
    return load("by_hand.cu")[kernel][blocks, THREADS]


def dft(x, out) -> None:
    """Every result as a sum of n terms."""
    points = count(x)
    launch = _launch("dft", points)
    launch(floats(x), floats(out), x.shape[-1], points)


def passes(x, out, spare) -> None:
    """log2(n) launches, n a power of two. spare: like out."""
    n = x.shape[-1]
    points = count(x)
    launch = _launch("fft_pass", points // 2)
    rounds = n.bit_length() - 1
    for r in range(rounds):
        rounds_left = rounds - 1 - r
        target = out if rounds_left % 2 == 0 else spare
        launch(floats(x), floats(target), n, 1 << r, points)
        x = target


def block(x, out) -> None:
    """Rows of 256 points, one a block."""
    blocks = count(x) // BLOCK_POINTS
    launch = load("by_hand.cu").fft_block[blocks, BLOCK_POINTS // 2]
    launch(floats(x), floats(out))


def warp(x, out) -> None:
    """Rows of 32 points, one a warp."""
    blocks = count(x) // WARP
    launch = load("by_hand.cu").fft_warp[blocks, WARP]
    launch(floats(x), floats(out))
