"""Compensated, pairwise and double sums keep what plain float32 sums lose."""

import numpy as np
import pytest
from numba import cuda

from course.kernels.reductions import sum_precise

LONG = 1 << 19  # elements; 4,096 a thread


@pytest.fixture(scope="module")
def ones_and_a_bit():
    return cuda.to_device(np.full(LONG, 1.1, np.float32))


@pytest.mark.parametrize("language", ["numba", "cuda_c"])
def test_errors(language, ones_and_a_bit):
    errors = {
        way: sum_precise.error(way, ones_and_a_bit, sum_precise.THREADS, language)
        for way in sum_precise.WAYS
    }
    assert errors["plainly"] > 1e-6
    for way in ("compensated", "pairwise", "in_double"):
        assert errors[way] < 1e-7, errors


@pytest.mark.parametrize("language", ["numba", "cuda_c"])
@pytest.mark.parametrize("way", sum_precise.WAYS)
def test_any_length(way, language):
    for n in (0, 1, 2, 127, 128, 129, 1025, 5000):
        x = np.random.default_rng(n).uniform(0, 1, n).astype(np.float32)
        total = sum_precise.total(way, cuda.to_device(x), 2 * sum_precise.THREADS, language)
        np.testing.assert_allclose(total, x.sum(dtype=np.float64), rtol=1e-6)
