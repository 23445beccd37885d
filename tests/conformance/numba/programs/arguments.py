import collections

import numpy as np
from numba import cuda

Pair = collections.namedtuple("Pair", "first second")


@cuda.jit
def kernel(out, flag, n, f, c, pair, arrays, small):
    i = cuda.grid(1)
    if i == 0:
        out[0] = n + small if flag else 0
        out[1] = f
        out[2] = c.real * 10 + c.imag
        out[3] = pair.first + pair[1]
        out[4] = arrays[0][1] * arrays[1][2]


out = np.zeros(5)
kernel[1, 1](
    out,
    True,
    np.int8(5),
    np.float32(0.5),
    3 + 4j,
    Pair(1, 2.5),
    (np.arange(3), np.arange(3) + 1.5),
    4,
)
print(out.tolist())
kernel[1, 1](out, False, 7, 2.25, 1j, Pair(1, 2), (np.arange(3), np.arange(3)), 9)
print(out.tolist())
