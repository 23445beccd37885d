# diagnosis: 'out'[0] is read, but nothing has written it since cuda.device_array in line 11
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out, a):
    out[cuda.grid(1)] += a[cuda.grid(1)]  # here


kernel[1, 64](cuda.device_array(64, np.float32), np.ones(64, np.float32))
