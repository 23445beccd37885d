"""Softmax of each row in Numba: the three ways of kernels/softmax.cu, a block a row.

    three_reads[rows, 256](out, x)
    online[rows, 256](out, x)
    one_read(4096, 256)[rows, 256](out, x)      # for rows of 4,096 values, blocks of 256

Blocks have whole warps. Results are as torch's for NaN and infinities.
"""

import functools
import math

from numba import cuda, float32

ALL_LANES = 0xFFFFFFFF
WARP = 32
MOST_WARPS = 32
LOWEST = float32(-math.inf)


@cuda.jit(device=True)
def add(a, b):
    return a + b


@cuda.jit(device=True)
def larger(a, b):
    return a if a > b else b


def block_reduction(combine, neutral):
    """A function of one value a thread that gives all threads of the block the combined one."""

    @cuda.jit(device=True)
    def warp_reduce(v):
        lanes = WARP // 2
        while lanes > 0:
            v = combine(v, cuda.shfl_xor_sync(ALL_LANES, v, lanes))
            lanes //= 2
        return v

    @cuda.jit(device=True)
    def block_reduce(v):
        results = cuda.shared.array(MOST_WARPS, float32)
        warp = cuda.threadIdx.x // WARP
        lane = cuda.threadIdx.x % WARP
        v = warp_reduce(v)
        if lane == 0:
            results[warp] = v
        cuda.syncthreads()
        v = results[lane] if lane < cuda.blockDim.x // WARP else neutral
        v = warp_reduce(v)
        cuda.syncthreads()  # the next call may write `results` again
        return v

    return block_reduce


block_sum = block_reduction(add, float32(0))
block_max = block_reduction(larger, LOWEST)


@cuda.jit
def three_reads(out, x):
    """Maximum, sum, result: the row is read three times."""
    row = cuda.blockIdx.x
    columns = x.shape[1]

    largest = LOWEST
    for c in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        largest = larger(x[row, c], largest)
    largest = block_max(largest)

    total = float32(0)
    for c in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        total += math.exp(x[row, c] - largest)
    total = block_sum(total)

    for c in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        out[row, c] = math.exp(x[row, c] - largest) / total


@cuda.jit
def online(out, x):
    """Maximum and sum together: a larger value scales the sum so far. The row is read twice."""
    row = cuda.blockIdx.x
    columns = x.shape[1]

    seen = LOWEST
    total = float32(0)
    for c in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        v = x[row, c]
        if v > seen:
            total *= math.exp(seen - v)
            seen = v
        if v != LOWEST:  # exp(-inf) is 0, but -inf - -inf is NaN
            total += math.exp(v - seen)
    largest = block_max(seen)
    if total != 0:  # a thread that saw no number has nothing to scale
        total *= math.exp(seen - largest)
    total = block_sum(total)

    for c in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        out[row, c] = math.exp(x[row, c] - largest) / total


@functools.cache
def one_read(columns, threads):
    """A kernel that keeps the row in registers: read once."""
    kept = -(-columns // threads)  # a number that the compiler knows, so that it unrolls the loops

    @cuda.jit
    def softmax_one_read(out, x):
        row = cuda.blockIdx.x
        values = cuda.local.array(kept, float32)
        largest = LOWEST
        for k in range(kept):
            c = k * threads + cuda.threadIdx.x
            values[k] = x[row, c] if c < columns else LOWEST
            largest = larger(values[k], largest)
        largest = block_max(largest)

        total = float32(0)
        for k in range(kept):
            values[k] = math.exp(values[k] - largest)
            total += values[k]
        total = block_sum(total)

        for k in range(kept):
            c = k * threads + cuda.threadIdx.x
            if c < columns:
                out[row, c] = values[k] / total

    return softmax_one_read
