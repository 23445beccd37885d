"""A mask of lanes is an int32: of all lanes it is -1. What counts its bits takes 32 of them."""

import numpy as np
from numba import cuda

FULL = 0xFFFFFFFF


@cuda.jit
def kernel(out):
    t = cuda.threadIdx.x
    out[0, t] = cuda.ballot_sync(FULL, t >= 0)
    out[1, t] = cuda.ballot_sync(FULL, t > 30)
    out[2, t] = cuda.match_any_sync(FULL, t // 8)
    mask, same = cuda.match_all_sync(FULL, 7)
    out[3, t] = mask if same else 0
    who = cuda.ballot_sync(FULL, t % 2)
    out[4, t] = cuda.popc(who) + 100 * cuda.ffs(who) + 10000 * cuda.clz(who)
    out[5, t] = who * 3


out = np.zeros((6, 32), np.int64)
kernel[1, 32](out)
print(out[:, [0, 31]].tolist())
