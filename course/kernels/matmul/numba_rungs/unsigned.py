"""Rungs 6 and 7 in Numba: A's tile turned, groups of four, and indices that cannot be negative."""

import numpy as np
from numba import cuda


@cuda.jit
def unsigned(c, a, b):
    tile_a = cuda.shared.array((8, 132), np.float32)  # turned, and padded
    tile_b = cuda.shared.array((8, 128), np.float32)
    sums = cuda.local.array((8, 8), np.float32)
    from_a = cuda.local.array(8, np.float32)
    from_b = cuda.local.array(8, np.float32)
    (m, k), n = a.shape, b.shape[1]
    t = np.uint32(cuda.threadIdx.x)
    top, left = 128 * cuda.blockIdx.y, 128 * cuda.blockIdx.x
    row = t // np.uint32(16) * np.uint32(4)  # two groups of four, 64 apart
    col = t % np.uint32(16) * np.uint32(4)
    for y in range(8):
        for x in range(8):
            sums[y, x] = 0
    for k0 in range(0, k, 8):
        for s in range(4):  # fetch from places that exist, without a branch ...
            y, x = min(top + t // 8 + 32 * s, m - 1), min(k0 + t % 8, k - 1)
            from_a[s] = a[np.uint32(y), np.uint32(x)]
            y, x = min(k0 + t // 128 + 2 * s, k - 1), min(left + t % 128, n - 1)
            from_b[s] = b[np.uint32(y), np.uint32(x)]
        for s in range(4):  # ... and count what lies beyond as 0
            y, x = t // 8 + 32 * s, t % 8
            tile_a[x, y] = from_a[s] if k0 + x < k else np.float32(0)
            y, x = t // 128 + 2 * s, t % 128
            tile_b[y, x] = from_b[s] if k0 + y < k else np.float32(0)
        cuda.syncthreads()
        for i in range(np.uint32(8)):
            for y in range(8):
                from_a[y] = tile_a[i, np.uint32(row + y // 4 * 64 + y % 4)]
            for x in range(8):
                from_b[x] = tile_b[i, np.uint32(col + x // 4 * 64 + x % 4)]
            for y in range(8):
                for x in range(8):
                    sums[y, x] += from_a[y] * from_b[x]
        cuda.syncthreads()
    for y in range(8):
        for x in range(8):
            r = top + row + y // 4 * 64 + y % 4
            q = left + col + x // 4 * 64 + x % 4
            if r < m and q < n:
                c[np.uint32(r), np.uint32(q)] = sums[y, x]
