import numpy as np
from numba import cuda, float32, int32


@cuda.jit
def kernel(out, sizes):
    ints = cuda.shared.array(0, int32)
    floats = cuda.shared.array(0, float32)[8:]
    t = cuda.threadIdx.x
    ints[t] = t * t
    floats[t] = t + 0.5
    cuda.syncthreads()
    out[t] = ints[7 - t] + floats[(t + 1) % 8]
    if t == 0:
        sizes[0], sizes[1] = ints.size, floats.size


out, sizes = np.zeros(8, np.float32), np.zeros(2, np.int32)
kernel[1, 8, 0, 64](out, sizes)
print(out.tolist(), sizes.tolist())
