import numpy as np
from numba import cuda


@cuda.jit
def square(x):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] *= x[i]


x = np.arange(100, dtype=np.int64)
square[3, 8](x)
print(x.tolist())
