import numpy as np
from numba import cuda

total = cuda.reduce(lambda a, b: a + b)


@cuda.reduce
def largest(a, b):
    return a if a > b else b


x = np.arange(1000, dtype=np.int64)
res = cuda.to_device(np.zeros(1, np.int64))
print(total(x), total(x, init=100), total(x, size=10), total(cuda.to_device(x)))
print(total(x, res=res), res.copy_to_host().tolist())
print(largest((x * 37) % 1009, init=-1), total(np.arange(64.0)), total(np.zeros(0)))
