# diagnosis: lane 16 calls it with mask 0x0000ffff, in which its own bit is not set
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    t = cuda.threadIdx.x
    out[t] = cuda.shfl_down_sync(0xFFFF, t, 1)  # here


kernel[1, 32](np.zeros(32))
