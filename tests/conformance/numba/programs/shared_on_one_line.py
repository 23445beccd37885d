import numpy as np
from numba import cuda, int32


@cuda.jit
def kernel(out):
    a, b = cuda.shared.array(8, int32), cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    a[t], b[t] = t, 100 + t
    cuda.syncthreads()
    out[t] = 1000 * a[7 - t] + b[(t + 1) % 8]


out = np.zeros(8, np.int32)
kernel[1, 8](out)
print(out.tolist())
