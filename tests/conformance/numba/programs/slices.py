import numpy as np
from numba import cuda


@cuda.jit(device=True)
def total(row):
    result = 0
    for value in row:
        result += value
    return result


@cuda.jit
def kernel(a, out):
    i = cuda.grid(1)
    if i < a.shape[0]:
        row = a[i]
        out[0, i] = total(row) + len(row)
        out[1, i] = total(a[i, 1:]) + total(a[:, i])
        out[2, i] = a[i, -1] + a[-1, 0] + row[1::2].size
        part = a[:, 1:3]
        out[3, i] = part[i, 1] * part.shape[0] + part.ndim
        if i == 0:
            out[4, 1:3] = 5


a = np.arange(12).reshape(3, 4)
out = np.zeros((5, 3), np.int64)
kernel[1, 4](a, out)
print(out.tolist())
