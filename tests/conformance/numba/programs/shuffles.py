import numpy as np
from numba import cuda

FULL = 0xFFFFFFFF


@cuda.jit
def kernel(ints, floats):
    t = cuda.threadIdx.x
    ints[0, t] = cuda.shfl_sync(FULL, t * 10, 5)
    ints[1, t] = cuda.shfl_up_sync(FULL, t * 10, 3)
    ints[2, t] = cuda.shfl_down_sync(FULL, t * 10, 4)
    ints[3, t] = cuda.shfl_xor_sync(FULL, t * 10, 6)
    floats[0, t] = cuda.shfl_sync(FULL, t / 4, (t + 1) % 32)
    floats[1, t] = cuda.shfl_xor_sync(FULL, cuda.shfl_down_sync(FULL, t / 4, 2), 1)


ints, floats = np.zeros((4, 32), np.int64), np.zeros((2, 32), np.float64)
kernel[1, 32](ints, floats)
print(ints.tolist())
print(floats.tolist())
