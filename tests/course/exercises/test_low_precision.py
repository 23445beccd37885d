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


@cuda.jit
def up_at_a_half(codes, x, scale):
    i = cuda.grid(1)
    if i < x.size:
        codes[i] = max(-127, min(127, int(np.floor(x[i] / scale + 0.5))))


@cuda.jit
def halves_swapped(numbers, packed):
    i = cuda.grid(1)
    if i < numbers.size:
        nibble = packed[i // 2] >> 4 * (1 - i % 2) & 15
        numbers[i] = nibble - 16 if nibble >= 8 else nibble


@cuda.jit
def zero_once(out, x, zeros, x_scales, w, w_scales):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = 0
        for k in range(x.shape[1]):
            total += np.int32(x[row, k]) * np.int32(w[column, k])
        out[row, column] = (total - zeros[row]) * x_scales[row] * w_scales[column]


@cuda.jit
def ratio(factors, x, w):
    k = cuda.grid(1)
    if k < factors.size:
        of_x = of_w = 0.0
        for row in range(x.shape[0]):
            of_x = max(of_x, abs(x[row, k]))
        for row in range(w.shape[0]):
            of_w = max(of_w, abs(w[row, k]))
        factors[k] = of_x / of_w if of_x > 0 and of_w > 0 else 1.0


@cuda.jit
def first_scale(y, packed, scales, x):
    row = cuda.grid(1)
    if row < y.size:
        total = 0.0
        for k in range(x.size):
            nibble = packed[row, k // 2] >> 4 * (k % 2) & 15
            total += (nibble - 16 if nibble >= 8 else nibble) * x[k]
        y[row] = total * scales[row, 0]


@cuda.jit
def smallest_go_up(rounded, bits, random):
    i = cuda.grid(1)
    if i < bits.size:
        rounded[i] = (bits[i] >> 16) + (1 if random[i] < bits[i] & 0xFFFF else 0)


@cuda.jit
def no_lower_bound(codes, x, scale):
    i = cuda.grid(1)
    if i < x.size:
        codes[i] = min(round(x[i] / scale), 127)


MISTAKES = [
    ("low_precision.by_chance", smallest_go_up, "but the smallest ones"),
    ("low_precision.saturate", no_lower_bound, "those below -127 lose their upper bits"),
    ("low_precision.saturate", cut_off, "drops the fraction"),
    ("low_precision.saturate", half_added, "rounds up only above zero"),
    ("low_precision.saturate", up_at_a_half, "always goes up here"),
    ("low_precision.nibbles", halves_swapped, "numbers of each byte are swapped"),
    ("low_precision.zero_point", zero_once, "subtracted once, from the whole sum"),
    ("low_precision.balance", ratio, "has only changed sides"),
    ("low_precision.four_bits", first_scale, "the scale of its first 32 numbers"),
    ("low_precision.nibbles", never_below_zero, "no number is below zero"),
    ("low_precision.squares", product_in_float16, "is a float16 again"),
    ("low_precision.squares", float_of_float16, "is a float16 again"),
]


@pytest.mark.parametrize("id, kernel, words", MISTAKES)
def test_a_frequent_mistake_is_told_in_words(id, kernel, words):
    outcome = check_answer(exercises.EXERCISES[id], kernel)
    assert not outcome.solved and words in str(outcome)
