# Threads that return early: the barriers of the others do not wait for them (since Volta).
import enum

import numpy as np
from numba import cuda


class Code(enum.IntEnum):
    FOUND = 404


@cuda.jit
def reverse(out, n):
    shared = cuda.shared.array(128, np.int32)
    i = cuda.threadIdx.x
    if i >= n:
        return
    shared[i] = i
    cuda.syncthreads()
    out[i] = shared[n - 1 - i] + 1000 * cuda.syncthreads_count(i % 2)


@cuda.jit
def identity(out, x, y):
    out[0] = x is y
    out[1] = x is not y


def make(inner):
    @cuda.jit
    def outer(out, a):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = inner(a[i])

    return outer


@cuda.jit(device=True)
def double(x):
    return 2 * x


out = np.zeros(128, np.int32)
reverse[1, 128](out, 96)
print(out[:4].tolist(), out[95:97].tolist())
flags = np.zeros(2, np.bool_)
identity[1, 1](flags, Code.FOUND, Code.FOUND)
print(flags.tolist())
doubled = np.zeros(4)
make(double)[1, 4](doubled, np.arange(4.0))
print(doubled.tolist())
