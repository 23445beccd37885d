import numpy as np
from numba import cuda


@cuda.jit
def kernel(total, low, high, olds):
    i = cuda.grid(1)
    cuda.atomic.add(total, 0, 0.25 * i)
    cuda.atomic.sub(total, 1, 0.5)
    cuda.atomic.min(low, 0, i - 10.5)
    cuda.atomic.max(high, 0, i * 1.5)
    olds[i] = cuda.atomic.exch(total, 2, i + 1.0)


for dtype in (np.float32, np.float64):
    total, low, high, olds = np.zeros(3, dtype), np.zeros(1, dtype), np.zeros(1, dtype), np.zeros(64, dtype)
    kernel[2, 32](total, low, high, olds)
    print(total[:2].tolist(), low.tolist(), high.tolist(), olds.sum() + total[2])
