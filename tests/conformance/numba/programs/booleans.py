import numpy as np
from numba import boolean, cuda


@cuda.jit
def kernel(x, mask, out):
    s = cuda.shared.array(8, boolean)
    t = cuda.threadIdx.x
    s[t] = x[t] > 3
    cuda.syncthreads()
    mask[t] = s[7 - t] and not s[t]
    out[t] = s[t] + s[7 - t] * 2


mask, out = np.zeros(8, np.bool_), np.zeros(8, np.int32)
kernel[1, 8](np.array([1, 5, 2, 9, 0, 4, 3, 8]), mask, out)
print(mask.tolist(), out.tolist())
