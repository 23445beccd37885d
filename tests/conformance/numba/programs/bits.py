import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, y, out):
    i = cuda.grid(1)
    out[0, i] = cuda.popc(x[i])
    out[1, i] = cuda.clz(x[i])
    out[2, i] = cuda.ffs(x[i])
    out[3, i] = cuda.brev(x[i])
    out[4, i] = cuda.popc(y[i])
    out[5, i] = cuda.clz(y[i])
    out[6, i] = cuda.ffs(y[i])
    out[7, i] = cuda.selp(x[i] > 5, 1, 2)


x = np.array([0, 1, 6, 0x80000000, 0xFFFFFFFF], np.uint32)
y = np.array([0, 1, 2**40, 2**63, 2**64 - 1], np.uint64)
out = np.zeros((8, 5), np.int64)
kernel[1, 5](x, y, out)
print(out.tolist())
