import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, olds):
    t = cuda.threadIdx.x
    olds[0, t] = cuda.atomic.inc(x, 0, 9)
    olds[1, t] = cuda.atomic.dec(x, 1, 9)


x, olds = np.array([0, 4], np.uint32), np.zeros((2, 32), np.uint32)
kernel[1, 32](x, olds)
print(
    x.tolist(),
    np.bincount(olds[0], minlength=10).tolist(),
    np.bincount(olds[1], minlength=10).tolist(),
)
