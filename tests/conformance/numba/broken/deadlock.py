# diagnosis: Deadlock: no thread of the block can go on
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    t = cuda.threadIdx.x
    if t < 16:
        cuda.syncthreads()  # here
    else:
        cuda.cg.this_grid().sync()
    out[t] = t


kernel[1, 32](np.zeros(32))
