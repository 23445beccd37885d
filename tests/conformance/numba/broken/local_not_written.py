# diagnosis: local 'total'[0] is read, but no thread has written it
import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, out):
    total = cuda.local.array(1, np.float32)
    for i in range(x.size):
        total[0] += x[i]  # here
    out[0] = total[0]


kernel[1, 1](np.ones(4, np.float32), np.zeros(1, np.float32))
