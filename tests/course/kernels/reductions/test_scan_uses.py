"""What is built on running sums gives what NumPy gives."""

import numpy as np
import pytest

from course.kernels.reductions import scan_uses

SIZES = [0, 1, 2, 31, 33, 255, 256, 257, 1025, 9_001]
MANY = 1000  # numbers, of which one pattern will do
languages = pytest.mark.parametrize("language", ["numba", "cuda_c"])


@languages
def test_compact(language):
    for n in SIZES:
        x = np.random.default_rng(n).uniform(0, 1, n).astype(np.float32)
        for threshold in (-1, 0.5, 0.99, 2):
            kept = scan_uses.compact(x, threshold, language)
            np.testing.assert_array_equal(kept, x[x > threshold])


@languages
def test_run_lengths(language):
    for n in SIZES:
        x = np.random.default_rng(n).integers(0, 3, n).astype(np.int32)
        values, lengths = scan_uses.run_lengths(x, language)
        np.testing.assert_array_equal(np.repeat(values, lengths), x)
        assert (np.diff(values) != 0).all()


@languages
def test_row_offsets(language):
    for n in SIZES:
        rows = np.sort(np.random.default_rng(n).integers(0, 500, n)).astype(np.int32)
        offsets = scan_uses.row_offsets(rows, 500, language)
        np.testing.assert_array_equal(offsets, np.searchsorted(rows, np.arange(501)))


@languages
def test_segmented_sums(language):
    for n in SIZES:
        random = np.random.default_rng(n)
        x = random.uniform(0, 1, n).astype(np.float32)
        for share in (0.0, 0.001, 0.1, 1.0) if n < MANY else (0.001,):
            where = (random.uniform(0, 1, n) < share).astype(np.int32)
            sums = scan_uses.segmented_sums(x, where, language)
            cuts = np.flatnonzero(where)
            wanted = [np.cumsum(part, dtype=np.float64) for part in np.split(x, cuts)]
            np.testing.assert_allclose(sums, np.concatenate(wanted), rtol=1e-5)
