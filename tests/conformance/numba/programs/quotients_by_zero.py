"""The quotient of two integers is a float64: by 0 it is infinite, or NaN."""

import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, out):
    t = cuda.threadIdx.x
    out[t] = x[t] / x[0]
    out[3 + t] = (x[t] + 1) / (x[1] - x[2] * x[2])


out = np.zeros(6)
kernel[1, 3](np.array([0, 49, -7], np.int32), out)
print(out.tolist())
