# diagnosis: a whole number leaves its 64 bits here
import numpy as np
from numba import cuda


@cuda.jit
def kernel(out, a):
    power = 1
    for x in a:
        power *= x  # here
    out[0] = power // 7


kernel[1, 1](np.zeros(1), np.full(5, 1 << 14))
