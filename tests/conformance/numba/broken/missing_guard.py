# diagnosis: index 8 is outside 'out' of shape (8,)
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    i = cuda.grid(1)
    out[i] = i  # here


kernel[3, 4](np.zeros(8, np.int32))
