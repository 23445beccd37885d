"""A matrix product with cuBLAS's arguments and rules, in NumPy: to learn the rules with."""

import numpy as np


class InvalidValue(ValueError):
    """What cuBLAS says with CUBLAS_STATUS_INVALID_VALUE."""


class OnDevice:
    """Numbers on the device: `gemm` can read them, the host cannot."""

    def __init__(self, numbers):
        self.memory = np.array(numbers)

    def __repr__(self):
        return f"{self.memory} on the device"

    def _refuse(self, *_, **__):
        raise TypeError("these numbers lie on the device: the host cannot read them, `gemm` can")

    __array__ = __iter__ = __len__ = _refuse

    def __getitem__(self, at):
        if isinstance(at, slice):
            raise TypeError("no part of these numbers can be taken here: `gemm` gets all of them")
        self._refuse()


def gemm(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) -> None:
    """c = alpha op(a) op(b) + beta c, as cublasSgemm does it, on flat arrays.

    All matrices are column-major: element (i, j) stands at ``i + j * ld``. op(a) is m × k, op(b)
    k × n, c m × n. op_a, op_b: "N" as it is, "T" transposed. beta 0: c is not read. a and b may be
    `OnDevice`. InvalidValue where cuBLAS gives CUBLAS_STATUS_INVALID_VALUE; IndexError where it
    would read or write beyond an array, which cuBLAS does not notice.
    """
    left = _operand(op_a, a, lda, m, k, "lda")
    right = _operand(op_b, b, ldb, k, n, "ldb")
    result = _as_seen(c, ldc, m, n, "ldc")
    product = alpha * (left @ right)
    if beta != 0:
        product = product + beta * result
    result[...] = product


def _operand(op, flat, leading, rows, columns, name):
    """op(the matrix), which is rows × columns."""
    if op == "N":
        return _as_seen(flat, leading, rows, columns, name)
    if op == "T":
        return _as_seen(flat, leading, columns, rows, name).T
    raise InvalidValue(f"CUBLAS_STATUS_INVALID_VALUE: {op!r} is neither 'N' nor 'T'")


def _as_seen(flat, leading, rows, columns, name):
    """The flat array as a column-major matrix: a view."""
    if leading < max(1, rows):
        raise InvalidValue(
            f"CUBLAS_STATUS_INVALID_VALUE: {name} is {leading}, and a column has {rows} elements"
        )
    flat = flat.memory if isinstance(flat, OnDevice) else np.asarray(flat)
    end = (columns - 1) * leading + rows
    if end > flat.size:
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
    rows, columns = shape
    down, across = strides
    if _fits(down, across, rows, itemsize):
        return 0, across // itemsize
    if _fits(across, down, columns, itemsize):
        return 1, down // itemsize
    return -1, -1


def _fits(near, far, length, itemsize) -> bool:
    """Neighbours stand side by side, and the next line begins behind the whole of this one."""
    whole = far % itemsize == 0
    return near == itemsize and whole and far >= length * itemsize
