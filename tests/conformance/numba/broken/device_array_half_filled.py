# diagnosis: 'a'[32] is read, but nothing has written it since cuda.device_array in line 12
import numpy as np
from numba import cuda


@cuda.jit
def kernel(a, out):
    i = cuda.grid(1)
    out[i] = a[i] + 1  # here


half = cuda.device_array(64, np.int64)
half[:32] = np.arange(32)
kernel[1, 64](half, np.zeros(64, np.int64))
