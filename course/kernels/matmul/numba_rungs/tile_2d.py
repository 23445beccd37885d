"""Rung 5: blocks of 256 threads take 128 x 128 elements of C, a thread 8 x 8."""

import numpy as np
from numba import cuda


@cuda.jit
def tile_2d(c, a, b):
    tile_a = cuda.shared.array((128, 8), np.float32)
    tile_b = cuda.shared.array((8, 128), np.float32)
    sums = cuda.local.array((8, 8), np.float32)
    from_a = cuda.local.array(8, np.float32)
    from_b = cuda.local.array(8, np.float32)
    t = cuda.threadIdx.x
    top, left = 128 * cuda.blockIdx.y, 128 * cuda.blockIdx.x
    row, col = t // 16 * 8, t % 16 * 8  # the thread's first element, in the block's tile
    for y in range(8):
        for x in range(8):
            sums[y, x] = 0
    for k0 in range(0, a.shape[1], 8):
        for e in range(t, 1024, 256):  # four elements of each tile
            y, x = top + e // 8, k0 + e % 8
            inside = y < a.shape[0] and x < a.shape[1]
            tile_a[e // 8, e % 8] = a[y, x] if inside else np.float32(0)
            y, x = k0 + e // 128, left + e % 128
            inside = y < b.shape[0] and x < b.shape[1]
            tile_b[e // 128, e % 128] = b[y, x] if inside else np.float32(0)
        cuda.syncthreads()
        for i in range(8):
            for y in range(8):
                from_a[y] = tile_a[row + y, i]
            for x in range(8):
                from_b[x] = tile_b[i, col + x]
            for y in range(8):
                for x in range(8):
                    sums[y, x] += from_a[y] * from_b[x]
        cuda.syncthreads()
    for y in range(8):
        for x in range(8):
            r, q = top + row + y, left + col + x
            if r < c.shape[0] and q < c.shape[1]:
                c[r, q] = sums[y, x]
