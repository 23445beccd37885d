"""min and max of two floats take a number before NaN; of other types they compare as float64."""

import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, y, whole, out):
    out[0] = min(x[0], x[1])
    out[1] = min(x[1], x[0])
    out[2] = max(x[0], x[1])
    out[3] = max(y[0], y[1])
    out[4] = min(x[1], y[0])
    out[5] = max(x[0], 0.5)
    out[6] = min(x[2], whole[0])
    out[7] = max(x[2], whole[0])


out = np.zeros(8)
x = np.array([np.nan, 2.0, -16777216.0], np.float32)
kernel[1, 1](x, np.array([np.nan, -3.0]), np.array([-16777217]), out)
print(out.tolist())
