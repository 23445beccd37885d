"""Several devices on the CPU engine for Numba: which is current, whose memory, who may reach it."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from utils.cpu.numba_cuda import cuda, devices
from utils.cpu.numba_cuda.errors import CudaAPIError, KernelError
from utils.files import ROOT


@cuda.jit
def add(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] += a[i]


@cuda.jit
def sizes(out, a):
    if cuda.grid(1) == 0:
        out[0] = a.size


@cuda.jit
def add_up(total, a):
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(total, 0, a[i])


@pytest.fixture(params=[2, 4], ids=["two", "four"], autouse=True)
def count(request):
    devices.play(request.param)
    yield request.param
    devices.play(1)


def ones(device, n=100):
    with cuda.gpus[device]:
        return cuda.to_device(np.ones(n))


def permit(device, owner):
    with cuda.gpus[device]:
        peer = cuda.gpus[owner].get_primary_context()
        cuda.current_context().enable_peer_access(peer.handle)


def test_the_current_device_is_the_threads(count):
    assert len(cuda.gpus) == count and [gpu.id for gpu in cuda.gpus] == list(range(count))
    cuda.select_device(1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(cuda.get_current_device().id))
    thread.start()
    thread.join()
    assert seen == [0] and cuda.gpus.current.id == 1
    with cuda.gpus[0]:
        assert cuda.current_context().device.id == 0
    assert cuda.get_current_device().id == 1


def test_no_such_device(count):
    for call in (cuda.select_device, lambda n: cuda.current_context(0).can_access_peer(n)):
        with pytest.raises(CudaAPIError, match=f"no device {count}") as caught:
            call(count)
        assert caught.value.code == 101
    with pytest.raises(IndexError):
        cuda.gpus[count]


def test_a_kernel_reaches_its_own_memory_only():
    mine, theirs = ones(0), ones(1)
    with pytest.raises(KernelError, match="device 0 uses 'a', memory of device 1") as caught:
        add[2, 64](mine, theirs)
    assert caught.value.code == "out[i] += a[i]"
    with pytest.raises(KernelError, match="device 1 uses 'out', memory of device 0"):
        with cuda.gpus[1]:
            add[2, 64](mine, theirs)
    with pytest.raises(KernelError, match="memory of device 1"):
        add_up[2, 64](theirs[:1], mine)


def test_parts_of_an_array_are_where_it_is():
    mine, theirs = ones(0), ones(1)
    for part in (theirs[10:], theirs.reshape(10, 10).ravel(), theirs.view(np.float64)):
        with pytest.raises(KernelError, match="memory of device 1"):
            add[2, 64](mine[: part.size], part)


def test_with_permission_it_reaches_the_others_too():
    mine, theirs = ones(0), ones(1)
    permit(0, 1)
    add[2, 64](mine, theirs)
    assert (mine.copy_to_host() == 2).all()
    with cuda.gpus[1], pytest.raises(KernelError, match="memory of device 0"):
        add[2, 64](theirs, mine)  # the other way needs a permission of its own
    with pytest.raises(CudaAPIError, match="ALREADY_ENABLED"):
        permit(0, 1)
    with pytest.raises(CudaAPIError, match="INVALID_DEVICE"):
        permit(1, 1)


def test_an_array_that_is_handed_over_and_not_touched_is_right():
    mine, theirs = ones(0), ones(1)
    sizes[1, 32](mine, theirs)
    assert mine[0] == 100


def test_copies_go_from_any_device_to_any(count):
    start = np.random.default_rng(3).random(1000)
    with cuda.gpus[0]:
        array = cuda.to_device(start)
    for device in range(1, count):
        with cuda.gpus[device]:
            there = cuda.device_array_like(array)
            there.copy_to_device(array)
            add[8, 128](there, there)
        array = there
    np.testing.assert_array_equal(array.copy_to_host(), start * 2.0 ** (count - 1))


def test_memory_of_the_host_is_everyones():
    shared = cuda.managed_array(100)
    shared[:] = 1
    for device in (0, 1):
        with cuda.gpus[device]:
            add[2, 64](shared, ones(device))
    assert (shared == 3).all()


def test_a_stream_of_another_device():
    stream = cuda.stream()
    with cuda.gpus[1]:
        theirs = cuda.to_device(np.ones(100))
        with pytest.raises(CudaAPIError, match="the stream is of device 0") as caught:
            add[2, 64, stream](theirs, theirs)
        add[2, 64, cuda.stream()](theirs, theirs)
    assert caught.value.code == 400 and theirs[0] == 2


def test_the_environment_says_how_many():
    program = "from utils.cpu.numba_cuda import cuda; print(len(cuda.gpus))"
    for setting, expected in ((None, "1"), ("3", "3")):
        environment = {k: v for k, v in os.environ.items() if k != devices.VARIABLE}
        if setting:
            environment[devices.VARIABLE] = setting
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True
        )
        assert done.stdout.decode().strip() == expected
