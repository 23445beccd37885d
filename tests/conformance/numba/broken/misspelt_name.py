# diagnosis: NameError: name 'blokIdx' is not defined
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    out[blokIdx.x] = 1  # noqa: F821  # here


kernel[1, 1](np.zeros(1))
