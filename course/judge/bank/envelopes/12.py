"""A thread for each row. How many blocks a shape needs is worked out once and kept."""

from math import exp

import numpy as np
from numba import cuda

_kept = {}


@cuda.jit
def a_row_each(out, x):
    row = cuda.grid(1)
    if row < x.shape[0]:
        most, total = x[row, 0], np.float32(0)
        for c in range(x.shape[1]):
            most = max(most, x[row, c])
        for c in range(x.shape[1]):
            total += np.float32(exp(x[row, c] - most))
        for c in range(x.shape[1]):
            out[row, c] = np.float32(exp(x[row, c] - most)) / total


def softmax(x):
    blocks = _kept.setdefault(x.shape, -(-x.shape[0] // 64))
    out = np.empty_like(x)
    a_row_each[blocks, 64](out, x)
    return out
