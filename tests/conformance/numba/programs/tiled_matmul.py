import numpy as np
from numba import cuda, float32

T = 4


@cuda.jit
def matmul(a, b, c):
    tile_a, tile_b = cuda.shared.array((T, T), float32), cuda.shared.array((T, T), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for m in range((a.shape[1] + T - 1) // T):
        column, row = m * T + tx, m * T + ty
        tile_a[ty, tx] = a[y, column] if y < a.shape[0] and column < a.shape[1] else 0
        tile_b[ty, tx] = b[row, x] if row < b.shape[0] and x < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(T):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


a = (np.arange(6 * 10) % 7).reshape(6, 10).astype(np.float32)
b = (np.arange(10 * 5) % 5 - 2).reshape(10, 5).astype(np.float32)
c = np.full((6, 5), -1, np.float32)
matmul[(2, 2), (T, T)](a, b, c)
print(c.tolist())
