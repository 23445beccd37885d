import numpy as np
from numba import cuda


@cuda.jit(device=True)
def halve(x):
    return x // 2


@cuda.jit(device=True)
def steps(n):
    count = 0
    while n != 1:
        n = halve(n) if n % 2 == 0 else 3 * n + 1
        count += 1
    return count, n


@cuda.jit
def kernel(out):
    i = cuda.grid(1)
    if i < out.size:
        count, last = steps(i + 1)
        out[i] = count * last


out = np.zeros(30, np.int32)
kernel[1, 32](out)
print(out.tolist())
