import numpy as np
from numba import cuda


@cuda.jit
def kernel(x):
    cuda.atomic.nanmax(x, 0, x[4])
    cuda.atomic.nanmin(x, 1, x[4])
    cuda.atomic.nanmax(x, 2, 9.0)
    cuda.atomic.nanmin(x, 3, -9.0)


x = np.array([1.5, 2.5, 3.5, 4.5, np.nan])
kernel[1, 1](x)
print(x.tolist())
