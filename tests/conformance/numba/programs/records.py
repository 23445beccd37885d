import numpy as np
from numba import cuda

point = np.dtype([("x", np.float32), ("n", np.int32)], align=True)


@cuda.jit
def kernel(points, out):
    i = cuda.grid(1)
    points[i].x = points[i].x * 2
    points[i]["n"] += i
    out[i] = points[i].x + points[i].n


points, out = np.zeros(4, point), np.zeros(4, np.float32)
points["x"], points["n"] = np.arange(4) + 0.5, 10
kernel[1, 4](points, out)
print(points["x"].tolist(), points["n"].tolist(), out.tolist())
