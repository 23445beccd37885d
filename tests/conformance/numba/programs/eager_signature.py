import numpy as np
from numba import cuda, float32, int32, void


@cuda.jit("void(float32[:], float32, int32)")
def by_string(out, a, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = a * i


@cuda.jit(void(float32[:, :], int32))
def by_types(out, k):
    x, y = cuda.grid(2)
    out[y, x] = y * k + x


out, plane = np.zeros(6, np.float32), np.zeros((2, 3), np.float32)
by_string[1, 8](out, 1.5, 5)
by_types[1, (3, 2)](plane, 10)
print(out.tolist(), plane.tolist())
