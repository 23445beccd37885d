import numpy as np
from numba import cuda


@cuda.jit
def scale(x, a):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= a


x = np.arange(300, dtype=np.float64)
scale.forall(300)(x, 2.5)
scale.forall(300, tpb=64)(x, 2)
print(x[:4].tolist(), x[-1], x.sum())
