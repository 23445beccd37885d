import numpy as np
from numba import cuda, float32


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((8, 9), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if y < a.shape[0] and x < a.shape[1]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x, y = cuda.blockIdx.y * 8 + tx, cuda.blockIdx.x * 8 + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty]


a = np.arange(10 * 19, dtype=np.float32).reshape(10, 19)
out = np.zeros((19, 10), np.float32)
transpose[(3, 2), (8, 8)](a, out)
print(out.sum(), out[:, 3].tolist(), out[18].tolist())
