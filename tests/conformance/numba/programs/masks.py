import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    t = cuda.threadIdx.x
    out[0, t] = cuda.activemask()
    out[1, t] = cuda.lanemask_lt()
    cuda.syncwarp()
    out[2, t] = cuda.laneid + 100 * (t // cuda.warpsize)


out = np.zeros((3, 48), np.uint32)
kernel[1, 48](out)
print(out[:, [0, 1, 31, 32, 47]].tolist())
