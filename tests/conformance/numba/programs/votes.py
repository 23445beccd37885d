import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    t = cuda.threadIdx.x
    out[0, t] = cuda.all_sync(0xFFFFFFFF, t < 32)
    out[1, t] = cuda.all_sync(0xFFFFFFFF, t != 7)
    out[2, t] = cuda.any_sync(0xFFFFFFFF, t == 7)
    out[3, t] = cuda.eq_sync(0xFFFFFFFF, t > 40)
    out[4, t] = cuda.ballot_sync(0xFFFFFFFF, t % 3 == 0)
    if t < 8:
        out[5, t] = cuda.ballot_sync(0xFF, t & 1)


out = np.zeros((6, 32), np.uint32)
kernel[1, 32](out)
print(out[:, [0, 1, 31]].tolist(), np.ptp(out[:5], axis=1).tolist())
