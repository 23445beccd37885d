# diagnosis: ZeroDivisionError
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    i = cuda.grid(1)
    out[i] = 8 // i  # here


kernel[1, 4](np.zeros(4))
