"""Unsigned 64-bit arithmetic wraps."""

import numpy as np
from numba import cuda, uint64


@cuda.jit
def splitmix(x):
    i = cuda.grid(1)
    z = x[i] + uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    x[i] = z ^ (z >> uint64(31))


x = np.arange(4, dtype=np.uint64)
splitmix[1, 4](x)
print(x.tolist())
