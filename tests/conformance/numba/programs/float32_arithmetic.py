"""float32 with float32 rounds to float32; with a float literal or argument it is float64."""

import numpy as np
from numba import cuda, float32


@cuda.jit
def kernel(x, y, a, out, wide):
    t = cuda.threadIdx.x
    wide[0, t] = x[t] + y[t]
    wide[1, t] = x[t] / y[t]
    wide[2, t] = x[t] * 0.1
    wide[3, t] = x[t] + a
    wide[4, t] = x[t] * float32(0.1)
    out[t] = x[t] / y[t]


x, y = np.array([1, 0.1, 16777216, 1e-7], np.float32), np.array([3, 0.3, 1, 1], np.float32)
out, wide = np.zeros(4, np.float32), np.zeros((5, 4), np.float64)
kernel[1, 4](x, y, 0.1, out, wide)
print(out.tolist())
print(wide.tolist())
