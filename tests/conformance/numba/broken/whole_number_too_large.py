# diagnosis: the whole number 18,446,744,073,709,551,616 needs more than 64 bits; Numba refuses it
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    i = cuda.threadIdx.x
    out[i] = i + (1 << 64)  # here


kernel[1, 2](np.zeros(2))
