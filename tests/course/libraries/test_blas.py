"""The product with cuBLAS's rules: right for every operation, and refused where cuBLAS refuses."""

import itertools

import numpy as np
import pytest

from course.libraries import blas

POISON = -(10**9)


def overlapping(a, step):
    """Six elements a row, the next row `step` elements further on: they overlap."""
    return np.lib.stride_tricks.sliding_window_view(a.ravel(), 6)[: 5 * step : step]


VIEWS = {
    "rows": lambda a: a,
    "columns": lambda a: a.T,
    "columns of a": lambda a: a[:, 1:4],
    "every second row": lambda a: a[::2],
    "every second column": lambda a: a[:, ::2],
    "columns of a, turned": lambda a: a[:, 1:4].T,
    "backwards": lambda a: a[::-1],
    "one row again and again": lambda a: np.broadcast_to(a[0], a.shape),
    "windows": lambda a: np.lib.stride_tricks.sliding_window_view(a.ravel(), 4)[:5],
    "a field of records": lambda a: np.zeros(a.shape, [("v", "f4", 3), ("t", "i2")])["v"][0],
    "a field of records, turned": lambda a: (
        np.zeros(a.shape, [("v", "f4", 3), ("t", "i2")])["v"][0].T
    ),
    "windows two steps apart": lambda a: overlapping(a, 2),
    "windows three steps apart, turned": lambda a: overlapping(a, 3).T,
    "windows, turned": lambda a: np.lib.stride_tricks.sliding_window_view(a.ravel(), 4)[:5].T,
}


def stored(matrix, room):
    """A matrix in column-major memory, `room` elements a column."""
    memory = np.full(room * matrix.shape[1], POISON)
    for j, column in enumerate(matrix.T):
        memory[j * room : j * room + len(column)] = column
    return memory


@pytest.mark.parametrize("op_a, op_b", list(itertools.product("NT", repeat=2)))
@pytest.mark.parametrize("m, n, k", [(2, 3, 4), (1, 1, 1), (5, 1, 2), (1, 6, 3)])
def test_gemm_is_numpys_product(op_a, op_b, m, n, k):
    rng = np.random.default_rng([m, n, k])
    a, b = rng.integers(-9, 10, (m, k)), rng.integers(-9, 10, (k, n))
    before = rng.integers(-9, 10, (m, n))
    left, right = (a if op_a == "N" else a.T), (b if op_b == "N" else b.T)
    c = stored(before, m + 1)
    arrays = stored(left, len(left) + 2), len(left) + 2, stored(right, len(right)), len(right)
    blas.gemm(op_a, op_b, m, n, k, 2, *arrays, 3, c, m + 1)
    np.testing.assert_array_equal(c, stored(2 * a @ b + 3 * before, m + 1))


def test_with_beta_0_the_result_is_not_read():
    c = np.full(4, np.nan)
    blas.gemm("N", "N", 2, 2, 1, 1, np.ones(2), 2, np.ones(2), 1, 0, c, 2)
    np.testing.assert_array_equal(c, np.ones(4))


@pytest.mark.parametrize(
    "changed, name", [({"lda": 1}, "lda"), ({"ldb": 2}, "ldb"), ({"ldc": 1}, "ldc")]
)
def test_a_leading_dimension_below_a_column_is_refused(changed, name):
    sizes = {"lda": 2, "ldb": 3, "ldc": 2} | changed
    a, b, c = np.ones(6), np.ones(12), np.ones(8)
    with pytest.raises(blas.InvalidValue, match=f"CUBLAS_STATUS_INVALID_VALUE: {name} is"):
        blas.gemm("N", "N", 2, 4, 3, 1, a, sizes["lda"], b, sizes["ldb"], 0, c, sizes["ldc"])


def test_what_lies_beyond_an_array_is_not_read():
    with pytest.raises(IndexError, match="beyond the 6"):
        blas.gemm("N", "N", 2, 1, 3, 1, np.ones(6), 3, np.ones(3), 3, 0, np.ones(2), 2)


def test_an_unknown_operation_is_refused():
    with pytest.raises(blas.InvalidValue, match="'X'"):
        blas.gemm("X", "N", 1, 1, 1, 1, np.ones(1), 1, np.ones(1), 1, 0, np.ones(1), 1)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_read_where_it_lies(name):
    whole = np.arange(70.0).reshape(7, 10)
    view = VIEWS[name](whole)
    transposed, leading = blas.as_blas(view.shape, view.strides, view.itemsize)
    if (transposed, leading) == (-1, -1):
        assert name.split(",")[0] in (
            "every second column",
            "backwards",
            "one row again and again",
            "windows",
            "windows two steps apart",
            "windows three steps apart",
            "a field of records",
        )
        return
    memory = whole.ravel()[(view.ctypes.data - whole.ctypes.data) // view.itemsize :]
    seen = view.T if transposed else view
    for (i, j), value in np.ndenumerate(seen):
        assert memory[i + j * leading] == value
