# diagnosis: a kernel cannot be called from a kernel
import numpy as np
from numba import cuda


@cuda.jit
def other(x):
    x[0] = 1


@cuda.jit
def kernel(out):
    other(out)  # here


kernel[1, 1](np.zeros(1))
