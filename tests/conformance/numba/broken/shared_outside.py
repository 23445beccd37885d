# diagnosis: index 32 is outside shared 's' of shape (32,)
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    s = cuda.shared.array(32, np.int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    out[t] = s[t + 1]  # here


kernel[1, 32](np.zeros(32))
