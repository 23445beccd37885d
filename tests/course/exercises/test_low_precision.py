"""A mistake that is often made in the chapter on low precision is told in words."""

import math
from dataclasses import replace

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import numpy as np
import pytest
from numba import cuda

from course import exercises
from course.checking.checker import check_answer

pytestmark = pytest.mark.usefixtures("in_this_process", "pictures_undrawn")


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


@cuda.jit
def shares_in_float16(out, x):
    row = cuda.grid(1)
    if row < x.shape[0]:
        total = np.float16(0)
        for k in range(x.shape[1]):
            value = np.float32(x[row, k])
            total = np.float16(np.float32(total) + value * value / np.float32(x.shape[1]))
        out[row] = total


@cuda.jit
def without_magnitudes(factors, x, w):
    k = cuda.grid(1)
    if k < factors.size:
        of_x = of_w = np.float32(0)
        for row in range(x.shape[0]):
            of_x = max(of_x, x[row, k])
        for row in range(w.shape[0]):
            of_w = max(of_w, w[row, k])
        factors[k] = math.sqrt(of_x / of_w) if of_x > 0 and of_w > 0 else 1.0


@cuda.jit
def without_a_guard(factors, x, w):
    k = cuda.grid(1)
    if k < factors.size:
        of_x = of_w = np.float32(0)
        for row in range(x.shape[0]):
            of_x = max(of_x, abs(x[row, k]))
        for row in range(w.shape[0]):
            of_w = max(of_w, abs(w[row, k]))
        factors[k] = math.sqrt(np.float32(of_x) / np.float32(of_w))


@cuda.jit
def root_of_product(factors, x, w):
    k = cuda.grid(1)
    if k < factors.size:
        of_x = of_w = np.float32(0)
        for row in range(x.shape[0]):
            of_x = max(of_x, abs(x[row, k]))
        for row in range(w.shape[0]):
            of_w = max(of_w, abs(w[row, k]))
        factors[k] = math.sqrt(of_x * of_w) if of_x > 0 and of_w > 0 else 1.0


@cuda.jit
def root_mean_square(factors, x, w):
    k = cuda.grid(1)
    if k < factors.size:
        of_x = of_w = np.float32(0)
        for row in range(x.shape[0]):
            of_x += x[row, k] * x[row, k]
        for row in range(w.shape[0]):
            of_w += w[row, k] * w[row, k]
        ratio = 1.0
        if of_x > 0 and of_w > 0:
            ratio = math.sqrt(math.sqrt(of_x / x.shape[0]) / math.sqrt(of_w / w.shape[0]))
        factors[k] = ratio


@cuda.jit
def nothing_carried(rounded, bits, random):
    i = cuda.grid(1)
    if i < bits.size:
        rounded[i] = (bits[i] | random[i]) >> 16


@cuda.jit
def sum_of_numba(out, x, zeros, x_scales, w, w_scales):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = np.float32(0)  # a float64 after the first whole number
        for k in range(x.shape[1]):
            total += (np.int32(x[row, k]) - zeros[row]) * np.int32(w[column, k])
        out[row, column] = total * x_scales[row] * w_scales[column]


@cuda.jit
def sum_of_float32(out, x, zeros, x_scales, w, w_scales):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = np.float32(0)
        for k in range(x.shape[1]):
            product = (np.int32(x[row, k]) - zeros[row]) * np.int32(w[column, k])
            total += np.float32(product)
        out[row, column] = total * x_scales[row] * w_scales[column]


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
    ("low_precision.squares", shares_in_float16, "the sum is still a float16"),
    ("low_precision.balance", without_magnitudes, "whose largest magnitude is negative"),
    ("low_precision.balance", without_a_guard, "0, infinite, or 0 / 0"),
    ("low_precision.balance", root_of_product, "the root of the product"),
    ("low_precision.balance", root_mean_square, "the root of the mean square"),
    ("low_precision.by_chance", nothing_carried, "carry nothing"),
    ("low_precision.zero_point", sum_of_float32, "A float32 has 24 bits"),
]


ANOTHER = pytest.mark.nightly("by day one mistake of each exercise is told")


def mistakes():
    """pytest.param(exercise's id, kernel, words) of each."""
    told = set()
    for id, kernel, words in MISTAKES:
        yield pytest.param(id, kernel, words, marks=[ANOTHER] if id in told else [])
        told.add(id)


@pytest.mark.parametrize("id, kernel, words", list(mistakes()))
def test_a_frequent_mistake_is_told_in_words(id, kernel, words, small):
    outcome = check_answer(small(exercises.EXERCISES[id]), kernel)
    assert not outcome.solved and words in str(outcome)


def test_a_sum_that_numba_widens_is_allowed_as_the_text_says(few_draws, small):
    exercise = exercises.EXERCISES["low_precision.zero_point"]
    assert check_answer(replace(small(exercise), orders=1), sum_of_numba).solved
    assert "Numba makes one of float32 plus int. That is allowed here" in exercise.task
