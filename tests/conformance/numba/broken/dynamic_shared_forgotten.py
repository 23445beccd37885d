# diagnosis: (dynamic; this launch gives it 0 bytes)' of shape (0,)
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    s = cuda.shared.array(0, np.float32)
    t = cuda.threadIdx.x
    s[t] = t  # here
    out[t] = s[t]


kernel[1, 32](np.zeros(32))
