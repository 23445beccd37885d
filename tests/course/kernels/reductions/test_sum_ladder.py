"""Every rung of the ladder of sums, in Numba and in CUDA C, gives the sum."""

import numpy as np
import pytest
from numba import cuda

from course.kernels.reductions import sum_ladder

SIZES = [0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 10_007]


def total(rung: str, language: str, values: np.ndarray) -> float:
    """The sum of `values` as a rung has it."""
    out = cuda.to_device(np.full(1, 123, np.float32))
    run = getattr(sum_ladder.RUNGS[rung], language)
    run(cuda.to_device(values), out)
    return float(out.copy_to_host()[0])


@pytest.mark.parametrize("language", ["numba", "cuda_c"])
@pytest.mark.parametrize("rung", sum_ladder.RUNGS)
def test_gives_the_sum(rung, language):
    values = np.random.default_rng(1)
    for n in SIZES:
        x = values.uniform(-1, 1, n).astype(np.float32)
        # Each of n additions may lose half a unit in the last place of a sum of at most n.
        tolerance = 1e-7 * max(n, 1) ** 1.5
        assert abs(total(rung, language, x) - x.sum(dtype=np.float64)) <= tolerance, n


@pytest.mark.parametrize("language", ["numba", "cuda_c"])
@pytest.mark.parametrize("rung", sum_ladder.RUNGS)
def test_infinities_and_nan(rung, language):
    x = np.ones(1000, np.float32)
    for specials in ([np.inf], [-np.inf], [np.nan], [np.inf, -np.inf]):
        x[500 : 500 + len(specials)] = specials
        with np.errstate(invalid="ignore"):
            wanted = x.sum()
        np.testing.assert_equal(total(rung, language, x), wanted)
