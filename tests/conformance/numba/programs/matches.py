import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, out, flags):
    t = cuda.threadIdx.x
    out[0, t] = cuda.match_any_sync(0xFFFFFFFF, x[t])
    mask, same = cuda.match_all_sync(0xFFFFFFFF, x[t])
    out[1, t], flags[0, t] = mask, same
    mask, same = cuda.match_all_sync(0xFFFFFFFF, x[0])
    out[2, t], flags[1, t] = mask, same


x = (np.arange(32) % 5).astype(np.int32)
out, flags = np.zeros((3, 32), np.uint32), np.zeros((2, 32), np.int32)
kernel[1, 32](x, out, flags)
print(out[:, :6].tolist(), flags[:, 0].tolist())
