"""Three-dimensional arrays, empty arrays and arrays of no dimension's neighbours."""

import numpy as np
from numba import cuda


@cuda.jit
def blur(a, out):
    x, y, z = cuda.grid(3)
    if 0 < x < a.shape[2] - 1 and y < a.shape[1] and z < a.shape[0]:
        out[z, y, x] = a[z, y, x - 1] + a[z, y, x] + a[z, y, x + 1]


@cuda.jit
def count(a, out):
    if cuda.grid(1) < a.size:
        cuda.atomic.add(out, 0, 1)


a = np.arange(24).reshape(2, 3, 4)
out = np.zeros_like(a)
blur[(2, 2, 1), (2, 2, 2)](a, out)
print(out.tolist())
none = np.zeros(1, np.int32)
count[1, 32](np.zeros(0, np.float32), none)
print(none.tolist())
