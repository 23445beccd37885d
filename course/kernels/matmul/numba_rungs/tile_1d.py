"""Rung 4: blocks of 512 threads take 64 x 64 elements of C, a thread 8 below one another."""

import numpy as np
from numba import cuda


@cuda.jit
def tile_1d(c, a, b):
    tile_a = cuda.shared.array((64, 8), np.float32)
    tile_b = cuda.shared.array((8, 64), np.float32)
    sums = cuda.local.array(8, np.float32)  # registers, if every index is known when compiling
    t = cuda.threadIdx.x
    top, left = 64 * cuda.blockIdx.y, 64 * cuda.blockIdx.x
    row, col = t // 64 * 8, t % 64  # what this thread computes, within the block's tile
    for y in range(8):
        sums[y] = 0
    for k0 in range(0, a.shape[1], 8):
        y, x = top + t // 8, k0 + t % 8  # what it fetches of A
        inside = y < a.shape[0] and x < a.shape[1]
        tile_a[t // 8, t % 8] = a[y, x] if inside else np.float32(0)
        y, x = k0 + t // 64, left + t % 64  # and of B
        inside = y < b.shape[0] and x < b.shape[1]
        tile_b[t // 64, t % 64] = b[y, x] if inside else np.float32(0)
        cuda.syncthreads()
        for i in range(8):
            from_b = tile_b[i, col]
            for y in range(8):
                sums[y] += tile_a[row + y, i] * from_b
        cuda.syncthreads()
    for y in range(8):
        if top + row + y < c.shape[0] and left + col < c.shape[1]:
            c[top + row + y, left + col] = sums[y]
