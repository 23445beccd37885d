# diagnosis: 65,536 bytes of static shared memory; a block has 49,152
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    tile = cuda.shared.array((128, 128), np.float32)  # here
    tile[0, 0] = 1
    out[0] = tile[0, 0]


kernel[1, 1](np.zeros(1))
