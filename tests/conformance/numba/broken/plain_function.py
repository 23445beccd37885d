# diagnosis: a kernel cannot call helper: it is an ordinary Python function
import numpy as np
from numba import cuda


def helper(x):
    return x + 1


@cuda.jit
def kernel(out):
    out[0] = helper(out[0])  # here


kernel[1, 1](np.zeros(1))
