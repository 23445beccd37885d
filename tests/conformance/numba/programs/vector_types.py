import numpy as np
from numba import cuda


@cuda.jit
def kernel(out):
    p = cuda.float32x2(1.5, 2.5)
    q = cuda.float4(p, 3.5, 4.5)
    r = cuda.int32x3(1, 2, 3)
    s = cuda.uchar4(250, 251, 252, 253)
    out[0], out[1] = p.x + p.y, q.x * q.y + q.z * q.w
    out[2], out[3] = r.x + r.y * r.z, s.x + s.w
    t = cuda.float64x4(q.w, q.z, q.y, q.x)
    out[4] = t.x - t.w


out = np.zeros(5, np.float64)
kernel[1, 1](out)
print(out.tolist())
