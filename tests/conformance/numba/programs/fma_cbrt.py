import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, out):
    out[0] = cuda.fma(x[0], x[0], -1.0)
    out[1] = cuda.fma(2.0, 3.0, 4.0)
    out[2] = cuda.cbrt(x[1])


out = np.zeros(3)
kernel[1, 1](np.array([1 + 2.0**-30, -27.0]), out)
print(out[0] == 2.0**-29 + 2.0**-60, out[1], round(out[2], 12))
