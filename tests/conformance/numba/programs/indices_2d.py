import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = (
            100 * cuda.blockIdx.y
            + 10 * cuda.blockIdx.x
            + cuda.threadIdx.y * cuda.blockDim.x
            + cuda.threadIdx.x
        )


out = np.zeros((5, 7), np.int64)
kernel[(3, 3), (3, 2)](out)
print(out.tolist())
