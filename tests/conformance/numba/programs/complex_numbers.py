import numpy as np
from numba import cuda


@cuda.jit(device=True)
def escape(c, limit):
    z = 0j
    for i in range(limit):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4:
            return i
    return limit


@cuda.jit
def mandelbrot(out, x0, y0, step):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = escape(complex(x0 + x * step, y0 + y * step), 30)


out = np.zeros((7, 10), np.int32)
mandelbrot[(3, 2), (4, 4)](out, -2.0, -1.125, 0.3125)
print(out.tolist())
