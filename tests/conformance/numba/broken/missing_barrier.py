# diagnosis: shared 's'[31] is read, but no thread has written it
import numpy as np
from numba import cuda


@cuda.jit
def kernel(x):
    s = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    x[t] = s[31 - t]  # here


kernel[1, 32](np.zeros(32, np.float32))
