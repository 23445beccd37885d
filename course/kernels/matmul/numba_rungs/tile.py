"""Rung 3: a block of 32 x 32 threads brings tiles of A and B into shared memory."""

import numpy as np
from numba import cuda


@cuda.jit
def tile(c, a, b):
    tile_a = cuda.shared.array((32, 32), np.float32)
    tile_b = cuda.shared.array((32, 32), np.float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for k0 in range(0, a.shape[1], 32):
        in_a = row < a.shape[0] and k0 + x < a.shape[1]
        in_b = k0 + y < b.shape[0] and column < b.shape[1]
        tile_a[y, x] = a[row, k0 + x] if in_a else np.float32(0)
        tile_b[y, x] = b[k0 + y, column] if in_b else np.float32(0)
        cuda.syncthreads()  # the tiles are complete
        for i in range(32):
            total += tile_a[y, i] * tile_b[i, x]
        cuda.syncthreads()  # nobody reads them any more
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total
