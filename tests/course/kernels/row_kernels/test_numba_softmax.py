"""Numba's softmax kernels: right for every length, for NaN and infinities as torch."""

import numpy as np
import pytest
import torch

from course.kernels.row_kernels import numba_softmax
from utils import check

INF, NAN = float("inf"), float("nan")
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
    row = [0.5, -1.0, 2.0, 88.0, -88.0] * 20
    rows = [
        row,
        [*row[:-1], INF],
        [*row[:-1], -INF],
        [-INF] * 99 + [1.0],
        [-INF] * 100,
        [NAN, *row[1:]],
        [*row[:50], NAN, *row[51:]],
    ]
    x = np.array(rows, np.float32)
    out = np.full_like(x, 7)
    kernel(100)[len(x), 64](out, x)
    np.testing.assert_allclose(out, expected(x), rtol=1e-5, atol=1e-30)
