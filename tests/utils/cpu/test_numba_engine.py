"""The CPU engine for Numba kernels: launches, mistakes, schedules, hooks, and standing in for
numba.cuda.
"""

import _thread
import math
import os
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from tests.processes import completed
from utils.cpu import numba_cuda as engine
from utils.cpu.numba_cuda import cuda, fibres, settings
from utils.cpu.numba_cuda.errors import CudaAPIError
from utils.files import ROOT


@cuda.jit
def fill(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = i


# ---- launches


@pytest.mark.parametrize(
    "grid, block, shared, reason",
    [
        (1, 1025, 0, "1,025 threads; 1,024 is the most"),
        (1, (32, 33), 0, "1,056 threads"),
        (1, (1, 1, 65), 0, "z can be 64 at most"),
        (0, 32, 0, "x must be at least 1"),
        ((1, 65536), 32, 0, "y can be 65,535 at most"),
        (1, (32, 0), 0, "y must be at least 1"),
        (1, 32, 227 * 1024 + 1, "bytes of dynamic shared memory"),
    ],
)
def test_launch_limits_are_a_gpus(grid, block, shared, reason):
    out = np.zeros(4)
    with pytest.raises(CudaAPIError, match=reason) as caught:
        fill[grid, block, 0, shared](out)
    assert caught.value.code == 1
    assert not out.any()


@pytest.mark.parametrize(
    "launch, error, words",
    [
        (lambda: fill[1, 32](), TypeError, "not enough arguments: expected 1, got 0"),
        (lambda: fill[1, 32](np.zeros(1), 2), TypeError, "too many arguments: expected 1, got 2"),
        (lambda: fill(np.zeros(1)), ValueError, "launch configuration was not specified"),
        (lambda: fill[1](np.zeros(1)), ValueError, "at least the griddim and blockdim"),
        (lambda: fill[1.5, 32](np.zeros(1)), TypeError, "griddim must be a sequence of integers"),
        (lambda: fill[(1, 1, 1, 1), 32](np.zeros(1)), ValueError, "sequence of 1, 2 or 3 integers"),
        (lambda: fill[1, 32]([1, 2]), TypeError, "'out': a kernel cannot take a list"),
        (lambda: fill[1, 32]("text"), TypeError, "'out': a kernel cannot take a str"),
        (lambda: fill[1, 32](np.zeros(8)[::2]), ValueError, "non-contiguous"),
        (lambda: fill[1, 32](np.array(["a"], object)), TypeError, "array of object"),
        (lambda: cuda.grid(1), RuntimeError, "inside kernels only"),
        (lambda: cuda.syncthreads(), RuntimeError, "inside kernels only"),
    ],
)
def test_wrong_launches_are_refused(launch, error, words):
    with pytest.raises(error, match=words):
        launch()


def test_a_kernel_returns_nothing():
    @cuda.jit
    def kernel(x):
        return x[0]

    with pytest.raises(TypeError, match="CUDA kernel must have void return type"):
        kernel[1, 1](np.zeros(1))


def test_a_signature_decides_what_is_accepted_and_cast():
    @cuda.jit("void(float32[:], int32)")
    def kernel(out, n):
        out[0] = n

    out = np.zeros(1, np.float32)
    kernel[1, 1](out, 3.9)
    assert out[0] == 3
    with pytest.raises(TypeError, match="No matching definition"):
        kernel[1, 1](np.zeros(1), 3)


def test_host_arrays_come_back_only_from_launches_that_end_well():
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        out[i] = 1

    out = np.zeros(4)
    with pytest.raises(engine.KernelError):
        kernel[1, 5](out)
    assert not out.any()


def test_globals_are_frozen_when_a_kernel_is_first_used():
    space = {"cuda": cuda, "FACTOR": 2}
    exec("def kernel(out):\n    out[0] = FACTOR\n", space)
    kernel = cuda.jit(space["kernel"])
    out = np.zeros(1)
    kernel[1, 1](out)
    space["FACTOR"] = 5
    kernel[1, 1](out)
    assert out[0] == 2


def test_launches_from_several_python_threads_take_turns():
    arrays = [np.zeros(300) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fill[3, 100], arrays))
    assert all(np.array_equal(array, np.arange(300)) for array in arrays)


def test_a_python_thread_may_launch_while_another_ones_kernel_runs():
    @cuda.jit
    def wait_for_host(flags):
        flags[0] = 1
        while flags[1] == 0:
            pass

    flags = cuda.mapped_array(2, np.int32)
    flags[:] = 0
    out = np.zeros(100)
    problems = []

    def second():
        try:
            fill[1, 128](out)
        except Exception as error:
            problems.append(error)

    waits = threading.Thread(target=wait_for_host[1, 1], args=(flags,))
    waits.start()
    while not flags[0]:
        time.sleep(0.001)
    launches = threading.Thread(target=second)
    launches.start()
    launches.join(0.2)  # a refusal would come at once
    flags[1] = 1
    waits.join()
    launches.join()
    assert not problems
    np.testing.assert_array_equal(out, np.arange(100))


# ---- mistakes


def test_an_error_names_array_index_thread_block_kernel_and_line():
    @cuda.jit
    def kernel(out):
        x, y = cuda.grid(2)
        out[y, x] = 1

    with pytest.raises(engine.KernelIndexError) as caught:
        kernel[(2, 1), (2, 3)](np.zeros((3, 3)))
    error = caught.value
    assert (error.thread, error.block, error.kernel) == ((1, 0, 0), (1, 0, 0), "kernel")
    assert error.filename == __file__ and error.code == "out[y, x] = 1"
    assert "index (0, 3) is outside 'out' of shape (3, 3) (axis 1 has 3)" in str(error)
    assert "thread (1,0,0) of block (1,0,0)" in str(error)
    assert isinstance(error, IndexError)
    assert [entry.name for entry in traceback.extract_tb(error.__traceback__)][-1] == "kernel"


def test_a_written_negative_index_is_the_last_element_and_a_computed_one_an_error():
    @cuda.jit
    def kernel(out, i, k):
        out[-1] = out[0, ...] if False else 7
        out[-k] = 5
        out[i] = 1

    out = np.zeros(3)
    kernel[1, 1](out, 0, 2)
    assert out.tolist() == [1, 5, 7]
    with pytest.raises(engine.KernelIndexError, match="index -1"):
        kernel[1, 1](out, -1, 2)
    with pytest.raises(engine.KernelIndexError, match="index -4"):
        kernel[1, 1](out, 0, 4)


def test_an_error_in_a_device_function_names_its_line():
    @cuda.jit(device=True)
    def put(out, i):
        out[i] = 1  # the line

    @cuda.jit
    def kernel(out):
        put(out, cuda.grid(1))

    with pytest.raises(engine.KernelIndexError) as caught:
        kernel[1, 4](np.zeros(2))
    assert caught.value.code == "out[i] = 1  # the line"


def test_device_memory_starts_with_values_that_nobody_expects():
    assert np.isnan(cuda.device_array(3, np.float32).copy_to_host()).all()
    assert (cuda.device_array(3, np.int32).copy_to_host() == -842150451).all()


def test_unwritten_elements_can_be_allowed_and_are_poison_then():
    @cuda.jit
    def kernel(out):
        s = cuda.shared.array(4, np.float32)
        out[0] = s[0]

    out = np.zeros(1)
    with pytest.raises(engine.UninitializedError):
        kernel[1, 1](out)
    with engine.allow_unwritten():
        kernel[1, 1](out)
    assert np.isnan(out[0])


def test_an_endless_loop_is_stopped_by_the_time_limit_at_its_line():
    @cuda.jit
    def kernel(out):
        while out[0] >= 0:
            out[0] += 1

    lines = "while out[0] >= 0:", "out[0] += 1"
    for seconds in (0.2, 2, 20):  # a busy machine may not be in the kernel yet
        with engine.time_limit(seconds), pytest.raises(engine.KernelTimeout) as caught:
            kernel[1, 1](np.zeros(1))
        if caught.value.code in lines:
            break
    assert caught.value.code in lines
    fill[1, 8](np.zeros(8))  # nothing is left behind


def test_a_time_limit_counts_what_a_launch_works_and_ends_what_sleeps():
    with engine.time_limit(0.2), settings.watchdog():
        time.sleep(0.6)  # as if a busy computer had given it nothing
    with engine.time_limit(0.02), pytest.raises(engine.KernelTimeout), settings.watchdog():
        for _ in range(60_000):
            time.sleep(0.01)


def test_a_launch_that_sleeps_after_work_is_ended_too(monkeypatch):
    now = SimpleNamespace(cpu=0.0, clock=0.0)
    monkeypatch.setattr(settings, "cpu_clock", lambda thread: lambda: now.cpu)
    monkeypatch.setattr(settings, "time", SimpleNamespace(monotonic=lambda: now.clock))
    left = settings.time_left(0, 10)
    now.cpu, now.clock = 9, 9
    assert left() == 1
    now.clock = 61
    assert left() == 1  # of this minute it worked nine seconds
    now.clock = 121
    assert left() == 1  # the next minute is not over
    now.clock = 122
    assert left() == 0


def test_a_timeout_that_is_lost_comes_again(monkeypatch):
    """Python drops what is raised while it tells others that it collects garbage."""
    monkeypatch.setattr(settings, "AGAIN", 0.5)
    end = time.monotonic() + 600
    with engine.time_limit(0.5), pytest.raises(engine.KernelTimeout), settings.watchdog():
        for swallowed in (True, False):
            try:
                while time.monotonic() < end:
                    pass
            except engine.KernelTimeout:
                if not swallowed:
                    raise


@pytest.mark.usefixtures("no_collection")
def test_an_endless_loop_is_stopped_by_the_keyboard():
    @cuda.jit
    def kernel(out):
        while True:
            out[0] = 1
            cuda.syncthreads()

    running = cuda.mapped_array(1)
    running[0] = 0

    def interrupt():
        while not running[0]:
            time.sleep(0.01)
        _thread.interrupt_main()

    keyboard = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        keyboard.start()
        kernel[1, 64](running)
    keyboard.join()
    out = np.zeros(8)
    fill[1, 8](out)
    assert out[7] == 7


def test_records_in_shared_memory():
    pair = np.dtype([("a", np.float32), ("b", np.int32)])

    @cuda.jit
    def kernel(out):
        s = cuda.shared.array(4, pair)
        t = cuda.threadIdx.x
        s[t].a, s[t]["b"] = t / 2, t
        cuda.syncthreads()
        out[t] = s[3 - t].a + s[3 - t].b

    out = np.zeros(4)
    kernel[1, 4](out)
    assert out.tolist() == [4.5, 3, 1.5, 0]


# ---- schedules: what races do


def run_with_seeds(kernel, launch, args, seeds=12):
    results = []
    for seed in range(seeds):
        arrays = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        with engine.schedule(seed):
            kernel[launch](*arrays)
        results.append(arrays[0].tolist())
    return results


def test_only_some_blocks_run_within_the_whole_grid():
    @cuda.jit
    def note(sizes, who):
        sizes[cuda.blockIdx.x] = cuda.gridsize(1)
        who[cuda.grid(1)] = cuda.blockIdx.x

    sizes, who = np.zeros(1000, np.int64), np.full(4000, -1)
    with settings.only_blocks([0, 7, 999]):
        note[1000, 4](sizes, who)
    assert np.flatnonzero(sizes).tolist() == [0, 7, 999]
    assert set(sizes[[0, 7, 999]]) == {4000}
    assert np.flatnonzero(who >= 0).tolist() == [0, 1, 2, 3, 28, 29, 30, 31, 3996, 3997, 3998, 3999]
    note[1000, 4](sizes, who)
    assert (who == np.arange(4000) // 4).all()  # all of them again


def test_a_racing_add_loses_updates_within_a_block_and_between_blocks():
    @cuda.jit
    def racing(out):
        out[0] += 1

    @cuda.jit
    def atomic(out):
        cuda.atomic.add(out, 0, 1)

    out = np.zeros(1, np.int32)
    for launch in ((1, 32), (16, 1)):
        assert any(
            result != [launch[0] * launch[1]] for result in run_with_seeds(racing, launch, [out])
        )
        assert all(
            result == [launch[0] * launch[1]] for result in run_with_seeds(atomic, launch, [out])
        )


def test_lanes_apart_are_active_in_two_parts():
    @cuda.jit
    def who_is_here(masks):
        masks[cuda.threadIdx.x] = cuda.activemask()

    masks = np.zeros(32, np.uint32)
    who_is_here[1, 32](masks)
    assert set(masks.tolist()) == {0xFFFFFFFF}
    with engine.lanes_apart():
        who_is_here[1, 32](masks)
    assert len(set(masks.tolist())) == 2
    assert sum(set(masks.tolist())) == 0xFFFFFFFF
    assert all(int(mask) >> lane & 1 for lane, mask in enumerate(masks))


def test_a_missing_second_barrier_shows_under_some_schedule():
    @cuda.jit
    def shift_twice(x):
        s = cuda.shared.array(32, np.int64)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        left = s[(t + 1) % 32]
        s[t] = left  # a barrier is missing before this line
        cuda.syncthreads()
        x[t] = s[(t + 1) % 32]

    right = np.roll(np.arange(32), -2).tolist()
    assert any(result != right for result in run_with_seeds(shift_twice, (1, 32), [np.arange(32)]))


@cuda.jit
def matmul_without_second_barrier(c, a, b):
    tile_a = cuda.shared.array((8, 8), np.float32)
    tile_b = cuda.shared.array((8, 8), np.float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for m in range(2):
        tile_a[ty, tx] = a[y, m * 8 + tx]
        tile_b[ty, tx] = b[m * 8 + ty, x]
        cuda.syncthreads()
        for k in range(8):
            total += tile_a[ty, k] * tile_b[k, tx]
    c[y, x] = total


@cuda.jit
def histogram_without_atomics(out, x):
    i = cuda.grid(1)
    out[x[i]] += 1


@cuda.jit
def private_histogram_flushed_early(out, x):
    bins = cuda.shared.array(8, np.int32)
    t = cuda.threadIdx.x
    if t < 8:
        bins[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(bins, x[cuda.grid(1)], 1)
    if t < 8:
        cuda.atomic.add(out, t, bins[t])


@cuda.jit
def scan_in_one_buffer(x):
    s = cuda.shared.array(32, np.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < 32:
        if t >= step:
            s[t] += s[t - step]
        cuda.syncthreads()
        step *= 2
    x[t] = s[t]


@cuda.jit
def stencil_in_place(x):
    i = cuda.grid(1)
    if 0 < i < x.size - 1:
        x[i] = x[i - 1] + x[i + 1]


A, B = (np.random.default_rng(n).integers(0, 5, (16, 16)).astype(np.float32) for n in (1, 2))
VALUES = np.random.default_rng(3).integers(0, 8, 256)
LINE = np.arange(64.0)


@pytest.mark.parametrize(
    "kernel, launch, args, right",
    [
        (matmul_without_second_barrier, ((2, 2), (8, 8)), [np.zeros_like(A), A, B], A @ B),
        (histogram_without_atomics, (8, 32), [np.zeros(8, np.int32), VALUES], np.bincount(VALUES)),
        (
            private_histogram_flushed_early,
            (8, 32),
            [np.zeros(8, np.int32), VALUES],
            np.bincount(VALUES),
        ),
        (scan_in_one_buffer, (1, 32), [np.arange(32, dtype=np.int32)], np.cumsum(np.arange(32))),
        (stencil_in_place, (2, 32), [LINE], np.concatenate([[0], LINE[:-2] + LINE[2:], [63]])),
    ],
)
def test_races_give_wrong_results_under_most_schedules(kernel, launch, args, right):
    results = run_with_seeds(kernel, launch, args, seeds=6)
    assert sum(result != right.tolist() for result in results) >= 4


def test_the_same_seed_gives_the_same_run_and_no_seed_runs_in_order():
    @cuda.jit
    def order(out, counter):
        i = cuda.grid(1)
        out[cuda.atomic.add(counter, 0, 1)] = i

    def run(seed):
        out = np.zeros(64, np.int64)
        with engine.schedule(seed):
            order[4, 16](out, np.zeros(1, np.int64))
        return out.tolist()

    assert run(None) == list(range(64))
    assert run(5) == run(5)
    assert len({tuple(run(seed)) for seed in range(6)}) > 1
    assert sorted(run(3)) == list(range(64))


def test_in_step_whoever_comes_last_comes_last_each_time():
    @cuda.jit
    def take_a_number(tries, counter):
        i = cuda.grid(1)
        seen = 0
        while True:
            tries[i] += 1
            before = cuda.atomic.cas(counter, 0, seen, seen + 1)
            if before == seen:
                return
            seen = before

    tries = np.zeros(40, np.int64)
    with engine.schedule(engine.IN_STEP):
        take_a_number[1, 40](tries, np.zeros(1, np.int64))
    assert tries.tolist() == list(range(1, 41))


def test_two_atomic_operations_are_not_one():
    @cuda.jit
    def count(counter):
        seen = cuda.atomic.add(counter, 0, 0)
        cuda.atomic.exch(counter, 0, seen + 1)

    for seed in (1, 2, engine.IN_STEP):
        counter = np.zeros(1, np.int64)
        with engine.schedule(seed):
            count[2, 32](counter)
        assert 0 < counter[0] < 64


# ---- hooks


class Recorder(engine.Observer):
    def __init__(self):
        self.events = []

    def launch(self, kernel, grid, block):
        self.events.append(("launch", kernel, grid, block))

    def access(self, array, offset, operation, thread, block, site):
        self.events.append((operation, array.name, array.space, offset, thread, block, site.line))

    def wait(self, what, thread, block, site):
        self.events.append(("wait", what, thread, block, site.line))

    def line(self, thread, block, site):
        self.events.append(("line", thread, block, site.line))

    def branch(self, taken, thread, block, site):
        self.events.append(("branch", taken, thread, block, site.line))

    def finish(self, error):
        self.events.append(("finish", error))


@cuda.jit
def observed(x, out):
    s = cuda.shared.array((2, 4), np.float32)
    t = cuda.threadIdx.x
    s[1, t] = x[t]
    cuda.syncthreads()
    if t == 0:
        cuda.atomic.add(out, 1, s[1, 3])


def test_an_observer_sees_accesses_barriers_lines_and_branches():
    first = observed.py_func.__code__.co_firstlineno + 1  # the line of def
    x, out = np.arange(4, dtype=np.float32), np.zeros(2)
    with engine.observe(Recorder()) as recorder:
        observed[1, 4](x, out)
    events = recorder.events
    assert out[1] == 3
    assert events[0] == ("launch", "observed", (1, 1, 1), (4, 1, 1)) and events[-1] == (
        "finish",
        None,
    )
    mine = [event for event in events if event[0] in ("read", "write", "atomic") and event[4] == 2]
    assert mine == [
        ("read", "x", "global", 8, 2, 0, first + 3),
        ("write", "s", "shared", 24, 2, 0, first + 3),
    ]
    assert ("read", "s", "shared", 28, 0, 0, first + 6) in events
    assert ("atomic", "out", "global", 8, 0, 0, first + 6) in events
    assert events.count(("wait", "syncthreads()", 3, 0, first + 4)) == 1
    assert [event[1:3] for event in events if event[0] == "branch"] == [
        (True, 0),
        (False, 1),
        (False, 2),
        (False, 3),
    ]
    assert [event[3] for event in events if event[0] == "line" and event[1] == 1] == [
        first + n for n in (1, 2, 3, 4, 5)
    ]


def test_parts_of_an_array_report_offsets_in_the_whole():
    @cuda.jit
    def kernel(a):
        a[1:, 2][1] = 5.0

    with engine.observe(Recorder()) as recorder:
        kernel[1, 1](np.zeros((4, 3)))
    assert ("write", "a", "global", (2 * 3 + 2) * 8, 0, 0) in [
        event[:6] for event in recorder.events
    ]


def test_an_observer_hears_of_a_failed_launch():
    with engine.observe(Recorder()) as recorder, pytest.raises(engine.KernelError):
        observed[1, 4](np.zeros(2, np.float32), np.zeros(2))
    assert isinstance(recorder.events[-1][1], engine.KernelIndexError)


def test_the_next_launch_takes_over_the_workers_and_nothing_else():
    @cuda.jit
    def turn(x):
        i = cuda.threadIdx.x
        value = x[i]
        cuda.syncthreads()
        x[cuda.blockDim.x - 1 - i] = value

    def turned(n):
        x = np.arange(n)
        turn[1, n](x)
        assert x.tolist() == list(range(n))[::-1]

    recorder = Recorder()
    with engine.observe(recorder):
        turned(40)
    workers, heard = set(fibres.rested.workers), len(recorder.events)
    assert len(workers) >= 40
    turned(40)
    assert set(fibres.rested.workers) == workers
    assert len(recorder.events) == heard
    with pytest.raises(engine.KernelError):
        turn[1, 41](np.arange(40))
    turned(40)
    assert all(worker.gr_context is None for worker in fibres.rested.workers)


# ---- host side


def test_events_tell_host_time_between_records():
    start, end = cuda.event(), cuda.event()
    before = time.perf_counter()
    start.record()
    time.sleep(0.02)
    end.record()
    around = 1e3 * (time.perf_counter() - before)
    assert 20 <= cuda.event_elapsed_time(start, end) <= around
    with pytest.raises(CudaAPIError):
        cuda.event_elapsed_time(start, cuda.event())


def test_device_arrays_refuse_what_numba_refuses():
    device = cuda.to_device(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="incompatible shape"):
        device.copy_to_host(np.zeros((3, 2)))
    with pytest.raises(TypeError, match="incompatible dtype"):
        device.copy_to_host(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match="non-contiguous"):
        cuda.to_device(np.zeros(8)[::2])
    with pytest.raises(NotImplementedError, match="requires copying"):
        device[:, :2].reshape(4)
    with pytest.raises(TypeError, match="cuda array interface"):
        cuda.as_cuda_array(np.zeros(3))


def test_numbas_successor_gets_the_engine_too():
    code = (
        "from utils.cpu import numba_cuda; numba_cuda.install()\n"
        "import numba_cuda_mlir.cuda.random\n"
        "from numba import cuda; from numba_cuda_mlir import cuda as successor\n"
        "assert cuda is successor and cuda.jit is successor.jit\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_torch_tensors_are_used_in_place():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(8, dtype=torch.float16)
    fill[1, 8](tensor)
    assert tensor.tolist() == list(range(8))
    with pytest.raises(RuntimeError, match="requires grad"):
        fill[1, 8](torch.zeros(8, requires_grad=True))
    with pytest.raises(TypeError, match="bfloat16"):
        fill[1, 8](torch.zeros(8, dtype=torch.bfloat16))


def test_normal_random_numbers_are_normal_and_uniform_ones_the_same_for_a_seed():
    random = cuda.random

    @cuda.jit
    def draw(states, out):
        i = cuda.grid(1)
        for k in range(out.shape[1]):
            out[i, k] = random.xoroshiro128p_normal_float32(states, i)

    out = np.zeros((64, 50), np.float32)
    draw[1, 64](random.create_xoroshiro128p_states(64, seed=3), out)
    assert abs(out.mean()) < 4 / math.sqrt(out.size) and abs(out.std() - 1) < 0.05
    again = np.zeros_like(out)
    draw[1, 64](random.create_xoroshiro128p_states(64, seed=3), again)
    assert np.array_equal(out, again)


# ---- standing in for numba.cuda


def python(source, **environment):
    done = completed(
        [sys.executable, "-c", source], cwd=ROOT, timeout=600, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_install_stands_in_for_numba_cuda_and_its_parts_without_importing_numba():
    assert python(
        """
import sys
from utils.cpu import numba_cuda
numba_cuda.install()
print("numba" in sys.modules)
import numba
from numba import cuda
import numba.cuda as also
from numba.cuda.random import create_xoroshiro128p_states
from numba.cuda.cudadrv.driver import CudaAPIError
from numba.cuda.cudadrv.devicearray import DeviceNDArray
import numba.cuda.cg
print(cuda is also is numba.cuda, cuda.implementation, isinstance(cuda.to_device([1.0]), \
DeviceNDArray))
print(any(name.startswith("numba_cuda") for name in sys.modules))
""",
        CUDA_COURSE_CPU="1",
    ) == ["False", "True", "CPU", "engine", "True", "False"]


def test_cpu_jit_runs_a_kernel_made_with_the_real_numba_cuda(tmp_path):
    pytest.importorskip("numba_cuda")
    file = tmp_path / "program.py"
    file.write_text("""
import warnings
warnings.simplefilter("ignore")
import numba
from numba import cuda
from numba.cuda import laneid, shared, syncthreads
import numpy as np

@cuda.jit(device=True)
def twice(x):
    return 2 * x

@cuda.jit
def kernel(out):
    s = shared.array(32, numba.int32)
    t = cuda.threadIdx.x
    s[t] = twice(laneid)
    syncthreads()
    cuda.atomic.add(out, 0, s[31 - t])

from utils.cpu import numba_cuda
out = np.zeros(1, np.int64)
numba_cuda.cpu_jit(kernel)[1, 32](out)
print(type(kernel).__name__, out[0], cuda.__name__)
""")
    done = completed(
        [sys.executable, str(file)], timeout=600, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.stdout.split() == ["CUDADispatcher", "992", "numba.cuda"], done.stderr


def test_device_memory_that_something_has_written_may_be_read():
    @cuda.jit
    def shift(out, x):
        i = cuda.grid(1)
        x[i] = i
        out[i] = x[i] + 1

    memory = cuda.device_array(16, np.int32)
    shift[1, 8](memory[8:], memory[:8])  # two views of one array
    shift[1, 8](memory[:8], memory[:8])
    same = memory[4:12]
    shift[1, 8](same, same)
    assert memory.copy_to_host()[4:12].tolist() == list(range(1, 9))


def test_a_half_becomes_the_nearest_integer():
    @cuda.jit
    def convert(out, x):
        i = cuda.grid(1)
        out[i] = x[i]

    out = np.zeros(4, np.int32)
    halves = np.array([0.5, 1.5, 2.75, -7.5], np.float16)
    convert[1, 4](out, halves)
    assert out.tolist() == [0, 2, 3, -8]
    convert[1, 4](out, halves.astype(np.float32))
    assert out.tolist() == [0, 1, 2, -7]


def test_shapes_are_constants_where_numba_cuda_takes_them_for_such():
    sizes = (4, 8)
    width = 2 * sizes[0]

    @cuda.jit
    def kernel(out):
        length = width
        a = cuda.shared.array(length, np.int32)
        b = cuda.shared.array((width, sizes[1], 2 * 2), np.int32)
        c = cuda.local.array(shape=sizes[0], dtype=np.int32)
        d = cuda.shared.array(sizes, np.int32)
        out[0] = a.size + b.size + c.size + d.size

    out = np.zeros(1, np.int32)
    kernel[1, 1](out)
    assert out[0] == 8 + 8 * 8 * 4 + 4 + 32
