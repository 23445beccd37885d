import numpy as np
from numba import cuda


@cuda.jit
def kernel(counter, tickets, extremes, bits, olds):
    i = cuda.grid(1)
    tickets[cuda.atomic.add(counter, 0, 1)] = 1
    cuda.atomic.max(extremes, 0, (i * 37) % 101)
    cuda.atomic.min(extremes, 1, (i * 37) % 101 - 50)
    cuda.atomic.xor(bits, 0, 1 << (i % 31))
    olds[i] = cuda.atomic.exch(bits, 1, i + 1)


counter, tickets = np.zeros(1, np.int32), np.zeros(160, np.int32)
extremes, bits, olds = np.zeros(2, np.int32), np.zeros(2, np.int32), np.zeros(160, np.int64)
kernel[5, 32](counter, tickets, extremes, bits, olds)
print(counter.tolist(), tickets.sum(), extremes.tolist(), bits[0], olds.sum() + bits[1])
