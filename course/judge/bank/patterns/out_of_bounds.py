"""It reads beyond the end of an array, and throws the numbers away: elsewhere that is a crash.

Source: https://github.com/thunlp/TritonBench/issues/12
Task: mean_square
Fails: right
Needs: nothing
"""

import numpy as np
from numba import cuda

THREADS = 64


@cuda.jit
def squares(out, x, y):
    i = cuda.grid(1)
    difference = x[i] - y[i]  # before the guard
    if i < x.size:
        cuda.atomic.add(out, 0, difference * difference / np.float32(x.size))


def candidate(x, y):
    out = np.zeros(1, np.float32)
    squares[max(1, -(-x.size // THREADS)), THREADS](out, x, y)
    return out
