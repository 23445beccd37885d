# diagnosis: cannot store a complex number in an array of float32
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out, c):
    out[0] = c * c  # here


kernel[1, 1](np.zeros(1, np.float32), 1 + 2j)
