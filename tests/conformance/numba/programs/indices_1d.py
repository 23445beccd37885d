import numpy as np
from numba import cuda


@cuda.jit
def kernel(block, thread, whole, outside):
    i = cuda.grid(1)
    if i < whole.size:
        block[i], thread[i] = cuda.blockIdx.x, cuda.threadIdx.x
        whole[i] = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    else:
        cuda.atomic.add(outside, 0, 1)


arrays = [np.zeros(10, np.int32) for _ in range(3)]
outside = np.zeros(1, np.int32)
kernel[3, 4](*arrays, outside)
for array in (*arrays, outside):
    print(array.tolist())
