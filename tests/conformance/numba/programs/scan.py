import numpy as np
from numba import cuda, int32


@cuda.jit
def scan(x):
    a, b = cuda.shared.array(32, int32), cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    a[t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < 32:
        b[t] = a[t] + (a[t - step] if t >= step else 0)
        cuda.syncthreads()
        a, b = b, a
        step *= 2
    x[t] = a[t]


x = np.arange(1, 33, dtype=np.int32)
scan[1, 32](x)
print(x.tolist())
