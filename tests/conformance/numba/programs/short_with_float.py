"""With a uint16 a float32 becomes a float64, with an int16 it stays one; not so in a branch."""

import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, half, short, unsigned, bytes_, out):
    out[0] = x[0] * unsigned[0]
    out[1] = x[0] * short[0]
    out[2] = unsigned[0] / x[0]
    out[3] = (x[0] if unsigned[0] > 5 else unsigned[0]) / 3.0
    out[4] = half[0] * bytes_[0]
    out[5] = half[0] + short[0]
    total = np.float32(0)
    for i in range(3):
        total += x[0] * unsigned[i]
    out[6] = total
    part = x[0] if unsigned[0] > 50 else unsigned[1]
    out[7] = short[0] / part


out = np.zeros(8)
kernel[1, 1](
    np.array([0.1], np.float32),
    np.array([0.1], np.float16),
    np.array([7], np.int16),
    np.array([7, 70, 700], np.uint16),
    np.array([7], np.uint8),
    out,
)
print([value.hex() for value in out.tolist()])
