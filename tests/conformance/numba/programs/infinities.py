"""No exceptions: division by zero and roots of negative numbers give infinities and NaN."""

import math

import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, out):
    out[0] = 1.0 / x[0]
    out[1] = -1.0 / x[0]
    out[2] = math.sqrt(x[1])
    out[3] = math.log(x[0])
    out[4] = math.exp(x[2])
    out[5] = x[0] / x[0]
    out[6] = math.isnan(out[5])
    out[7] = math.isinf(out[4])


out = np.zeros(8)
kernel[1, 1](np.array([0.0, -1.0, 1e4]), out)
print(out.tolist())
