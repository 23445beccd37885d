"""A block for each row. How many threads a row needs is worked out once and kept."""

from math import exp

import numpy as np
from numba import cuda

_kept = {}


@cuda.jit
def a_block_each(out, x):
    parts = cuda.shared.array(256, np.float32)
    row, t, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    most, total = x[row, 0], np.float32(0)
    for c in range(x.shape[1]):
        most = max(most, x[row, c])
    for c in range(t, x.shape[1], threads):
        total += np.float32(exp(x[row, c] - most))
    parts[t] = total
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(threads):
        total += parts[k]
    for c in range(t, x.shape[1], threads):
        out[row, c] = np.float32(exp(x[row, c] - most)) / total


def softmax(x):
    threads = _kept.setdefault(x.shape[1], min(256, -(-x.shape[1] // 32) * 32))
    out = np.empty_like(x)
    a_block_each[x.shape[0], threads](out, x)
    return out
