"""A barrier is missing: whether the result is right depends on which warp comes first.

Source: https://github.com/ROCm/aiter/pull/5428
Task: mean_square
Fails: right
Needs: nothing
"""

import numpy as np
from numba import cuda

THREADS = 128


@cuda.jit
def squares(out, x, y):
    parts = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(t, x.size, THREADS):
        difference = x[i] - y[i]
        total += difference * difference
    parts[t] = total
    step = THREADS // 2
    while step:
        if t < step:
            parts[t] += parts[t + step]  # which that thread has perhaps not written yet
        step //= 2
    if t == 0:
        out[0] = parts[0] / np.float32(x.size)


def candidate(x, y):
    out = np.empty(1, np.float32)
    squares[1, THREADS](out, x, y)
    return out
