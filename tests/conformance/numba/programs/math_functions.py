"""Functions whose results are exact, or rounded here to what every library agrees on."""

import math

import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, out):
    i = cuda.grid(1)
    v = x[i]
    out[0, i] = math.sqrt(v)
    out[1, i] = math.floor(v) + 100 * math.ceil(v)
    out[2, i] = math.fabs(-v) + math.trunc(v)
    out[3, i] = math.exp(v)
    out[4, i] = math.sin(v) + math.cos(v)
    out[5, i] = math.log(v) + math.log2(v) + math.log10(v)
    out[6, i] = math.pow(v, 1.5) + v**3
    out[7, i] = math.atan2(v, 2.0) + math.hypot(v, 1.0) + math.tanh(v)
    out[8, i] = math.fmod(v, 0.75) + math.copysign(v, -1.0)
    out[9, i] = math.erf(v) + math.erfc(v) + math.gamma(v)
    out[10, i] = round(v) + int(v) + min(v, 1.0) + max(v, 2.0)


x = np.array([0.25, 1.0, 2.5, 3.75])
out = np.zeros((11, 4))
kernel[1, 4](x, out)
for row in out:
    print(" ".join(f"{v:.9g}" for v in row))
