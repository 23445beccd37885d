# diagnosis: have returned without reaching it (thread (5,0,0), say)
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    i = cuda.grid(1)
    if i < 5:
        out[i] = i
        cuda.syncthreads()  # here


kernel[1, 8](np.zeros(5))
