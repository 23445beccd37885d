# diagnosis: 'total'[0] is read, but nothing has written it since cuda.device_array in line 11
import numpy as np
from numba import cuda


@cuda.jit
def kernel(total, x):
    cuda.atomic.add(total, 0, x[cuda.grid(1)])  # here


kernel[1, 64](cuda.device_array(1, np.float64), np.ones(64))
