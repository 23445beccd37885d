"""Kernels of several Python threads at once: what one of them asks for is no other one's."""

import contextlib
import ctypes
import linecache
import os
import pkgutil
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from tests.processes import completed
from utils.cpu import numba_cuda as engine
from utils.cpu.cuda_c.library import Library
from utils.cpu.numba_cuda import cuda, devices
from utils.cpu.numba_cuda.engine import Launch
from utils.files import ROOT


@cuda.jit
def wait_for_host(flags):
    flags[0] = 1
    while flags[1] == 0:
        pass


@cuda.jit
def fill(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = i


@contextlib.contextmanager
def running_kernel():
    """Another Python thread's kernel runs inside the `with`, and ends with it."""
    flags = cuda.mapped_array(2, np.int32)
    flags[:] = 0
    thread = threading.Thread(target=wait_for_host[1, 1], args=(flags,))
    thread.start()
    while not flags[0]:
        assert thread.is_alive()
        time.sleep(0.001)
    try:
        yield lambda: flags.__setitem__(1, 1)
    finally:
        flags[1] = 1
        thread.join()


def in_another_thread(function):
    """What the function returns, or raises, in a Python thread of its own."""
    outcome = []

    def run():
        try:
            outcome.append((function(), None))
        except Exception as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


# ---- Numba


class Names(engine.Observer):
    def __init__(self):
        self.launched = []
        self.choices = 0

    def branch(self, taken, thread, block, site):
        self.choices += site.filename == __file__ and "a > b" in linecache.getline(
            __file__, site.line
        )

    def launch(self, kernel, grid, block):
        self.launched.append(kernel)


def test_an_observer_hears_of_its_own_threads_launches_only():
    with engine.observe(Names()) as tool:
        in_another_thread(lambda: wait_for_host[1, 1](np.ones(2, np.int32)))
        fill[1, 4](np.zeros(4))
    assert tool.launched == ["fill"]


def test_allow_unwritten_holds_in_its_own_thread_only():
    @cuda.jit
    def read_nothing(out):
        tile = cuda.shared.array(4, np.float32)
        out[0] = tile[1]

    out = np.zeros(1, np.float32)
    with engine.allow_unwritten():
        with pytest.raises(engine.UninitializedError):
            in_another_thread(lambda: read_nothing[1, 1](out))
        read_nothing[1, 1](out)
    assert np.isnan(out[0])


def test_two_threads_may_be_within_one_device_at_once():
    devices.play(3)
    try:
        cuda.select_device(1)
        entered, left = threading.Event(), threading.Event()

        def other():
            cuda.select_device(2)
            with cuda.gpus[0]:
                entered.set()
                left.wait()
            return devices.current()

        found = []
        thread = threading.Thread(target=lambda: found.append(other()), daemon=True)
        with cuda.gpus[0]:
            thread.start()
            assert entered.wait(600)
        assert devices.current() == 1
        left.set()
        thread.join()
        assert found == [2]
    finally:
        devices.play(1)


def test_the_host_cannot_wait_in_another_threads_kernel():
    with running_kernel(), pytest.raises(RuntimeError, match="the host called it"):
        cuda.syncthreads()


def test_a_launch_without_cuda_jit_waits_for_its_turn():
    """As checks of exercises launch."""
    out = np.zeros(8)

    def count(array):
        cuda.syncthreads()
        array[cuda.threadIdx.x] = cuda.threadIdx.x + 1

    function = engine.cpu_jit(count).function()
    with running_kernel() as end:
        launch = Launch(function, [out], (1, 1, 1), (8, 1, 1), 0, "count")
        thread = threading.Thread(target=launch.run)
        thread.start()
        thread.join(0.05)
        assert not out.any()
        end()
        thread.join()
    np.testing.assert_array_equal(out, np.arange(8) + 1)


def test_a_reduction_does_not_report_to_another_threads_observer():
    flags = cuda.mapped_array(2, np.int32)
    flags[:] = 0
    tool = Names()

    def observed():
        with engine.observe(tool):
            wait_for_host[1, 1](flags)

    def larger(a, b):
        return a if a > b else b

    def reduce():
        found.append(cuda.reduce(larger)(np.arange(8.0)))

    found = []
    watched = threading.Thread(target=observed)
    watched.start()
    while not flags[0]:
        assert watched.is_alive()
        time.sleep(0.001)
    thread = threading.Thread(target=reduce)
    thread.start()
    thread.join(0.05)
    flags[1] = 1
    thread.join()
    watched.join()
    assert found == [7.0]
    assert tool.choices == 0


def test_a_launch_leaves_no_warning_filter_that_others_feel():
    """What a launch did to the filters may come back with another thread's catch_warnings."""
    with running_kernel() as end:
        inner = warnings.catch_warnings()
        inner.__enter__()
        end()
    fill[1, 4](np.zeros(4))
    inner.__exit__(None, None, None)
    everywhere = [each for each in warnings.filters if each[0] == "error" and each[3] is None]
    assert np.exceptions.ComplexWarning not in [category for _, _, category, _, _ in everywhere]


@pytest.fixture
def restless():
    """Python changes threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*functions):
    """Run all at once, each in a thread, and raise what the first of them raised."""
    errors = []
    start = threading.Barrier(len(functions))

    def run(function):
        start.wait()
        try:
            function()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_many_launches_with_unlike_settings(restless):
    @cuda.jit
    def sums(out):
        tile = cuda.shared.array(32, np.int64)
        i = cuda.threadIdx.x
        tile[i] = i
        cuda.syncthreads()
        out[i] = tile[31 - i] + cuda.atomic.add(out, 32, 1) * 0

    def check(setting):
        for _ in range(3):
            out = np.zeros(33, np.int64)
            with setting():
                sums[1, 32](out)
            np.testing.assert_array_equal(out, [*range(31, -1, -1), 32])

    tool = Names()
    together(
        lambda: check(contextlib.nullcontext),
        lambda: check(lambda: engine.schedule(3)),
        lambda: check(lambda: engine.observe(tool)),
        lambda: check(engine.allow_unwritten),
    )
    assert tool.launched == ["sums"] * 3


# ---- CUDA C

SPINS = r"""
__global__ void spin(volatile int *flags, int *ran) {
    flags[0] = 1;
    while (flags[1] == 0);
    ran[0] = N;
}
"""


@pytest.mark.usefixtures("no_collection")
def test_ctrl_c_is_pythons_again_after_two_libraries_launches(tmp_path):
    """Each takes Ctrl-C for itself while its kernel runs."""
    source = tmp_path / "spin.cu"
    source.write_text(SPINS)
    flags = np.zeros((2, 2), np.int32)
    ran = np.zeros((2, 1), np.int32)
    threads = []
    for i in (0, 1):
        library = Library(source, flags=[f"-DN={i + 1}"])
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in (flags[i], ran[i])]
        shape = (1, 1, 1)
        threads.append(
            threading.Thread(target=library.launch, args=("spin", shape, shape, 0, addresses))
        )
    threads[0].start()
    while not flags[0, 0]:
        assert threads[0].is_alive()
        time.sleep(0.001)
    threads[1].start()
    threads[1].join(0.1)
    flags[0, 1] = 1
    threads[0].join()
    flags[1, 1] = 1
    threads[1].join()
    assert ran.ravel().tolist() == [1, 2]
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)


# ---- Triton

TRITON = """
import sys, threading
from utils.cpu import triton as engine
engine.install()
import torch, triton
import triton.language as tl

@triton.jit
def scale(x, out, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

@triton.jit
def product(a, b, out, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))

def many(factor):
    x = torch.rand(50)
    for _ in range(8):
        out = torch.empty(50)
        scale[(4,)](x, out, 50, factor, 16)
        torch.testing.assert_close(out, x * factor)

def inside_tensor_core_dots():
    with engine.tensor_core_dots():
        entered.set()
        left.wait()

errors = []
def guarded(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:
        errors.append(error)

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=guarded, args=(many, factor)) for factor in range(1, 5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.setswitchinterval(5e-3)
print(errors)

entered, left = threading.Event(), threading.Event()
rounds = threading.Thread(target=inside_tensor_core_dots)
rounds.start()
entered.wait()
a, b = torch.rand(16, 16), torch.eye(16)
out = torch.empty(16, 16)
product[(1,)](a, b, out, 16)
left.set()
rounds.join()
print(torch.equal(out, a))
"""


@pytest.mark.nightly("by day kernels of Numba do")
def test_triton_kernels_of_several_threads_take_turns():
    pytest.importorskip("triton")
    done = completed(
        [sys.executable, "-c", TRITON],
        cwd=ROOT,
        timeout=600,
        env={**os.environ, "CUDA_COURSE_CPU": "1"},
    )
    assert done.stdout.split("\n") == ["[]", "True", ""], done.stderr


TURNS = ["numba_cuda.state._one_turn", "cuda_c.library.Library._turn", "triton.watch._turn"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", TURNS)
def test_a_process_forked_during_a_launch_can_launch(name):
    if name.startswith("triton"):
        pytest.importorskip("triton")
    lock = pkgutil.resolve_name(f"utils.cpu.{name}")
    held = threading.Event()

    def launch():
        with lock:
            held.set()
            time.sleep(0.1)

    thread = threading.Thread(target=launch)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        os._exit(0 if lock.acquire(timeout=1) else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
