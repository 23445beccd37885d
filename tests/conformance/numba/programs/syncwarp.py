import numpy as np
from numba import cuda, int32


@cuda.jit
def rotate(x):
    s = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    warp = t // 32 * 32
    value = s[warp + (t + 1) % 32]
    cuda.syncwarp()
    s[t] = value * 2
    cuda.syncwarp()
    x[t] = s[warp + (t + 31) % 32]


x = np.arange(64, dtype=np.int32)
rotate[1, 64](x)
print(x.tolist())
