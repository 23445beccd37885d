"""The tracer's counts and races against plain loops over random accesses."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
from itertools import combinations

import numpy as np
import pytest
from numba import cuda, float32, float64, int8

from utils.tracer import trace

THREADS, ELEMENTS = 96, 160


@cuda.jit
def gather_global(out, a, index):
    i = cuda.grid(1)
    if index[i] >= 0:
        out[i] = a[index[i]]


def gather_shared(dtype):
    @cuda.jit
    def gather(out, index):
        sh = cuda.shared.array(ELEMENTS, dtype)
        t = cuda.threadIdx.x
        for k in range(t, ELEMENTS, THREADS):
            sh[k] = k
        cuda.syncthreads()
        if index[t] >= 0:
            out[t] = sh[index[t]]

    return gather


def random_index(rng):
    """An element for each thread; some threads sit out."""
    index = rng.integers(0, rng.integers(1, ELEMENTS), THREADS)
    index[rng.random(THREADS) < rng.choice([0, 0.3, 0.9])] = -1
    return index


def warps(index):
    for start in range(0, THREADS, 32):
        yield [(lane, int(i)) for lane, i in enumerate(index[start : start + 32]) if i >= 0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
def test_sectors_of_random_gathers(dtype, seed):
    rng, size = np.random.default_rng(seed), np.dtype(dtype).itemsize
    index = random_index(rng)
    t = trace(gather_global, 1, THREADS, np.zeros(THREADS, dtype), np.ones(ELEMENTS, dtype), index)
    sectors = sum(len({i * size // 32 for _, i in warp}) for warp in warps(index))
    lines = sum(len({i * size // 128 for _, i in warp}) for warp in warps(index))
    fewest = sum(-(-len({i for _, i in warp}) * size // 32) for warp in warps(index))
    rows = [row for row in t.coalescing if row.array == "a"]
    assert sum(row.sectors for row in rows) == sectors
    assert (
        sum(row.cache_lines for row in rows) == lines and sum(row.fewest for row in rows) == fewest
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype, size", [(int8, 1), (float32, 4), (float64, 8)])
def test_passes_of_random_gathers(dtype, size, seed):
    rng = np.random.default_rng(seed)
    index = random_index(rng)
    t = trace(gather_shared(dtype), 1, THREADS, np.zeros(THREADS), index)
    together = 16 if size == 8 else 32
    passes, worst = 0, 0
    for warp in warps(index):
        for start in range(0, 32, together):
            banks = [set() for _ in range(32)]
            for lane, i in warp:
                if start <= lane < start + together:
                    for word in range(i * size // 4, (i * size + size - 1) // 4 + 1):
                        banks[word % 32].add(word)
            passes += max(map(len, banks))
            worst = max(worst, *map(len, banks))
    rows = [row for row in t.banks if row.operation == "read"]
    assert sum(row.wavefronts for row in rows) == passes
    assert max((row.ways for row in rows), default=0) == worst


STEPS, CELLS, BLOCK = 12, 24, 64
NOTHING, READ, WRITE, ADD = range(4)
NO_BARRIER, BLOCK_BARRIER, WARP_BARRIER = range(3)


@cuda.jit
def program(sink, operation, place, barrier):
    """Each thread does what `operation` says, at `place`, step by step; all wait where `barrier`
    says.
    """
    sh = cuda.shared.array(CELLS, float32)
    t = cuda.threadIdx.x
    if t < CELLS:
        sh[t] = 0
    cuda.syncthreads()
    for s in range(STEPS):
        if operation[s, t] == READ:
            sink[t] += sh[place[s, t]]
        if operation[s, t] == WRITE:
            sh[place[s, t]] = s
        if operation[s, t] == ADD:
            cuda.atomic.add(sh, place[s, t], 1)
        if barrier[s] == BLOCK_BARRIER:
            cuda.syncthreads()
        if barrier[s] == WARP_BARRIER:
            cuda.syncwarp()


def expected_races(operation, place, barrier):
    """(operation, other operation) -> the elements that two threads race for so, by comparing all
    pairs.
    """
    epoch = np.concatenate([[0], np.cumsum(barrier == BLOCK_BARRIER)])
    warp_epoch = np.concatenate([[0], np.cumsum(barrier == WARP_BARRIER)])
    accesses = [
        (int(place[s, t]), int(operation[s, t]), t, epoch[s], warp_epoch[s])
        for s in range(STEPS)
        for t in range(BLOCK)
        if operation[s, t] != NOTHING
    ]
    found = {}
    for one, other in combinations(accesses, 2):
        (cell, kind, t, e, w), (cell2, kind2, t2, e2, w2) = one, other
        apart = e != e2 or (t // 32 == t2 // 32 and w != w2)
        if cell != cell2 or t == t2 or apart or {kind, kind2} in ({READ}, {ADD}):
            continue
        found.setdefault(frozenset((kind, kind2)), set()).add(cell)
    return {kinds: len(cells) for kinds, cells in found.items()}


@pytest.mark.parametrize("seed", range(20))
def test_races_of_random_programs(seed):
    rng = np.random.default_rng(seed)
    busy = rng.choice([0.02, 0.1, 0.4])
    operation = rng.integers(1, 4, (STEPS, BLOCK)) * (rng.random((STEPS, BLOCK)) < busy)
    place = rng.integers(0, CELLS, (STEPS, BLOCK))
    barrier = rng.choice(3, STEPS, p=[0.4, 0.3, 0.3])
    t = trace(program, 1, BLOCK, np.zeros(BLOCK, np.float32), operation, place, barrier)
    kinds = {"read": READ, "write": WRITE, "atomic": ADD}
    found = {frozenset((kinds[r.operation], kinds[r.other_operation])): r.elements for r in t.races}
    assert found == expected_races(operation, place, barrier)
    assert all(race.within_blocks and not race.between_blocks for race in t.races)
