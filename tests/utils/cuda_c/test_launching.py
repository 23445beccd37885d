"""What a launch hands to the driver, which a function of the test plays."""

import ctypes
import struct

import numpy as np
import pytest
import torch

from utils.cuda_c.launching import ARGUMENTS_AT, CONFIG, SLOT, Arguments, Launcher, configuration
from utils.cuda_c.signature import kernels_in

SOURCE = """
__global__ void plain(float* out, const __nv_bfloat16* a, int n, float s, long long m, half h) {}
__global__ void strange(float* out, Particle p) {}
"""
HANDLE = 4711


class Driver:
    """Keeps what cuLaunchKernelEx would read."""

    def __init__(self, formats=""):
        self.formats = formats

    def __call__(self, config, kernel, arguments, extra):
        assert kernel == HANDLE and extra is None
        self.config = struct.unpack("@" + CONFIG, ctypes.string_at(config, ARGUMENTS_AT))
        places = (ctypes.c_void_p * len(self.formats)).from_address(arguments)
        self.values = [
            struct.unpack(code, ctypes.string_at(place, struct.calcsize(code)))[0]
            for code, place in zip(self.formats, places, strict=True)
        ]
        return 0


def parameters(name):
    return kernels_in(SOURCE)[name].parameters


def test_the_driver_finds_configuration_and_arguments():
    codes = Arguments(parameters("plain")).codes
    driver = Driver("".join(codes))
    launch = Launcher(HANDLE, codes, driver)
    given = [2**40 + 16, 2**41, -5, 0.5, -(2**40), 1.5]
    assert launch(configuration((7, 2, 3), (32, 4, 1), 1024, 99), given) == 0
    assert driver.config == (7, 2, 3, 32, 4, 1, 1024, 99, 0, 0)
    assert driver.values == given


def test_each_argument_is_aligned():
    assert ARGUMENTS_AT % SLOT == 0


def test_numbers_that_do_not_fit_are_refused_before_the_launch():
    codes = Arguments(parameters("plain")).codes
    launch = Launcher(HANDLE, codes, lambda *_: pytest.fail("launched"))
    for n, value in ((2, 2**31), (2, 0.5), (5, 1e6)):
        given = [0, 0, 1, 1.0, 1, 1.0]
        given[n] = value
        with pytest.raises((struct.error, OverflowError)):
            launch(configuration((1, 1, 1), (1, 1, 1), 0, 0), given)


class OnGpu(torch.Tensor):
    """A tensor that says it lies on a GPU."""

    is_cuda = True


def on_gpu(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype).as_subclass(OnGpu)


def test_usual_arguments_become_numbers():
    out, a = on_gpu(8), on_gpu(8, dtype=torch.bfloat16)
    values = Arguments(parameters("plain")).values((out, a, 8, 2.0, 1, 0.5))
    assert values == [out.data_ptr(), a.data_ptr(), 8, 2.0, 1, 0.5]
    assert Arguments(parameters("plain")).values((None, a, 8, 2, 1, 0))[0] == 0


@pytest.mark.parametrize(
    "out",
    [
        torch.zeros(8),  # not on a GPU
        on_gpu(8, dtype=torch.float64),
        on_gpu(8, 8).T,
        np.zeros(8, np.float32),
        [1.0],
        7,
    ],
)
def test_unusual_arrays_are_left_to_those_who_look_closer(out):
    a = on_gpu(8, dtype=torch.bfloat16)
    assert Arguments(parameters("plain")).values((out, a, 8, 2.0, 1, 0.5)) is None


@pytest.mark.parametrize("n", [np.int32(8), True, "8", torch.tensor(8)])
def test_unusual_numbers_are_left_to_those_who_look_closer(n):
    a = on_gpu(8, dtype=torch.bfloat16)
    assert Arguments(parameters("plain")).values((None, a, n, 2.0, 1, 0.5)) is None


def test_a_kernel_that_takes_a_struct_has_no_quick_way():
    assert Arguments(parameters("plain")).known
    assert not Arguments(parameters("strange")).known
