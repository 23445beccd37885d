# diagnosis: an array ('a') cannot be stored in one element
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out, a):
    i = cuda.grid(1)
    out[i] = a  # here


kernel[1, 4](np.zeros(4), np.zeros(4))
