"""Python's // and % round down; small integers are widened before they are added."""

import numpy as np
from numba import cuda


@cuda.jit
def kernel(a, b, out):
    t = cuda.threadIdx.x
    out[0, t] = a[t] // b[t]
    out[1, t] = a[t] % b[t]
    out[2, t] = a[t] * b[t] * 1000000
    out[3, t] = (a[t] << 3) ^ (b[t] >> 1)
    out[4, t] = abs(a[t]) + min(a[t], b[t]) - max(a[t], b[t])
    out[5, t] = a[t] ** 2


a, b = np.array([7, -7, 7, -7, 30000], np.int16), np.array([3, 3, -3, -3, 30000], np.int16)
out = np.zeros((6, 5), np.int64)
kernel[1, 5](a, b, out)
print(out.tolist())
