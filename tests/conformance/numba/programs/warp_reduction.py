import numpy as np
from numba import cuda, float32


@cuda.jit
def total(x, out):
    parts = cuda.shared.array(4, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    value = x[i]
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    if cuda.laneid == 0:
        parts[t // cuda.warpsize] = value
    cuda.syncthreads()
    if t < 4:
        value = parts[t]
        value += cuda.shfl_xor_sync(0xF, value, 2)
        value += cuda.shfl_xor_sync(0xF, value, 1)
        if t == 0:
            cuda.atomic.add(out, cuda.blockIdx.x, value)


x, out = np.arange(256, dtype=np.float32), np.zeros(2, np.float32)
total[2, 128](x, out)
print(out.tolist())
