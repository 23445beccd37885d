"""Threads wait by stacks or by generators: one order, one result, and words where neither can."""

import contextlib
import inspect

import numpy as np
import pytest

from utils.cpu import numba_cuda as engine
from utils.cpu.numba_cuda import cuda, fibres

WAYS = {"stacks": contextlib.nullcontext, "generators": fibres.by_generators}
wait_for_all = cuda.syncthreads


@cuda.jit(device=True)
def sum_of_block(scratch, value):
    i = cuda.threadIdx.x
    scratch[i] = value
    wait_for_all()
    step = cuda.blockDim.x // 2
    while step:
        if i < step:
            scratch[i] += scratch[i + step]
        cuda.syncthreads()
        step //= 2
    return scratch[0]


@cuda.jit
def everything(out, x, taken):
    scratch = cuda.shared.array(64, np.float32)
    meet = cuda.syncthreads
    i = cuda.grid(1)
    mine = x[i] + cuda.shfl_down_sync(0xFFFFFFFF, x[i], 1)
    total = 2 * sum_of_block(scratch, mine)
    meet()
    place = cuda.atomic.add(taken, 0, 1)
    out[place % out.size] += total  # a race
    scratch[cuda.threadIdx.x] -= cuda.syncthreads_count(i % 3)
    cuda.cg.this_grid().sync()
    cuda.atomic.max(out, 0, scratch[0])


class Recorder(engine.Observer):
    def __init__(self):
        self.events = []

    def access(self, array, offset, operation, thread, block, site):
        self.events.append((array.name, offset, operation, thread, block, site.line))

    def wait(self, what, thread, block, site):
        self.events.append((what, thread, block, site.line))


def ran(way, seed):
    """What `everything` did: its output and all its accesses and waits, in their order."""
    out, taken = np.zeros(5, np.float32), np.zeros(1, np.int32)
    x = np.random.default_rng(1).integers(0, 99, 128).astype(np.float32)
    with WAYS[way](), engine.schedule(seed), engine.observe(Recorder()) as recorder:
        everything[2, 64](out, x, taken)
    return out.tolist(), recorder.events


@pytest.mark.parametrize("seed", [None, engine.IN_STEP, 1, 2, 3])
def test_both_ways_run_threads_in_one_order(seed):
    by_stacks, by_generators = ran("stacks", seed), ran("generators", seed)
    assert len(by_stacks[1]) > 1000
    assert by_generators == by_stacks


def test_an_index_is_worked_out_once():
    @cuda.jit
    def take(out, taken):
        out[cuda.atomic.add(taken, 0, 1)] += 1

    out, taken = np.zeros(32, np.int32), np.zeros(1, np.int32)
    with fibres.by_generators(), engine.schedule(4):
        take[1, 32](out, taken)
    assert out.tolist() == [1] * 32
    assert taken[0] == 32


def test_only_what_may_wait_becomes_a_generator():
    @cuda.jit(device=True)
    def twice(x):
        return 2 * x

    @cuda.jit
    def plain(out):
        out[cuda.grid(1)] = twice(min(1, 2))

    with fibres.by_generators():
        assert not inspect.isgeneratorfunction(plain.function())
        assert inspect.isgeneratorfunction(everything.function())
        with engine.schedule(1):
            assert inspect.isgeneratorfunction(everything.function())


def test_who_cannot_be_put_aside_is_told():
    names = {"cuda": cuda}
    exec("def kernel(x):\n    cuda.syncthreads()\n    x[0] = 1\n", names)  # no source to rebuild
    x = np.zeros(1)
    kernel = cuda.jit(names["kernel"])
    kernel[1, 2](x)
    assert x[0] == 1
    with fibres.by_generators(), pytest.raises(engine.BarrierError, match="without greenlets"):
        kernel[1, 2](x)
