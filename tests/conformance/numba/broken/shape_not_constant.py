# diagnosis: `n` is known only when it runs, and numba-cuda refuses that
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out, n):
    s = cuda.local.array(n, np.float32)  # here
    s[0] = out[0]


kernel[1, 32](np.zeros(32), np.float32(3))
