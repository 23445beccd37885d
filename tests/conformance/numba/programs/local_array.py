import numpy as np
from numba import cuda, int32

N = 5


@cuda.jit
def kernel(out):
    mine = cuda.local.array((2, N), int32)
    t = cuda.threadIdx.x
    for row in range(2):
        for i in range(N):
            mine[row, i] = t * 10 + i + row
    total = 0
    for i in range(N):
        total += mine[0, N - 1 - i] * mine[1, i]
    out[t] = total


out = np.zeros(6, np.int32)
kernel[1, 6](out)
print(out.tolist())
