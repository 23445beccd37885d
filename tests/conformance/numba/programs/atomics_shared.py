import numpy as np
from numba import cuda, int32


@cuda.jit
def histogram(x, out):
    bins = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        bins[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, x[i], 1)
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(out, t, bins[t])


x = (np.arange(500) ** 2 % 8).astype(np.uint8)
out = np.zeros(8, np.int32)
histogram[3, 32](x, out)
print(out.tolist())
