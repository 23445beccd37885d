"""What float32 keeps of a long sum: cuda/sum_precise.cu in Numba, and `error`.

    sum_precise.error("compensated", x, threads=1024)

The error is relative, against the sum in float64.
"""

import numpy as np
from numba import cuda, float32, float64, int32

from course.kernels.reductions.kernels import load

THREADS = 128


@cuda.jit
def sum_plainly(x, of_thread):
    total = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    of_thread[cuda.grid(1)] = total


@cuda.jit
def sum_compensated(x, of_thread):
    """Kahan (1965): what an addition has lost is kept, and added to the next element."""
    total = float32(0)
    lost = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        element = x[i] + lost
        larger = total + element
        lost = element - (larger - total)
        total = larger
    of_thread[cuda.grid(1)] = total


@cuda.jit
def sum_pairwise(x, of_thread):
    """Sums of 2, 4, 8 ... elements, as a binary counter carries."""
    level = cuda.local.array(32, float32)
    added = int32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        carry = x[i]
        k = 0
        while added >> k & 1:
            carry += level[k]
            k += 1
        level[k] = carry
        added += 1
    total = float32(0)
    for k in range(32):
        if added >> k & 1:
            total += level[k]
    of_thread[cuda.grid(1)] = total


@cuda.jit
def sum_in_double(x, of_thread):
    total = float64(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    of_thread[cuda.grid(1)] = total


WAYS = {
    "plainly": sum_plainly,
    "compensated": sum_compensated,
    "pairwise": sum_pairwise,
    "in_double": sum_in_double,
}


def total(way: str, x, threads: int, language: str = "numba") -> float:
    """The sum of the device array x (float32) by so many threads (a multiple of THREADS).

    The threads' sums are added up in float64, so that only what a thread does makes a difference.
    """
    of_thread = cuda.device_array(threads, np.float32)
    blocks = threads // THREADS
    if language == "numba":
        WAYS[way][blocks, THREADS](x, of_thread)
    else:
        kernel = getattr(load("sum_precise.cu"), f"sum_{way}")
        kernel[blocks, THREADS](x, x.size, of_thread)
    return float(of_thread.copy_to_host().sum(dtype=np.float64))


def error(way: str, x, threads: int, language: str = "numba") -> float:
    """How far the sum is from float64's, as a share of it."""
    exact = float(np.asarray(x.copy_to_host()).sum(dtype=np.float64))
    return abs(total(way, x, threads, language) / exact - 1)
