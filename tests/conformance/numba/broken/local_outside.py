# diagnosis: index 4 is outside local 'mine' of shape (4,)
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    mine = cuda.local.array(4, np.int32)
    for i in range(5):
        mine[i] = i  # here
    out[0] = mine[0]


kernel[1, 1](np.zeros(1))
