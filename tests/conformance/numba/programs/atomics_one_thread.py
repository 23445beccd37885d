"""What each atomic stores and returns."""

import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, old):
    old[0] = cuda.atomic.add(x, 0, 5)
    old[1] = cuda.atomic.sub(x, 1, 5)
    old[2] = cuda.atomic.and_(x, 2, 12)
    old[3] = cuda.atomic.or_(x, 3, 12)
    old[4] = cuda.atomic.xor(x, 4, 12)
    old[5] = cuda.atomic.max(x, 5, 12)
    old[6] = cuda.atomic.max(x, 6, 3)
    old[7] = cuda.atomic.min(x, 7, 3)
    old[8] = cuda.atomic.min(x, 8, 12)
    old[9] = cuda.atomic.exch(x, 9, 77)
    old[10] = cuda.atomic.cas(x, 10, 10, 55)
    old[11] = cuda.atomic.cas(x, 11, 10, 55)
    old[12] = cuda.atomic.compare_and_swap(x[12:], 10, 66)
    old[13] = cuda.atomic.compare_and_swap(x[13:], 11, 66)


for dtype in (np.int32, np.uint32, np.int64, np.uint64):
    x, old = np.full(14, 10, dtype), np.zeros(14, dtype)
    kernel[1, 1](x, old)
    print(np.dtype(dtype).name, x.tolist(), old.tolist())
