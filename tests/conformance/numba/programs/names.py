"""Every way of naming the same things."""

import math

import numba
import numba.cuda
import numba.cuda as nc
import numpy as np
from numba import cuda as gpu
from numba.cuda import grid, jit

OFFSET = 7


def make(factor):
    @gpu.jit
    def kernel(out):
        i = grid(1)
        out[i] = (
            factor * gpu.threadIdx.x
            + OFFSET
            + gpu.blockDim.x
            + nc.blockIdx.x * numba.cuda.gridDim.x
        )

    return kernel


@jit
def half(out):
    i = nc.grid(1)
    out[i] = math.floor(out[i] / 2)


out = np.zeros(8, np.int32)
make(10)[2, 4](out)
print(out.tolist())
half[2, 4](out)
print(out.tolist())
