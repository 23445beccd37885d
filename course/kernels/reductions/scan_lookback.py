"""The scan with decoupled look-back (cuda/scan_lookback.cu) in Numba: one pass over memory.

A tile tells the others of itself by a flag and two numbers. In CUDA C flag and number share one
64-bit word; here they are apart, so a fence must stand between: whoever sees the flag is to see the
number too.
"""

import functools

from numba import cuda, float32, int32, uint32, uint64

from course.kernels.reductions import scans
from course.kernels.reductions.kernels import scratch
from course.kernels.reductions.scan_ladder import EVERYONE, WARP, Rung, warp_scan
from utils.engine import has_gpu
from utils.tools import yours

THREADS = 256
WARPS = THREADS // WARP
ITEMS = 15  # a thread; odd, so that the lanes of a warp meet in no bank of shared memory
TILE = THREADS * ITEMS

#: What a tile's flag tells
NOTHING = 0
SUM = 1
PREFIX = 2


@cuda.jit(device=True)
def look_back(flags, sums, prefixes, tile, lane):
    """The sum of all tiles before `tile`, by a whole warp: 32 flags at a glance."""
    prefix = float32(0)
    t = tile - 1 - lane
    while True:
        flag = int32(PREFIX)  # before the first tile
        value = float32(0)
        if t >= 0:
            flag = cuda.atomic.add(flags, t, 0)  # adds nothing: reads past the L1 cache
            while flag == NOTHING:
                cuda.nanosleep(20)
                flag = cuda.atomic.add(flags, t, 0)
            cuda.threadfence()  # the number is not read before the flag
            if flag == PREFIX:
                value = cuda.atomic.add(prefixes, t, float32(0))
            else:
                value = cuda.atomic.add(sums, t, float32(0))
        cuda.syncwarp()
        found = cuda.ballot_sync(EVERYONE, flag == PREFIX)
        nearest = cuda.ffs(found) - 1 if found != 0 else WARP - 1
        value = value if lane <= nearest else float32(0)
        step = WARP // 2
        while step > 0:
            value += cuda.shfl_xor_sync(EVERYONE, value, step)
            step //= 2
        prefix += value
        if found != 0:
            return prefix
        t -= WARP


@cuda.jit(device=True)
def load_tile(x, first, items):
    """Neighbours read neighbours. Whole tiles without a branch, so that no load waits for another;
    and unsigned indices, which need no test for being negative.
    """
    t = cuda.threadIdx.x
    mine = cuda.local.array(ITEMS, float32)
    if first + TILE <= x.size:
        for k in range(ITEMS):
            mine[k] = x[first + uint32(k * THREADS + t)]
    else:
        for k in range(ITEMS):
            i = first + uint32(k * THREADS + t)
            mine[k] = x[i] if i < x.size else float32(0)
    for k in range(ITEMS):
        items[uint32(k * THREADS + t)] = mine[k]


@cuda.jit(device=True)
def store_tile(out, first, items):
    t = cuda.threadIdx.x
    for k in range(ITEMS):
        i = first + uint32(k * THREADS + t)
        if i < out.size:
            out[i] = items[uint32(k * THREADS + t)]


@functools.cache
def kernel_with(look_back):
    """The kernel, with this look-back in it."""

    @cuda.jit
    def scan_lookback(x, out, drawn, flags, sums, prefixes):
        """drawn: one int32, flags: an int32 for each tile; zeros. sums, prefixes: float32."""
        items = cuda.shared.array(TILE, float32)
        of_warp = cuda.shared.array(WARPS, float32)
        of_block = cuda.shared.array(1, int32)
        start = cuda.shared.array(1, float32)
        t = cuda.threadIdx.x
        warp = t // WARP
        lane = t % WARP

        if t == 0:
            of_block[0] = cuda.atomic.add(drawn, 0, 1)
        cuda.syncthreads()
        tile = of_block[0]
        load_tile(x, uint64(tile) * TILE, items)
        cuda.syncthreads()
        mine = float32(0)
        for k in range(ITEMS):
            mine += items[uint32(t * ITEMS + k)]
            items[uint32(t * ITEMS + k)] = mine

        through = warp_scan(mine, lane)
        if lane == WARP - 1:
            of_warp[warp] = through
        cuda.syncthreads()
        before = through - mine
        whole = float32(0)
        for w in range(WARPS):
            if w == warp:
                before = whole
            whole += of_warp[w]
        left = cuda.shfl_up_sync(EVERYONE, through, 1)
        if lane > 0:
            before += left

        if warp == 0:
            if lane == 0 and tile > 0:
                sums[tile] = whole
                cuda.threadfence()  # the number is there before the flag
                cuda.atomic.exch(flags, tile, SUM)
            cuda.syncwarp()
            prefix = look_back(flags, sums, prefixes, tile, lane)
            if lane == 0:
                prefixes[tile] = prefix + whole
                cuda.threadfence()
                cuda.atomic.exch(flags, tile, PREFIX)
                start[0] = prefix
        cuda.syncthreads()
        before += start[0]
        for k in range(ITEMS):
            items[uint32(t * ITEMS + k)] += before
        cuda.syncthreads()
        store_tile(out, uint64(tile) * TILE, items)

    return scan_lookback


@cuda.jit
def clear_all(numbers):
    for i in range(cuda.grid(1), numbers.size, cuda.gridsize(1)):
        numbers[i] = 0


def scan(x, out, look_back=look_back) -> None:
    """out[i] = x[0] + ... + x[i]; device arrays of as many float32. look_back: one like ours."""
    if x.size == 0:
        return
    tiles = -(-x.size // TILE)
    state = scratch("lookback state", 1 + tiles, "int32")
    sums = scratch("lookback sums", tiles)
    prefixes = scratch("lookback prefixes", tiles)
    clear_all[min(64, -(-state.size // THREADS)), THREADS](state)
    kernel_with(look_back)[tiles, THREADS](x, out, state[:1], state[1:], sums, prefixes)


@yours.cache
def in_cuda_c(n: int) -> scans.Scan:
    """The scan in CUDA C for n elements."""
    small = scans.Lookback(64, 2)  # several tiles in a few thousand elements
    return scans.Scan(n, method=None if has_gpu() else small)


def _scan_in_cuda_c(x, out) -> None:
    in_cuda_c(x.size)(x, out)


#: A rung like those of `scan_ladder`; its kernel is the device function `look_back`.
RUNG = Rung("look-back", look_back, lambda kernel, x, out: scan(x, out, kernel), _scan_in_cuda_c)
