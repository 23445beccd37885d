# diagnosis: waits for ever: its mask 0xffffffff names lanes of warp 0 that do not come (0xffff0000)
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    t = cuda.threadIdx.x
    if t < 16:
        out[t] = cuda.shfl_down_sync(0xFFFFFFFF, t, 1)  # here
    cuda.syncthreads()


kernel[1, 32](np.zeros(32))
