"""The reductions in Numba give what NumPy gives."""

import numpy as np
import pytest
from numba import cuda

from course.kernels.reductions import reductions

SIZES = [1, 2, 3, 31, 33, 255, 256, 257, 1025, 5000]


@pytest.mark.parametrize("n", SIZES)
def test_as_numpy_has_them(n):
    random = np.random.default_rng(n)
    a, b = random.standard_normal((2, n)).astype(np.float32)
    a += np.float32(1000)
    on_device, other = cuda.to_device(a), cuda.to_device(b)
    exact, exact_b = a.astype(np.float64), b.astype(np.float64)
    assert reductions.maximum(on_device) == a.max()
    assert reductions.argmax(on_device) == a.argmax()
    mean, variance = reductions.mean_and_variance(on_device)
    np.testing.assert_allclose([mean, variance], [exact.mean(), exact.var()], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(reductions.dot(on_device, other), exact @ exact_b, rtol=1e-9)
    np.testing.assert_allclose(reductions.norm(on_device), np.linalg.norm(exact), rtol=1e-12)


def test_of_nothing():
    nothing = cuda.to_device(np.empty(0, np.float32))
    for reduction in (reductions.maximum, reductions.argmax, reductions.mean_and_variance):
        with pytest.raises(ValueError, match="no elements"):
            reduction(nothing)
    assert reductions.dot(nothing, nothing) == 0


def test_argmax_gives_the_first_of_equal_values():
    x = np.zeros(3000, np.float32)
    x[[700, 1500, 2999]] = 5
    assert reductions.argmax(cuda.to_device(x)) == 700
    x[:] = -np.inf
    assert reductions.argmax(cuda.to_device(x)) == 0


@pytest.mark.parametrize("specials", [[np.inf], [-np.inf], [np.nan], [np.inf, np.nan, np.nan]])
def test_infinities_and_nan(specials):
    x = np.ones(3000, np.float32)
    x[1000 : 1000 + len(specials)] = specials
    on_device = cuda.to_device(x)
    np.testing.assert_equal(reductions.maximum(on_device), float(x.max()))
    assert reductions.argmax(on_device) == x.argmax()
