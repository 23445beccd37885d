"""A product built from compare-and-swap, and a lock's winner."""

import numpy as np
from numba import cuda


@cuda.jit
def kernel(product, winners):
    i = cuda.grid(1)
    old = product[0]
    while True:
        seen = cuda.atomic.cas(product, 0, old, old * (i % 3 + 1) % 10007)
        if seen == old:
            break
        old = seen
    if cuda.atomic.cas(winners, 0, 0, 1) == 0:
        cuda.atomic.add(winners, 1, 1)


product, winners = np.ones(1, np.int64), np.zeros(2, np.int32)
kernel[4, 32](product, winners)
print(product.tolist(), winners.tolist())
