# diagnosis: cuda.atomic.add does not work on uint8 ('bins')
import numpy as np
from numba import cuda


@cuda.jit
def kernel(bins):
    cuda.atomic.add(bins, cuda.threadIdx.x, 1)  # here


kernel[1, 8](np.zeros(8, np.uint8))
