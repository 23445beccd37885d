"""Numba's softmax kernels: right for every length, for NaN and infinities as torch."""

import numpy as np
import pytest
import torch

from course.kernels.row_kernels import numba_softmax
from tests.course.kernels.row_kernels.expected import SPECIAL
from utils import check

KERNELS = {
    "three reads": lambda columns: numba_softmax.three_reads,
    "online": lambda columns: numba_softmax.online,
    "one read": lambda columns: numba_softmax.one_read(columns, 64),
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def expected(x):
    return torch.from_numpy(x).double().softmax(-1).numpy()


@pytest.mark.parametrize("columns", [1, 31, 64, 127, 300])
def test_lengths(kernel, columns):
    x = np.random.default_rng(0).normal(size=(3, columns)).astype(np.float32)
    out = check.poison(x.shape)
    kernel(columns)[3, 64](out, x)
    check.close(out, expected(x), ops=columns, quiet=True)


def test_special_values(kernel):
    x = np.array(SPECIAL, np.float32)
    out = np.full_like(x, 7)
    kernel(100)[len(x), 64](out, x)
    np.testing.assert_allclose(out, expected(x), rtol=1e-5, atol=1e-30)
