"""No shared memory, no barrier, no race possible. The same bits on every GPU, every time."""

from math import exp

import numpy as np
from numba import cuda


@cuda.jit
def all_rows(out, x):
    for row in range(x.shape[0]):
        most, total = x[row, 0], np.float32(0)
        for c in range(x.shape[1]):
            most = max(most, x[row, c])
        for c in range(x.shape[1]):
            total += np.float32(exp(x[row, c] - most))
        for c in range(x.shape[1]):
            out[row, c] = np.float32(exp(x[row, c] - most)) / total


def softmax(x):
    out = np.empty_like(x)
    all_rows[1, 1](out, x)
    return out
