# diagnosis: kernels have no lists
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    values = [1, 2, out[0]]  # here
    out[0] = values[1]


kernel[1, 1](np.zeros(1))
