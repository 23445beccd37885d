# diagnosis: wait at different barriers: 4 threads (first (0,0,0)) at line 10
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    t = cuda.threadIdx.x
    if t < 4:
        cuda.syncthreads()
    else:
        cuda.syncthreads()  # here
    out[t] = t


kernel[1, 8](np.zeros(8))
