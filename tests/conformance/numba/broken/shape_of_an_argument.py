# diagnosis: `length` is known only when it runs, and numba-cuda refuses that
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out, n):
    length = n
    s = cuda.shared.array(length, np.float32)  # here
    s[cuda.threadIdx.x] = out[0]


kernel[1, 32](np.zeros(32), 32)
