import numpy as np
from numba import cuda, int32


@cuda.jit
def kernel(x, out):
    i, b = cuda.grid(1), cuda.blockIdx.x
    count = cuda.syncthreads_count(int32(x[i] > 3))
    every = cuda.syncthreads_and(int32(x[i] > 0))
    some = cuda.syncthreads_or(int32(x[i] > 8))
    if cuda.threadIdx.x == 0:
        out[b, 0], out[b, 1], out[b, 2] = count, every != 0, some != 0


x = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 5], np.int32)
out = np.zeros((3, 3), np.int32)
kernel[3, 4](x, out)
print(out.tolist())
