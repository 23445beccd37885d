"""Bits are counted and reversed in the width of what an operation gave."""

import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, out):
    t = cuda.threadIdx.x
    turned = cuda.brev(x[t])
    out[0, t] = cuda.clz(np.uint64(turned))
    out[1, t] = cuda.brev(np.uint64(turned))
    out[2, t] = cuda.popc(~turned)
    old = cuda.atomic.add(out, (3, t), 5)
    out[4, t] = cuda.clz(old + 1)
    out[5, t] = cuda.brev(cuda.selp(t > 1, x[t], turned)) * 3


out = np.zeros((6, 4), np.uint64)
kernel[1, 4](np.array([0, 1, 6, 0xFFFFFFFF], np.uint32), out)
print(out.tolist())
