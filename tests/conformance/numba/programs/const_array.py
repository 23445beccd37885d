import numpy as np
from numba import cuda

TABLE = np.array([2, 3, 5, 7, 11, 13], np.int32)
FILTER = np.array([[0.25, 0.5], [1.0, 2.0]], np.float32)


@cuda.jit
def kernel(out):
    table, weights = cuda.const.array_like(TABLE), cuda.const.array_like(FILTER)
    t = cuda.threadIdx.x
    out[t] = table[t] * weights[t % 2, t // 3] + TABLE[5 - t]


out = np.zeros(6, np.float32)
kernel[1, 6](out)
print(out.tolist())
