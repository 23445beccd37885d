"""Rung 1: a thread an element, neighbouring threads in neighbouring rows."""

import numpy as np
from numba import cuda


@cuda.jit
def naive(c, a, b):
    row, column = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = np.float32(0)
        for i in range(a.shape[1]):
            total += a[row, i] * b[i, column]
        c[row, column] = total
