# diagnosis: `2 * N` is known only when it runs, and numba-cuda refuses that
import numpy as np
from numba import cuda

N = 32


@cuda.jit
def kernel(out):
    s = cuda.shared.array((2 * N, 2), np.float32)  # here
    s[cuda.threadIdx.x, 0] = 1


kernel[1, 32](np.zeros(32))
