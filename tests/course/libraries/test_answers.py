"""Right answers of other shapes than the solution are accepted, and dodges are not."""

import numpy as np
import pytest
from numba import cuda

from course.checking.checker import check_answer
from course.exercises import EXERCISES


def linear_by_rows(gemm, y, x, w, rows, n_in, n_out):
    """The same call with names; the result as a tuple."""
    m, n, k = n_out, rows, n_in
    gemm(op_a="T", op_b="N", m=m, n=n, k=k, alpha=1, a=w, lda=k, b=x, ldb=k, beta=0, c=y, ldc=m)
    return tuple(y)


def linear_by_the_other_product(gemm, y, x, w, rows, n_in, n_out):
    """All in a list, which is unpacked."""
    left, right = (w, n_in), (x, n_in)
    gemm("T", "N", n_out, rows, n_in, 1, *left, *right, 0, y, n_out)
    return list(y)


def draws_into_an_array(generator, seed, thread, launch, count):
    state = generator(seed, thread, launch * count)
    return np.array([state() for _ in range(count)])


@cuda.jit
def spmv_with_while(y, offsets, columns, values, x):
    row = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    if row >= y.size:
        return
    i, total = offsets[row], 0.0
    while i < offsets[row + 1]:
        total += x[columns[i]] * values[i]
        i += 1
    y[row] = total


@cuda.jit
def spmv_from_behind(y, offsets, columns, values, x):
    for row in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        total = np.float64(0)
        for i in range(offsets[row + 1] - 1, offsets[row] - 1, -1):
            total += values[i] * x[columns[i]]
        y[row] = np.float32(total)


RIGHT = {
    "linear": (linear_by_rows, linear_by_the_other_product),
    "draws": (draws_into_an_array,),
    "spmv": (spmv_with_while, spmv_from_behind),
}
CASES = [(name, answer) for name, answers in RIGHT.items() for answer in answers]


@pytest.mark.parametrize("name, answer", CASES)
def test_another_right_answer_is_accepted(name, answer):
    outcome = check_answer(EXERCISES[f"libraries.{name}"], answer)
    assert outcome.solved, repr(outcome)


def in_numpy(gemm, y, x, w, rows, n_in, n_out):
    return (np.array(x).reshape(rows, n_in) @ np.array(w).reshape(n_out, n_in).T).ravel()


def without_a_call(gemm, y, x, w, rows, n_in, n_out):
    return y


@pytest.mark.parametrize("dodge", [in_numpy, without_a_call])
def test_a_product_without_the_library_is_not(dodge):
    assert not check_answer(EXERCISES["libraries.linear"], dodge).solved
