import numpy as np
from numba import cuda


@cuda.jit
def kernel(x):
    t = cuda.threadIdx.x
    if t == 3:
        print("thread", t, "of block", cuda.blockIdx.x, x[t], 2.5, x[t] > 1, -7)


kernel[1, 8](np.arange(8, dtype=np.float32) / 2)
cuda.synchronize()
