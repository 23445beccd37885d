import numpy as np
from numba import cuda


@cuda.jit
def primes(out):
    n = cuda.grid(1)
    if n < 2:
        return
    for divisor in range(2, n):
        if divisor * divisor > n:
            break
        if n % divisor:
            continue
        return
    out[n] = 1


@cuda.jit
def loops(out):
    count = 0
    for i, j in enumerate(range(10, 0, -3)):
        count += i * j
    k = 100
    while k > 1:
        k //= 3
        count += 1
    else:
        count += 1000
    a, b = 0, 1
    for _ in range(20):
        a, b = b, a + b
    out[0], out[1] = count, a


out, two = np.zeros(64, np.int32), np.zeros(2, np.int64)
primes[2, 32](out)
loops[1, 1](two)
print(np.flatnonzero(out).tolist(), two.tolist())
