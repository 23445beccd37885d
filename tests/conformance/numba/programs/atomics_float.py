import numpy as np
from numba import cuda


@cuda.jit
def kernel(total, low, high):
    i = cuda.grid(1)
    cuda.atomic.add(total, 0, 0.25 * i)
    cuda.atomic.sub(total, 1, 0.5)
    cuda.atomic.min(low, 0, i - 10.5)
    cuda.atomic.max(high, 0, i * 1.5)


for dtype in (np.float32, np.float64):
    total, low, high = np.zeros(2, dtype), np.zeros(1, dtype), np.zeros(1, dtype)
    kernel[2, 32](total, low, high)
    print(total.tolist(), low.tolist(), high.tolist())
