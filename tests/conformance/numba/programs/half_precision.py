import numpy as np
from numba import cuda


@cuda.jit
def kernel(x, y, out):
    i = cuda.grid(1)
    out[0, i] = cuda.fp16.hadd(x[i], y[i])
    out[1, i] = cuda.fp16.hmul(x[i], y[i])
    out[2, i] = x[i] - y[i]
    out[3, i] = cuda.fp16.hfma(x[i], y[i], y[i])
    out[4, i] = cuda.fp16.hmax(x[i], y[i])
    out[5, i] = x[i] * x[i] + y[i]


x = np.array([1, 0.1, 1000, 3.14], np.float16)
y = np.array([2, 0.2, 0.3, 100], np.float16)
out = np.zeros((6, 4), np.float16)
kernel[1, 4](x, y, out)
print(out.tolist())
