import numpy as np
from numba import cuda


@cuda.jit
def kernel(visits, order, sizes):
    x, y, z = cuda.grid(3)
    cuda.atomic.add(visits, (z, y, x), 1)
    order[z, y, x] = cuda.threadIdx.x + cuda.blockDim.x * (
        cuda.threadIdx.y + cuda.blockDim.y * cuda.threadIdx.z
    )
    if x == 0 and y == 0 and z == 0:
        sizes[0], sizes[1], sizes[2] = cuda.gridsize(3)
        sizes[3], sizes[4], sizes[5] = cuda.gridDim.x, cuda.gridDim.y, cuda.gridDim.z


visits, order = np.zeros((4, 6, 4), np.int32), np.zeros((4, 6, 4), np.int32)
sizes = np.zeros(6, np.int32)
kernel[(2, 3, 1), (2, 2, 4)](visits, order, sizes)
print(visits.min(), visits.max(), sizes.tolist())
print(order[:2].tolist())
