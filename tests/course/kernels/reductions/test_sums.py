"""The fast sum and the other reductions give what NumPy gives, in any length."""

import numpy as np
import pytest
import torch

from course.kernels.reductions import sums

SIZES = [0, 1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 129, 255, 257, 511, 513, 1023, 1024, 1025, 9_999]
SHAPE = sums.Shape(64, 2, 2)


def reduced(operation, a, b=None):
    """The result of a reduction of NumPy arrays, as a float or as several."""
    reduction = sums.Reduction(operation, len(a), SHAPE)
    result = reduction(torch.from_numpy(a), None if b is None else torch.from_numpy(b))
    return result.tolist() if result.numel() > 1 else result.item()


@pytest.mark.parametrize("n", SIZES)
def test_fast_sum(n):
    x = np.random.default_rng(n).uniform(0.5, 1.5, n).astype(np.float32)
    total, out = sums.Sum(n, SHAPE), torch.full((1,), -7.0)
    for _ in range(2):
        total(torch.from_numpy(x), out)
        np.testing.assert_allclose(out.item(), x.sum(dtype=np.float64), rtol=2e-7)


@pytest.mark.parametrize("n", SIZES)
def test_reductions(n):
    random = np.random.default_rng(n)
    a, b = random.standard_normal((2, n)).astype(np.float32)
    exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
    close = {"rtol": 1e-6, "atol": 1e-6 * max(n, 1)}
    np.testing.assert_allclose(reduced("sum", a), exact_a.sum(), **close)
    np.testing.assert_allclose(reduced("sum_of_squares", a), (exact_a**2).sum(), **close)
    np.testing.assert_allclose(reduced("dot", a, b), exact_a @ exact_b, **close)
    if n == 0:
        for operation in ("max", "argmax", "moments"):
            with pytest.raises(ValueError, match="no elements"):
                reduced(operation, a)
        return
    assert reduced("max", a) == a.max()
    assert reduced("argmax", a) == a.argmax()
    moments = reduced("moments", a + np.float32(1000))
    exact = (a + np.float32(1000)).astype(np.float64)
    # A mean of floats near 1000 is off by up to 3e-5, and the variance with it.
    np.testing.assert_allclose(moments, [exact.mean(), exact.var()], rtol=2e-5, atol=1e-6)


def test_argmax_gives_the_first_of_equal_values():
    x = np.zeros(3000, np.float32)
    x[[700, 1500, 2999]] = 5
    assert reduced("argmax", x) == 700
    x[:] = -np.inf
    assert reduced("argmax", x) == 0


@pytest.mark.parametrize("specials", [[np.inf], [-np.inf], [np.nan], [np.inf, -np.inf, np.nan]])
def test_infinities_and_nan(specials):
    x = np.ones(3000, np.float32)
    x[1000 : 1000 + len(specials)] = specials
    with np.errstate(invalid="ignore"):
        np.testing.assert_equal(reduced("sum", x), float(x.sum()))
        np.testing.assert_equal(reduced("max", x), float(x.max()))
        np.testing.assert_equal(reduced("argmax", x), int(x.argmax()))
        np.testing.assert_equal(reduced("moments", x), [float(x.mean()), float(x.var())])
