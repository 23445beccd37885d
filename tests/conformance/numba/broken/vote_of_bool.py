# diagnosis: takes an integer, not a bool
import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, out):
    count = cuda.syncthreads_count(x[cuda.threadIdx.x] > 3)  # here
    out[cuda.threadIdx.x] = count


kernel[1, 4](np.arange(4), np.zeros(4, np.int32))
