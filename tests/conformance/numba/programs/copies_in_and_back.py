"""Host arrays are copied to the device and back; device arrays stay."""

import numpy as np
from numba import cuda


@cuda.jit
def swap(a, b):
    i = cuda.grid(1)
    if i < a.size:
        a[i], b[i] = b[i], a[i]


a, b = np.arange(4), np.arange(10, 14)
swap[1, 4](a, b)
print(a.tolist(), b.tolist())
device = cuda.to_device(a)
swap[1, 4](device, b)
print(a.tolist(), device.copy_to_host().tolist(), b.tolist())
column = np.asfortranarray(np.arange(6).reshape(2, 3))


@cuda.jit
def negate(x):
    i, j = cuda.grid(2)
    x[i, j] = -x[i, j]


negate[1, (2, 3)](column)
print(column.tolist())
