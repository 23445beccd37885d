"""fma of float32 and a large integer as a float32 are rounded once, not by way of float64."""

import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, whole, out):
    out[0] = cuda.fma(x[0], x[0], x[1]) - 1
    out[1] = cuda.fma(x[0], x[0], -x[1]) - 1
    out[2] = np.float32(whole[0] + 1) - np.float32(whole[0])
    out[3] = np.float32(-whole[0] - 1) + np.float32(whole[0])


out = np.zeros(4)
kernel[1, 1](np.array([1 + 2**-12, 2**-70], np.float32), np.array([2**60 + 2**36]), out)
print([value.hex() for value in out.tolist()])
