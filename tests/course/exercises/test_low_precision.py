"""A mistake that is often made in the chapter on low precision is told in words."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import numpy as np
import pytest
from numba import cuda

from course import exercises
from course.checking.checker import check_answer


@cuda.jit
def cut_off(codes, x, scale):
    i = cuda.grid(1)
    if i < x.size:
        codes[i] = max(-127, min(127, int(x[i] / scale)))


@cuda.jit
def half_added(codes, x, scale):
    i = cuda.grid(1)
    if i < x.size:
        codes[i] = max(-127, min(127, int(x[i] / scale + 0.5)))


@cuda.jit
def never_below_zero(numbers, packed):
    i = cuda.grid(1)
    if i < numbers.size:
        numbers[i] = packed[i // 2] >> 4 * (i % 2) & 15


@cuda.jit
def product_in_float16(out, x):
    row = cuda.grid(1)
    if row < x.shape[0]:
        total = np.float32(0)
        for k in range(x.shape[1]):
            total += x[row, k] * x[row, k]
        out[row] = total / x.shape[1]


@cuda.jit
def float_of_float16(out, x):
    row = cuda.grid(1)
    if row < x.shape[0]:
        total = 0.0
        for k in range(x.shape[1]):
            v = float(x[row, k])
            total += v * v
        out[row] = total / x.shape[1]


MISTAKES = [
    ("low_precision.saturate", cut_off, "cuts off what is behind the point"),
    ("low_precision.saturate", half_added, "rounds up only above zero"),
    ("low_precision.nibbles", never_below_zero, "no number is below zero"),
    ("low_precision.squares", product_in_float16, "is a float16 again"),
    ("low_precision.squares", float_of_float16, "is a float16 again"),
]


@pytest.mark.parametrize("id, kernel, words", MISTAKES)
def test_a_frequent_mistake_is_told_in_words(id, kernel, words):
    outcome = check_answer(exercises.EXERCISES[id], kernel)
    assert not outcome.solved and words in str(outcome)
