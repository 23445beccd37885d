"""A matrix product with cuBLAS's arguments and rules, in NumPy: to learn the rules with."""

import numpy as np


class InvalidValue(ValueError):
    """What cuBLAS says with CUBLAS_STATUS_INVALID_VALUE."""


def gemm(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) -> None:
    """c = alpha op(a) op(b) + beta c, as cublasSgemm does it, on flat arrays of numbers.

    All matrices are column-major: element (i, j) stands at ``i + j * ld``. op(a) is m × k, op(b)
    k × n, c m × n. op_a, op_b: "N" as it is, "T" transposed. beta 0: c is not read.
    InvalidValue where cuBLAS gives CUBLAS_STATUS_INVALID_VALUE; IndexError where it would read or
    write beyond an array, which cuBLAS does not notice.
    """
    left = _as_seen(a, lda, *((m, k) if op_a == "N" else (k, m)), "lda")
    right = _as_seen(b, ldb, *((k, n) if op_b == "N" else (n, k)), "ldb")
    product = alpha * (_turned(left, op_a) @ _turned(right, op_b))
    result = _as_seen(c, ldc, m, n, "ldc")
    result[...] = product if beta == 0 else product + beta * result


def _turned(matrix, op):
    if op not in ("N", "T"):
        raise InvalidValue(f"CUBLAS_STATUS_INVALID_VALUE: {op!r} is neither 'N' nor 'T'")
    return matrix if op == "N" else matrix.T


def _as_seen(flat, leading, rows, columns, name):
    """The flat array as a column-major matrix: a view."""
    if min(rows, columns) < 0 or leading < max(1, rows):
        raise InvalidValue(
            f"CUBLAS_STATUS_INVALID_VALUE: {name} is {leading}, and a column has {rows} elements"
        )
    flat = np.asarray(flat)
    if columns and (columns - 1) * leading + rows > flat.size:
        raise IndexError(
            f"with {name} {leading}, {rows} × {columns} elements reach beyond the {flat.size} here"
        )
    step = flat.itemsize
    shape, strides = (rows, columns), (step, step * leading)
    return np.lib.stride_tricks.as_strided(flat, shape, strides)


def as_blas(shape, strides, itemsize):
    """(transposed, leading dimension) by which cuBLAS can read a NumPy array where it lies.

    (0, ld): column-major, (1, ld): the library sees it transposed. (-1, -1): it must be copied.
    """
    (rows, columns), (down, across) = shape, strides
    for transposed, near, far, length in ((0, down, across, rows), (1, across, down, columns)):
        if near == itemsize and far % itemsize == 0 and far >= length * itemsize:
            return transposed, far // itemsize
    return -1, -1
