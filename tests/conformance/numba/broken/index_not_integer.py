# diagnosis: is a float64, not an integer
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    i = cuda.grid(1)
    out[i / 2.0] = 1  # here


kernel[1, 4](np.zeros(4))
