import numpy as np
from numba import cuda, int32


@cuda.jit
def total(x, out):
    part = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    part[t] = 0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        part[t] += x[i]
    cuda.syncthreads()
    step = 32
    while step:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


out = np.zeros(1, np.int32)
total[4, 64](np.arange(1000, dtype=np.int32), out)
print(out.tolist())
