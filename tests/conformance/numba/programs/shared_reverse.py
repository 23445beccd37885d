import numpy as np
from numba import cuda, float32


@cuda.jit
def reverse(x):
    tile = cuda.shared.array(16, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    tile[t] = x[i]
    cuda.syncthreads()
    x[i] = tile[15 - t]


x = np.arange(48, dtype=np.float32)
reverse[3, 16](x)
print(x.tolist())
