# diagnosis: read-only
import numpy as np
from numba import cuda

TABLE = np.arange(4)


@cuda.jit
def kernel(out):
    table = cuda.const.array_like(TABLE)
    table[0] = out[0]  # here


kernel[1, 1](np.zeros(1))
