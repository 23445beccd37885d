import numpy as np
from numba import cuda


@cuda.jit
def kernel(plane, cube, row):
    i = cuda.grid(1)
    cuda.atomic.add(plane, (i % 3, i % 2), i)
    cuda.atomic.max(cube, (i % 2, i % 3, 1), i)
    cuda.atomic.add(row[1], i % 4, 1)


plane, cube, row = (
    np.zeros((3, 2), np.int64),
    np.zeros((2, 3, 2), np.int32),
    np.zeros((2, 4), np.int32),
)
kernel[4, 16](plane, cube, row)
print(plane.tolist(), cube.tolist(), row.tolist())
