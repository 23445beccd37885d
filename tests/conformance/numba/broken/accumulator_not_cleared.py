# diagnosis: shared 'bins'[3] is read, but no thread has written it
import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, out):
    bins = cuda.shared.array(8, np.int32)
    t = cuda.threadIdx.x
    cuda.atomic.add(bins, x[t], 1)  # here
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(out, t, bins[t])


kernel[1, 16](np.full(16, 3), np.zeros(8, np.int32))
