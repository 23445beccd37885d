"""Inclusive sums of an array, one change at a time: cuda/scan_ladder.cu in Numba, and `RUNGS`.

    scan_ladder.RUNGS["blelloch"].numba(x, out)       # out[i] = x[0] + ... + x[i]
    scan_ladder.RUNGS["blelloch"].cuda_c(x, out)

Those that need one pass over memory are in `course.kernels.reductions.scans` and `scan_lookback`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from numba import cuda, float32

from course.kernels.reductions.kernels import load, scratch

THREADS = 256
WARP = 32
WARPS = THREADS // WARP
EVERYONE = 0xFFFFFFFF

# ---- 1: Hillis and Steele (1986): everybody adds, log2(THREADS) times --------------------------


@cuda.jit
def hillis_steele(x, out, sums):
    row = cuda.shared.array((2, THREADS), float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    now = 0
    row[now, t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        left = row[now, t - step] if t >= step else float32(0)
        row[1 - now, t] = row[now, t] + left  # into the other row: nobody reads it
        now = 1 - now
        cuda.syncthreads()
        step *= 2
    if i < x.size:
        out[i] = row[now, t]
    if t == THREADS - 1:
        sums[cuda.blockIdx.x] = row[now, t]


# ---- 2: Blelloch (1990): a tree up and down again, 2 (THREADS - 1) additions -------------------


@cuda.jit
def blelloch(x, out, sums):
    tree = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    mine = x[i] if i < x.size else float32(0)
    tree[t] = mine
    step = 1
    while step < THREADS:  # up: sums of 2, 4, 8 ... neighbours
        cuda.syncthreads()
        right = 2 * step * (t + 1) - 1
        if right < THREADS:
            tree[right] += tree[right - step]
        step *= 2
    cuda.syncthreads()
    if t == THREADS - 1:
        sums[cuda.blockIdx.x] = tree[t]
        tree[t] = 0
    step = THREADS // 2
    while step > 0:  # down: what lies before each of them
        cuda.syncthreads()
        right = 2 * step * (t + 1) - 1
        if right < THREADS:
            before = tree[right]
            tree[right] = before + tree[right - step]
            tree[right - step] = before
        step //= 2
    cuda.syncthreads()
    if i < x.size:
        out[i] = tree[t] + mine


# ---- 3: warps first ----------------------------------------------------------------------------


@cuda.jit(device=True)
def warp_scan(value, lane):
    """The sum of the values in lanes 0 to `lane`."""
    step = 1
    while step < WARP:
        left = cuda.shfl_up_sync(EVERYONE, value, step)
        if lane >= step:
            value += left
        step *= 2
    return value


@cuda.jit(device=True)
def block_scan(value):
    """The sum of the values of threads 0 to threadIdx.x."""
    sums = cuda.shared.array(WARPS, float32)
    warp = cuda.threadIdx.x // WARP
    lane = cuda.threadIdx.x % WARP
    value = warp_scan(value, lane)
    if lane == WARP - 1:
        sums[warp] = value
    cuda.syncthreads()
    for w in range(WARPS):  # a fixed number of turns, so that the compiler can unroll them
        if w < warp:
            value += sums[w]
    return value


@cuda.jit
def scan_blocks(x, out, sums):
    i = cuda.grid(1)
    through = block_scan(x[i] if i < x.size else float32(0))
    if i < x.size:
        out[i] = through
    if cuda.threadIdx.x == THREADS - 1:
        sums[cuda.blockIdx.x] = through


@cuda.jit
def add_starts(out, sums):
    """sums: scanned. Each element gets the sum of the blocks before its own."""
    i = cuda.grid(1)
    if i < out.size and cuda.blockIdx.x > 0:
        out[i] += sums[cuda.blockIdx.x - 1]


# ---- 4: reduce, then scan: the first pass writes only the sums ---------------------------------


@cuda.jit
def sum_blocks(x, sums):
    i = cuda.grid(1)
    through = block_scan(x[i] if i < x.size else float32(0))
    if cuda.threadIdx.x == THREADS - 1:
        sums[cuda.blockIdx.x] = through


@cuda.jit
def scan_from_starts(x, out, sums):
    """sums: scanned."""
    i = cuda.grid(1)
    start = sums[cuda.blockIdx.x - 1] if cuda.blockIdx.x > 0 else float32(0)
    through = block_scan(x[i] if i < x.size else float32(0))
    if i < x.size:
        out[i] = start + through


# ---- how they are launched ---------------------------------------------------------------------


@dataclass(frozen=True)
class Rung:
    """One step of the ladder.

    kernel: ours in Numba; launch: launch(kernel, x, out) runs it or another one in its place;
    cuda_c: cuda_c(x, out). x and out are device arrays of n float32.
    """

    title: str
    kernel: Callable
    launch: Callable
    cuda_c: Callable

    def numba(self, x, out) -> None:
        """out[i] = x[0] + ... + x[i]."""
        self.launch(self.kernel, x, out)


def _blocks(n: int) -> int:
    return -(-n // THREADS)


def _scan_then_add_numba(kernel, x, out):
    if x.size == 0:
        return
    blocks = _blocks(x.size)
    sums = scratch("sums", blocks)
    kernel[blocks, THREADS](x, out, sums)
    if blocks > 1:
        scanned = scratch("scanned", blocks)
        _scan_then_add_numba(kernel, sums, scanned)
        add_starts[blocks, THREADS](out, scanned)


def _scan_then_add_cuda_c(name, x, out):
    if x.size == 0:
        return
    module = load("scan_ladder.cu")
    blocks = _blocks(x.size)
    sums = scratch("sums", blocks)
    getattr(module, name)[blocks, THREADS](x, out, x.size, sums)
    if blocks > 1:
        scanned = scratch("scanned", blocks)
        _scan_then_add_cuda_c(name, sums, scanned)
        module.add_starts[blocks, THREADS](out, x.size, scanned)


def _reduce_then_scan_numba(kernel, x, out):
    if x.size == 0:
        return
    blocks = _blocks(x.size)
    scanned = scratch("scanned", blocks)
    if blocks > 1:
        sums = scratch("sums", blocks)
        kernel[blocks, THREADS](x, sums)
        _reduce_then_scan_numba(kernel, sums, scanned)
    scan_from_starts[blocks, THREADS](x, out, scanned)


def _reduce_then_scan_cuda_c(x, out):
    if x.size == 0:
        return
    module = load("scan_ladder.cu")
    blocks = _blocks(x.size)
    scanned = scratch("scanned", blocks)
    if blocks > 1:
        sums = scratch("sums", blocks)
        module.sum_blocks[blocks, THREADS](x, x.size, sums)
        _reduce_then_scan_cuda_c(sums, scanned)
    module.scan_from_starts[blocks, THREADS](x, out, x.size, scanned)


def _scan_then_add(title: str, kernel) -> Rung:
    name = kernel.py_func.__name__
    return Rung(title, kernel, _scan_then_add_numba, partial(_scan_then_add_cuda_c, name))


#: The ladder by name; behind it come the one-pass scans in `course.kernels.reductions.scans`.
RUNGS = {
    "hillis_steele": _scan_then_add("Hillis and Steele", hillis_steele),
    "blelloch": _scan_then_add("Blelloch", blelloch),
    "shuffles": _scan_then_add("warps first", scan_blocks),
    "reduce_then_scan": Rung(
        "reduce, then scan", sum_blocks, _reduce_then_scan_numba, _reduce_then_scan_cuda_c
    ),
}
