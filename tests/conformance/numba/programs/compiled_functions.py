import numpy as np
from numba import cuda, njit


@njit
def triple(x):
    return 3 * x


@njit
def fill(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = device_triple(i) + triple(100)


device_triple = cuda.jit(device=True)(triple)
kernel = cuda.jit(fill)
out = np.zeros(10, np.int32)
kernel[2, 8](out)
print(out.tolist())
