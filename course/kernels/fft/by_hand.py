"""Launch cuda/by_hand.cu: the transform as a sum, a pass a launch, in one block, in one warp.

    by_hand.dft(x, out)

x, out: contiguous complex64 [rows, n] on the GPU (NumPy arrays where there is none).
"""

from course.kernels.fft.kernels import load
from course.kernels.fft.plans import count, floats

THREADS = 256
BLOCK_POINTS = 256  # as in by_hand.cu
WARP = 32


def _blocks(threads: int) -> int:
    return -(-threads // THREADS)


def dft(x, out) -> None:
    """Every result as a sum of n terms."""
    launch = load("by_hand.cu").dft[_blocks(count(x)), THREADS]
    launch(floats(x), floats(out), x.shape[-1], count(x))


def passes(x, out, spare) -> None:
    """log2(n) launches, n a power of two. spare: like out."""
    n, points = x.shape[-1], count(x)
    launch = load("by_hand.cu").fft_pass[_blocks(points // 2), THREADS]
    rounds = n.bit_length() - 1
    targets = [(out, spare)[(rounds - 1 - r) % 2] for r in range(rounds)]  # the last one is out
    for r, target in enumerate(targets):
        launch(floats(x), floats(target), n, 1 << r, points)
        x = target


def block(x, out) -> None:
    """Rows of 256 points, one a block."""
    blocks = count(x) // BLOCK_POINTS
    load("by_hand.cu").fft_block[blocks, BLOCK_POINTS // 2](floats(x), floats(out))


def warp(x, out) -> None:
    """Rows of 32 points, one a warp."""
    load("by_hand.cu").fft_warp[count(x) // WARP, WARP](floats(x), floats(out))
