# diagnosis: 2 indices for 'out', which has 1
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    x, y = cuda.grid(2)
    out[y, x] = 1  # here


kernel[1, (4, 4)](np.zeros(16))
