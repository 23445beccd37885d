# diagnosis: index -1 is outside 'a' of shape (8,)
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out, a):
    i = cuda.grid(1)
    out[i] = a[i] - a[i - 1]  # here


kernel[2, 4](np.zeros(8), np.zeros(8))
