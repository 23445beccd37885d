# diagnosis: 10 of 32 threads wait at syncthreads()
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    t = cuda.threadIdx.x
    if t < 10:
        out[t] = t
        cuda.syncthreads()  # here


kernel[1, 32](np.zeros(32))
