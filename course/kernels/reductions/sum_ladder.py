"""The sum of an array, one change at a time: the steps of cuda/sum_ladder.cu in Numba, and `RUNGS`.

    sum_ladder.RUNGS["shuffle"].numba(x, out)         # out[0] = the sum of x
    sum_ladder.RUNGS["shuffle"].cuda_c(x, out)

The fastest of ours is another file: cuda/sum_fast.cu, which `reductions.sums` launches.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import cuda, float32

from course.kernels.reductions.kernels import clear, load, multiprocessors, scratch

THREADS = 256
WARP = 32
WARPS = THREADS // WARP
EVERYONE = 0xFFFFFFFF
CLUSTER = 8  # blocks
WIDE_BLOCKS = 64  # a multiprocessor, for kernels whose threads take several elements

# ---- 1: everybody adds to one number -----------------------------------------------------------


@cuda.jit
def sum_atomic(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i])


# ---- 2: a tree in shared memory, its threads far apart -----------------------------------------


@cuda.jit
def sum_divergent(x, sums):
    tree = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tree[t] = x[i] if i < x.size else 0
    step = 1
    while step < THREADS:
        cuda.syncthreads()
        if t % (2 * step) == 0:  # every warp has some who work and some who wait
            tree[t] += tree[t + step]
        step *= 2
    if t == 0:
        sums[cuda.blockIdx.x] = tree[0]


# ---- 3: neighbours work on neighbouring places -------------------------------------------------


@cuda.jit
def sum_sequential(x, sums):
    tree = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tree[t] = x[i] if i < x.size else 0
    step = THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if t < step:
            tree[t] += tree[t + step]
        step //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = tree[0]


# ---- 4: neighbours work, on places far apart ---------------------------------------------------


@cuda.jit
def sum_conflicts(x, sums):
    tree = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tree[t] = x[i] if i < x.size else 0
    step = 1
    while step < THREADS:
        cuda.syncthreads()
        place = 2 * step * t  # lanes of a warp meet in the same banks
        if place < THREADS:
            tree[place] += tree[place + step]
        step *= 2
    if t == 0:
        sums[cuda.blockIdx.x] = tree[0]


# ---- 5: warps need no shared memory ------------------------------------------------------------


@cuda.jit(device=True)
def warp_sum(value):
    step = WARP // 2
    while step > 0:
        value += cuda.shfl_xor_sync(EVERYONE, value, step)
        step //= 2
    return value


@cuda.jit(device=True)
def block_sum(value):
    """The sum over the block, in thread 0."""
    sums = cuda.shared.array(WARPS, float32)
    warp = cuda.threadIdx.x // WARP
    lane = cuda.threadIdx.x % WARP
    value = warp_sum(value)
    if lane == 0:
        sums[warp] = value
    cuda.syncthreads()
    value = sums[lane] if lane < WARPS else float32(0)
    return warp_sum(value)


@cuda.jit
def sum_shuffle(x, sums):
    i = cuda.grid(1)
    total = block_sum(x[i] if i < x.size else float32(0))
    if cuda.threadIdx.x == 0:
        sums[cuda.blockIdx.x] = total


# ---- 6: several elements a thread, eight loads before the first is needed ----------------------


@cuda.jit(device=True)
def four_apart(x, i, step):
    """The sum of four elements that lie `step` apart."""
    return (x[i] + x[i + step]) + (x[i + 2 * step] + x[i + 3 * step])


@cuda.jit(device=True)
def sum_of_share(x):
    """The sum of this thread's share of the array."""
    threads = cuda.gridsize(1)
    i = cuda.grid(1)
    total = float32(0)
    while i + 7 * threads < x.size:
        total += four_apart(x, i, threads) + four_apart(x, i + 4 * threads, threads)
        i += 8 * threads
    while i < x.size:
        total += x[i]
        i += threads
    return total


@cuda.jit
def sum_wide(x, out):
    total = block_sum(sum_of_share(x))
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, total)


# ---- 7: no atomics: the order is fixed, and so are the bits ------------------------------------


@cuda.jit
def sum_pass(x, out):
    """Launched twice: x to a partial sum a block, then these, by one block, to one."""
    total = block_sum(sum_of_share(x))
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = total


# ---- 8: as fixed, in one launch: the block that ends last adds up the rest ---------------------


@cuda.jit
def sum_last_block(x, out, partial, arrived):
    """partial: a float32 for each block. arrived: an int32, 0 before, and again afterwards."""
    last = cuda.shared.array(1, np.int32)
    total = block_sum(sum_of_share(x))
    if cuda.threadIdx.x == 0:
        partial[cuda.blockIdx.x] = total
        cuda.threadfence()  # whoever sees that this block has arrived sees its sum too
        last[0] = cuda.atomic.add(arrived, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if last[0]:
        cuda.threadfence()
        every = float32(0)
        for b in range(cuda.threadIdx.x, cuda.gridDim.x, THREADS):
            every += partial[b]
        every = block_sum(every)
        if cuda.threadIdx.x == 0:
            out[0] = every
            arrived[0] = 0


# ---- how they are launched ---------------------------------------------------------------------


@dataclass(frozen=True)
class Rung:
    """One step of the ladder.

    kernel: ours in Numba; launch: launch(kernel, x, out) runs it or another one in its place;
    cuda_c: cuda_c(x, out). x (float32) and out (one element) are device arrays.
    """

    title: str
    kernel: Callable
    launch: Callable
    cuda_c: Callable

    def numba(self, x, out) -> None:
        """out[0] = the sum of x."""
        self.launch(self.kernel, x, out)


def _one_element_a_thread(n: int) -> int:
    return max(1, -(-n // THREADS))


def _several_elements_a_thread(n: int) -> int:
    return max(1, min(WIDE_BLOCKS * multiprocessors(), -(-n // (4 * THREADS))))


def _adding_to_zero(
    kernel: str,
    title: str,
    grid: Callable[[int], int],
) -> Rung:
    """A rung whose blocks add to out[0], which must be zero before."""

    def launch(in_numba, x, out):
        clear[1, 1](out)
        in_numba[grid(x.size), THREADS](x, out)

    def run_cuda_c(x, out):
        clear[1, 1](out)
        getattr(load("sum_ladder.cu"), kernel)[grid(x.size), THREADS](x, x.size, out)

    return Rung(title, globals()[kernel], launch, run_cuda_c)


def _down_to_one(kernel: str, title: str) -> Rung:
    """A rung whose blocks write their sums, added up in the same way until one is left."""

    def run(x, out, blocks_of):
        blocks = _one_element_a_thread(x.size)
        sums = out if blocks == 1 else scratch("sums", blocks)
        blocks_of(blocks, x, sums)
        if blocks > 1:
            run(sums, out, blocks_of)

    def launch(in_numba, x, out):
        run(x, out, lambda blocks, x, sums: in_numba[blocks, THREADS](x, sums))

    def blocks_in_cuda_c(blocks, x, sums):
        getattr(load("sum_ladder.cu"), kernel)[blocks, THREADS](x, x.size, sums)

    return Rung(title, globals()[kernel], launch, lambda x, out: run(x, out, blocks_in_cuda_c))


def _two_passes() -> Rung:
    def launch(in_numba, x, out):
        partial = scratch("partial", _several_elements_a_thread(x.size))
        in_numba[partial.size, THREADS](x, partial)
        in_numba[1, THREADS](partial, out)

    def run_cuda_c(x, out):
        partial = scratch("partial", _several_elements_a_thread(x.size))
        kernel = load("sum_ladder.cu").sum_pass
        kernel[partial.size, THREADS](x, x.size, partial)
        kernel[1, THREADS](partial, partial.size, out)

    return Rung("two passes", sum_pass, launch, run_cuda_c)


def _last_block() -> Rung:
    def launch(in_numba, x, out):
        partial = scratch("partial", _several_elements_a_thread(x.size))
        arrived = scratch("arrived", 1, "int32")
        in_numba[partial.size, THREADS](x, out, partial, arrived)

    def run_cuda_c(x, out):
        partial = scratch("partial", _several_elements_a_thread(x.size))
        arrived = scratch("arrived", 1, "uint32")
        kernel = load("sum_ladder.cu").sum_last_block
        kernel[partial.size, THREADS](x, x.size, out, partial, arrived)

    return Rung("last block done", sum_last_block, launch, run_cuda_c)


_ONE = _one_element_a_thread
_SEVERAL = _several_elements_a_thread

#: The ladder, from the first step to the last, by name.
RUNGS = {
    "atomic": _adding_to_zero("sum_atomic", "atomics", _ONE),
    "divergent": _down_to_one("sum_divergent", "a tree, threads far apart"),
    "sequential": _down_to_one("sum_sequential", "a tree of neighbours"),
    "conflicts": _down_to_one("sum_conflicts", "a tree, places far apart"),
    "shuffle": _down_to_one("sum_shuffle", "warp shuffles"),
    "wide": _adding_to_zero("sum_wide", "several elements a thread", _SEVERAL),
    "two_passes": _two_passes(),
    "last_block": _last_block(),
}


def by_clusters(x, out) -> None:
    """The sum by clusters of blocks (cuda/sum_cluster.cu), for compute capability 9.0 and later."""
    clusters = -(-_several_elements_a_thread(x.size) // CLUSTER)
    clear[1, 1](out)
    load("sum_cluster.cu").sum_cluster[clusters * CLUSTER, THREADS](x, x.size, out)
