"""The exercises of the chapter Low precision."""

import math

import numpy as np
from numba import cuda

from course.checking.inputs import (
    a_thread_a_row,
    a_thread_each,
    lengths,
    some_numbers,
    whole,
    with_zeros,
)
from course.checking.model import Exercise, Hypothesis, Out, Speed
from course.checking.quiz import Quiz, one_of

# ---- saturate: to 8 bits


@cuda.jit
def to_int8(codes, x, scale):
    i = cuda.grid(1)
    if i < x.size:
        steps = round(x[i] / scale)
        codes[i] = min(max(steps, -127), 127)


def steps_and_ties(rng, shape):
    """Many halves, what lies close to them, both signs, and some far outside, even of an int32."""
    halves = rng.integers(-300, 301, shape[0]) / 2
    off = rng.choice([0.0, 0.0, 0.2, -0.3, 0.01, -0.01], shape[0])
    far = rng.choice([1.0, 1.0, 1.0, 1.0, 40.0, 5e9], shape[0])
    scale = rng.choice([0.5, 0.25, 2.0, 7.0])  # 1 / 7 is no number of these
    x = with_zeros(rng, ((halves + off) * far * scale).astype(np.float32))
    return {"codes": Out(shape, np.int8), "x": x, "scale": np.float32(scale)}


def clipped_int8(steps):
    return np.clip(steps, -127, 127).astype(np.int8)


def cut_off(steps):
    """Whole numbers as int8: the lower 8 bits alone, of the nearest int64."""
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    within = np.where(np.abs(steps) < 2.0**63, steps, 0).astype(np.int64)
    wide = np.where(steps >= 2.0**63, most, np.where(steps <= -(2.0**63), least, within))
    return wide.astype(np.int8)


def nearest_int8(codes, x, scale):
    return clipped_int8(np.rint(x.astype(np.float64) / scale))


SATURATE = Exercise(
    id="low_precision.saturate",
    title="To 8 bits",
    minutes=7,
    task=(
        "`codes[i]` is `x[i] / scale`, rounded to the *nearest* whole number. A number halfway"
        " between two goes to the even one, as Python's `round` has it, in a kernel, too. What does"
        " not fit becomes the largest code, 127, or the smallest, **-127**. (-128 is left out, so"
        " that the code of -x is the negative of the code of x.) This kernel is wrong in two ways."
    ),
    starter="""
@cuda.jit
def to_int8(codes, x, scale):
    i = cuda.grid(1)
    if i < x.size:
        codes[i] = int(x[i] / scale)
""",
    solution=to_int8,
    inputs=steps_and_ties,
    reference=nearest_int8,
    specials="no_nan",  # no code stands for NaN, and the text asks for none
    powers=(-100, 60),  # far beyond an int32, and not beyond what `round` makes of it
    large=(66_000,),
    shapes=lengths(1, 31, 33, 100, 257),
    fresh=some_numbers((34, 300), few=True),
    extents=a_thread_each,
    is_square=lambda shape: False,
    other_block=(96, 1, 1),
    speed=Speed("4 million numbers", 4 << 20, block=(256, 1, 1)),
    hints=(
        "What are `int(2.9)` and `int(-2.9)`? And what do the lower 8 bits of 200 say?",
        "Python's `round` takes halves to the even neighbour, on the GPU too.",
        "Round first, then `min(max(steps, -127), 127)`, and only then store.",
    ),
    wrong=(
        ("round(x[i] / scale)", "int(x[i] / scale)", "wrong_value"),
        ("min(max(steps, -127), 127)", "steps", "wrong_value"),
        ("round(x[i] / scale)", "int(x[i] / scale + 0.5)", "wrong_value"),
        ("round(x[i] / scale)", "int(np.floor(x[i] / scale + 0.5))", "wrong_value"),
        ("-127), 127", "-128), 127", "wrong_value"),
        ("min(max(steps, -127), 127)", "min(steps, 127)", "wrong_value"),
        ("x[i] / scale", "x[i] * scale", "wrong_value"),
        ("i < x.size", "i <= x.size", "off_by_one"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Numbers that do not fit are right. But `int` drops the fraction, where the task rounds"
            " to the nearest.",
            lambda codes, x, scale: clipped_int8(np.trunc(x.astype(np.float64) / scale)),
        ),
        Hypothesis(
            "wrong_value",
            "`int` cuts toward zero, so a half added before it rounds up only above zero. And 2.5"
            " must become 2.",
            lambda codes, x, scale: clipped_int8(np.trunc(x.astype(np.float64) / scale + 0.5)),
        ),
        Hypothesis(
            "wrong_value",
            "What lies halfway between two whole numbers always goes up here. The task sends it to"
            " the even one: 2.5 becomes 2, and -33.5 becomes -34.",
            lambda codes, x, scale: clipped_int8(np.floor(x.astype(np.float64) / scale + 0.5)),
        ),
        Hypothesis(
            "wrong_value",
            "Where a number fits it is right. The others lose their upper bits, so that 200 becomes"
            " -56: bring them to 127 or -127 first.",
            lambda codes, x, scale: cut_off(np.rint(x / scale)),
        ),
        Hypothesis(
            "wrong_value",
            "Large numbers become 127, but those below -127 lose their upper bits: they need a"
            " bound, too.",
            lambda codes, x, scale: cut_off(np.minimum(np.rint(x / scale), 127)),
        ),
        Hypothesis(
            "wrong_value",
            "What lies halfway between two whole numbers always moves away from zero here. The task"
            " sends it to the even one: 2.5 becomes 2.",
            lambda codes, x, scale: clipped_int8(
                np.copysign(np.floor(np.abs(x.astype(np.float64) / scale) + 0.5), x)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "A number becomes an int8 before it is kept within the bounds: there it has lost its"
            " upper bits already.",
            lambda codes, x, scale: clipped_int8(cut_off(np.rint(x / scale))),
        ),
        Hypothesis(
            "wrong_value",
            "This multiplies by 1 / scale, which is rounded. What lies halfway between two whole"
            " numbers by `x[i] / scale` then lies beside it.",
            lambda codes, x, scale: clipped_int8(np.rint(x * (np.float32(1) / scale))),
        ),
        Hypothesis(
            "wrong_value",
            "The smallest code here is -127, not -128: so the code of -x is the negative of x's.",
            lambda codes, x, scale: np.clip(
                np.rint(x.astype(np.float64) / scale), -128, 127
            ).astype(np.int8),
        ),
        Hypothesis(
            "wrong_value",
            "This multiplies by the scale. A code is x *divided* by it.",
            lambda codes, x, scale: clipped_int8(np.rint(x * scale)),
        ),
    ),
)


# ---- nibbles: two numbers in a byte


@cuda.jit
def unpack(numbers, packed):
    i = cuda.grid(1)
    if i < numbers.size:
        nibble = packed[i // 2] >> 4 * (i % 2) & 15
        numbers[i] = nibble - 16 if nibble >= 8 else nibble


def packed_numbers(rng, shape):
    return {
        "numbers": Out((shape[0],), np.int8),
        "packed": rng.integers(0, 256, (shape[0] + 1) // 2).astype(np.uint8),
    }


def unpacked(numbers, packed):
    nibbles = (
        np.stack([packed & 15, packed >> 4], 1).reshape(-1)[: numbers.shape[0]].astype(np.int8)
    )
    return np.where(nibbles >= 8, nibbles - 16, nibbles).astype(np.int8)


def whole_bytes(numbers, packed):
    """With the upper half of the byte left where only the lower one is wanted."""
    shifted = np.stack([packed, packed >> 4], 1).reshape(-1)[: numbers.shape[0]].astype(np.int64)
    return np.where(shifted >= 8, shifted - 16, shifted).astype(np.int8)


NIBBLES = Exercise(
    id="low_precision.nibbles",
    title="Two numbers in a byte",
    minutes=6,
    task=(
        "Each byte of `packed` holds two numbers from -8 to 7, 4 bits each in two's complement"
        " (the highest bit counts -8 in place of 8, so 1111 is -1): the first in the *lower* half."
        " Thread i writes number i. If their count is odd, half of the last byte is not used."
    ),
    starter="""
@cuda.jit
def unpack(numbers, packed):
    i = cuda.grid(1)
    if i < numbers.size:
        numbers[i] = packed[i // 2] & 15  # both of a byte's numbers? and below zero?
""",
    solution=unpack,
    inputs=packed_numbers,
    reference=unpacked,
    large=(66_000,),
    shapes=lengths(1, 2, 31, 32, 33, 100, 257),
    fresh=some_numbers((34, 300), few=True),
    elements=1,
    extents=a_thread_each,
    is_square=lambda shape: False,
    other_block=(96, 1, 1),
    hints=(
        "Number i has the lower half if i is even. How far must the other half be shifted?",
        "In two's complement of 4 bits, -1 is 1111. As a byte, 00001111 is 15.",
        "The highest of the 4 bits counts -8, not 8: codes from 8 on are 16 too large.",
    ),
    wrong=(
        ("nibble - 16 if nibble >= 8 else nibble", "nibble", "wrong_value"),
        ("4 * (i % 2)", "4 * (1 - i % 2)", "wrong_value"),
        ("nibble >= 8", "nibble > 8", "wrong_value"),
        ("nibble - 16 if nibble >= 8 else nibble", "nibble - 8", "wrong_value"),
        (" & 15", "", "wrong_value"),
        ("i < numbers.size", "i // 2 < packed.size", "off_by_one"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Both halves are found, but no number is below zero: which code is -1?",
            lambda numbers, packed: unpacked(numbers, packed) & 15,
        ),
        Hypothesis(
            "wrong_value",
            "The two numbers of each byte are swapped: the first one is in the lower half.",
            lambda numbers, packed: unpacked(numbers, packed >> 4 | packed << 4),
        ),
        Hypothesis(
            "wrong_value",
            "Numbers below 0 are too large by one: codes from 8 on are 16 too large, not 15.",
            lambda numbers, packed: (
                unpacked(numbers, packed) + (unpacked(numbers, packed) < 0).astype(np.int8)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The highest bit is taken for a sign beside three bits of magnitude. In two's"
            " complement it counts -8: 1111 is -1, not -7.",
            lambda numbers, packed: np.where(
                unpacked(numbers, packed) < 0,
                -8 - unpacked(numbers, packed),
                unpacked(numbers, packed),
            ).astype(np.int8),
        ),
        Hypothesis(
            "wrong_value",
            "All is right but one code: 1000 stands for -8, and here it becomes 8.",
            lambda numbers, packed: np.where(
                unpacked(numbers, packed) == -8, 8, unpacked(numbers, packed)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "This takes 8 from every code. In two's complement the codes from 0 to 7 stand for"
            " themselves, and only those from 8 on are 16 too large.",
            lambda numbers, packed: (unpacked(numbers, packed) & 15) - 8,
        ),
        Hypothesis(
            "wrong_value",
            "The numbers in the upper half are right. Those in the lower half still have the upper"
            " half beside them: keep four bits alone, with `& 15`.",
            whole_bytes,
        ),
    ),
)


# ---- balance: the outlier moves into the weights


@cuda.jit
def balance(factors, x, w):
    k = cuda.grid(1)
    if k < factors.size:
        of_x = np.float32(0)
        for row in range(x.shape[0]):
            of_x = max(of_x, abs(x[row, k]))
        of_w = np.float32(0)
        for row in range(w.shape[0]):
            of_w = max(of_w, abs(w[row, k]))
        factors[k] = 1
        if of_x > 0 and of_w > 0:
            factors[k] = math.sqrt(of_x / of_w)


def with_outliers(rng, shape):
    """x [rows, k] and w [columns, k], some columns far larger than others, some all zero.

    Of every second column the last number is the largest.
    """
    rows, columns, k = shape
    x = rng.normal(size=(rows, k)) * rng.choice([0.0, 1.0, 1.0, 50.0], k)
    w = rng.normal(size=(columns, k)) * rng.choice([0.0, 0.1, 1.0, 1.0], k)
    x[-1, ::2] *= 9
    w[-1, 1::2] *= 9
    return {
        "factors": Out((k,)),
        "x": x.astype(np.float32),
        "w": w.astype(np.float32),
    }


def balanced(factors, x, w):
    of_x = np.abs(x.astype(np.float64)).max(0)
    of_w = np.abs(w.astype(np.float64)).max(0)
    both = (of_x > 0) & (of_w > 0)
    ratio = np.divide(of_x, of_w, out=np.ones_like(of_x), where=both)
    return np.sqrt(ratio)


def unguarded(factors, x, w):
    """The root of the ratio where it may be 0 / 0, too."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(np.abs(x.astype(np.float64)).max(0) / np.abs(w).max(0))


def rms_of_columns(matrix):
    """The root of the mean square of each column, as a matrix of one row."""
    return np.sqrt(np.square(matrix.astype(np.float64)).mean(0, keepdims=True))


BALANCE = Exercise(
    id="low_precision.balance",
    title="Move the outlier to the other side",
    minutes=8,
    task=(
        "`x` is [rows, k], `w` is [columns, k], and their product sums over k. For each k write the"
        " factor by which column k of x will be divided and column k of w multiplied, so that"
        " afterwards both have the *same* largest magnitude. Where one of the two columns is all"
        " zeros, the factor is 1."
    ),
    starter="""
@cuda.jit
def balance(factors, x, w):
    k = cuda.grid(1)
    if k < factors.size:
        factors[k] = 1  # nothing moves
""",
    solution=balance,
    inputs=with_outliers,
    reference=balanced,
    specials="finite",
    shapes=((1, 1, 1), (5, 9, 7), (9, 5, 33), (4, 4, 4), (17, 8, 64)),
    fresh=some_numbers((2, 12), (2, 12), (2, 40)),
    large=((1, 1, 66_000), (66_000, 2, 9), (2, 66_000, 9)),
    probe=(9, 5, 33),
    extents=lambda shape: (shape[2], 1, 1),
    other_block=(96, 1, 1),
    hints=(
        "Let X and W be the largest magnitudes of the two columns, and f the factor. Afterwards"
        " they are X / f and W · f. For which f are these equal?",
        "f² = X / W. Two loops find X and W: one over the rows of x, one over the rows of w.",
        "`of_x = max(of_x, abs(x[row, k]))`, and in the end `math.sqrt(of_x / of_w)`.",
    ),
    wrong=(
        ("math.sqrt(of_x / of_w)", "of_x / of_w", "wrong_value"),
        ("math.sqrt(of_x / of_w)", "math.sqrt(of_w / of_x)", "wrong_value"),
        ("math.sqrt(of_x / of_w)", "math.sqrt(of_x)", "wrong_value"),
        ("max(of_x, abs(x[row, k]))", "max(of_x, x[row, k])", "wrong_value"),
        ("max(of_w, abs(w[row, k]))", "of_w + abs(w[row, k])", "wrong_value"),
        ("range(w.shape[0])", "range(x.shape[0])", "out_of_bounds"),
        ("if of_x > 0 and of_w > 0:", "if of_w > 0:", "wrong_value"),
        ("if of_x > 0 and of_w > 0:", "if of_x > 0:", "wrong_value"),
        ("k < factors.size", "True", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "With this factor x's column gets the weights' old magnitude, and the weights get x's:"
            " the outlier has only changed sides. Both magnitudes must meet halfway.",
            lambda factors, x, w: np.square(balanced(factors, x, w)),
        ),
        Hypothesis(
            "wrong_value",
            "These are the factors upside down: x is *divided* by them, w is multiplied.",
            lambda factors, x, w: 1 / balanced(factors, x, w),
        ),
        Hypothesis(
            "wrong_value",
            "This is the root of x's magnitude alone. For the two to be equal, f² must be X / W.",
            lambda factors, x, w: np.where(
                np.abs(w).max(0) > 0, balanced(factors, x, np.sign(np.abs(w).max(0))[None]), 1
            ),
        ),
        Hypothesis(
            "wrong_value",
            "This looks for the largest number of x, not for the largest *magnitude*: -3 counts for"
            " more than 2.",
            lambda factors, x, w: balanced(factors, np.maximum(x, 0), w),
        ),
        Hypothesis(
            "wrong_value",
            "This looks for the largest number of each column, not for the largest *magnitude*: a"
            " column whose largest magnitude is negative has the wrong factor.",
            lambda factors, x, w: balanced(factors, np.maximum(x, 0), np.maximum(w, 0)),
        ),
        Hypothesis(
            "wrong_value",
            "This looks for the largest number of w, not for the largest *magnitude*: -3 counts for"
            " more than 2.",
            lambda factors, x, w: balanced(factors, x, np.maximum(w, 0)),
        ),
        Hypothesis(
            "wrong_value",
            "Where a column is all zeros, the factor must be 1. Here it is 0, infinite, or 0 / 0.",
            unguarded,
        ),
        Hypothesis(
            "wrong_value",
            "This is the root of the product of both magnitudes. They meet halfway where f² is X /"
            " W.",
            lambda factors, x, w: np.where(
                np.abs(x).max(0) * np.abs(w).max(0) > 0,
                np.sqrt(np.abs(x).max(0).astype(np.float64) * np.abs(w).max(0)),
                1,
            ),
        ),
        Hypothesis(
            "wrong_value",
            "This takes the root of the mean square of each column. The task asks for the largest"
            " magnitude.",
            lambda factors, x, w: balanced(factors, rms_of_columns(x), rms_of_columns(w)),
        ),
        Hypothesis(
            "wrong_value",
            "This adds up the magnitudes of w. The task asks for the largest of them.",
            lambda factors, x, w: balanced(factors, x, np.abs(w).sum(0, keepdims=True)),
        ),
        Hypothesis(
            "wrong_value",
            "This takes the mean magnitude of each column. The task asks for the largest.",
            lambda factors, x, w: balanced(
                factors, np.abs(x).mean(0, keepdims=True), np.abs(w).mean(0, keepdims=True)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Where a column of x is all zeros, the factor must be 1, and here it is 0.",
            lambda factors, x, w: (
                np.where(np.abs(x).max(0) > 0, balanced(factors, x, w), 0.0)
                + ((np.abs(x).max(0) == 0) & (np.abs(w).max(0) == 0))
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Where a column of w is all zeros, the factor must be 1, and here it is infinite.",
            lambda factors, x, w: np.where(
                (np.abs(x).max(0) > 0) & (np.abs(w).max(0) == 0), np.inf, balanced(factors, x, w)
            ),
        ),
    ),
)


# ---- four_bits: unpacked, scaled and multiplied in one kernel

GROUP = 32  # neighbours of a row of 4-bit weights that share a scale


@cuda.jit
def four_bits(y, packed, scales, x):
    row = cuda.grid(1)
    if row < y.size:
        total = np.float32(0)
        for k in range(x.size):
            nibble = packed[row, k // 2] >> 4 * (k % 2) & 15
            number = nibble - 16 if nibble >= 8 else nibble
            total += scales[row, k // 32] * number * x[k]
        y[row] = total


def weights_of_four_bits(rng, shape):
    """shape: rows, and how many groups of 32 a row has.

    Products of multiples are multiples: their sums are exact in any order, though terms cancel.
    """
    rows, groups = shape
    of_scales, of_x = 1 / 4, 1 / 4096  # more digits than half precision has
    return {
        "y": Out((rows,)),
        "packed": rng.integers(0, 256, (rows, groups * GROUP // 2)).astype(np.uint8),
        "scales": whole(rng, 2, 17, (rows, groups)) * np.float32(of_scales),
        "x": with_zeros(rng, whole(rng, -6000, 6001, groups * GROUP) * np.float32(of_x)),
    }


def numbers_of(packed):
    """The numbers from -8 to 7 in a matrix of bytes, the lower half of each byte first."""
    nibbles = np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1).astype(np.int64)
    return np.where(nibbles >= 8, nibbles - 16, nibbles)


def summed(numbers, scales, x, group=GROUP):
    """Numbers of weights times their scales, one for each `group` neighbours, times x."""
    columns = np.minimum(np.arange(len(x)) // group, scales.shape[1] - 1)
    return (numbers[:, : len(x)] * scales.astype(np.float64)[:, columns]) @ x


FOUR_BITS = Exercise(
    id="low_precision.four_bits",
    title="A product with 4-bit weights",
    minutes=7,
    task=(
        "`y[row]` is the sum over k of weight times `x[k]`. A weight is a 4-bit number times a"
        " scale. Number k of a row is in the byte `packed[row, k // 2]`, as in the exercise before;"
        " 32 neighbours share the scale `scales[row, k // 32]`. Unpack, scale and multiply in one"
        " kernel: no array of wide weights ever exists. A thread takes a row."
    ),
    starter="""
@cuda.jit
def four_bits(y, packed, scales, x):
    row = cuda.grid(1)
    if row < y.size:
        total = np.float32(0)
        for k in range(x.size):
            total += packed[row, k // 2] * x[k]  # a whole byte, and no scale
        y[row] = total
""",
    solution=four_bits,
    inputs=weights_of_four_bits,
    reference=lambda y, packed, scales, x: summed(numbers_of(packed), scales, x),
    specials="finite",  # a scale may stand before or behind the sum of its group
    shapes=((1, 1), (5, 2), (33, 1), (40, 3), (7, 5)),
    fresh=some_numbers((2, 40), (1, 5)),
    large=((300, 1), (1, 2100)),
    extents=a_thread_a_row,
    other_block=(96, 1, 1),
    is_square=lambda shape: False,
    rtol=1e-3,
    hints=(
        "What did your `unpack` do to get number i out of byte i // 2? Here i is k.",
        "`nibble = packed[row, k // 2] >> 4 * (k % 2) & 15`, and 8 to 15 stand for -8 to -1.",
        "The scale changes every 32 numbers: `total += scales[row, k // 32] * number * x[k]`. Or"
        " add up 32 products first, and multiply that sum by the scale once.",
    ),
    wrong=(
        ("nibble - 16 if nibble >= 8 else nibble", "nibble", "wrong_value"),
        ("nibble - 16 if nibble >= 8 else nibble", "nibble - 8", "wrong_value"),
        ("4 * (k % 2)", "4 * (1 - k % 2)", "wrong_value"),
        ("scales[row, k // 32]", "scales[row, 0]", "wrong_value"),
        ("scales[row, k // 32] * ", "", "wrong_value"),
        ("range(x.size)", "range(x.size // 2)", "wrong_value"),
        ("row < y.size", "True", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "No weight is below zero: codes from 8 on stand for -8 to -1.",
            lambda y, packed, scales, x: summed(numbers_of(packed) & 15, scales, x),
        ),
        Hypothesis(
            "wrong_value",
            "The two numbers of each byte are swapped: the first one is in the lower half.",
            lambda y, packed, scales, x: summed(numbers_of(packed >> 4 | packed << 4), scales, x),
        ),
        Hypothesis(
            "wrong_value",
            "The whole row has the scale of its first 32 numbers. Every 32 have one of their own.",
            lambda y, packed, scales, x: summed(numbers_of(packed), scales[:, :1], x),
        ),
        Hypothesis(
            "wrong_value",
            "64 numbers share a scale here, as if `k // 2` stood for k: 32 numbers do, 16 bytes.",
            lambda y, packed, scales, x: summed(numbers_of(packed), scales, x, 2 * GROUP),
        ),
        Hypothesis(
            "wrong_value",
            "The weights are unpacked, but not scaled.",
            lambda y, packed, scales, x: summed(numbers_of(packed), np.ones_like(scales), x),
        ),
        Hypothesis(
            "wrong_value",
            "This takes 8 from every code. In two's complement only the codes from 8 on are too"
            " large, by 16.",
            lambda y, packed, scales, x: summed((numbers_of(packed) & 15) - 8, scales, x),
        ),
        Hypothesis(
            "wrong_value",
            "Only the first half of each row is summed: a byte holds two numbers, and k counts"
            " numbers.",
            lambda y, packed, scales, x: summed(
                numbers_of(packed), scales, np.where(np.arange(len(x)) < len(x) // 2, x, 0)
            ),
        ),
    ),
)


# ---- zero_point: scales and zeros on the right axis


@cuda.jit
def int8_matmul(out, x, zeros, x_scales, w, w_scales):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = 0
        for k in range(x.shape[1]):
            total += (np.int32(x[row, k]) - zeros[row]) * np.int32(w[column, k])
        out[row, column] = total * x_scales[row] * w_scales[column]


LONG = 2000  # along k: more products of codes than float32 adds up without rounding
THERE_AND_BACK = 4002  # along k: the sum grows far beyond 2^24, and little of it is left


def codes_and_scales(rng, shape):
    """Random codes; of long rows those close to a large zero, times those of one sign.

    Of longer ones they are not below it: sums that grow are as exact as their terms. Of one length
    the first half lies far above zero, and the second as far below.
    """
    rows, columns, k = shape
    zeros = whole(rng, 0, 256, rows)
    x = rng.integers(0, 256, (rows, k))
    w = rng.integers(-127, 128, (columns, k))
    if k >= LONG:
        zeros = whole(rng, 240, 255, rows)
        x = zeros[:, None] + rng.integers(-1 if k == LONG else 0, 2, (rows, k))
        w = rng.integers(100, 128, (columns, k))
    if k == THERE_AND_BACK:
        zeros = np.full(rows, 128, np.int32)
        x = np.repeat([[255, 1]], k // 2, axis=1).repeat(rows, axis=0)
        w[:, k // 2 :] = rng.permuted(w[:, : k // 2], axis=1)
        w[:, -1] = rng.integers(1, 100, columns)
    return {
        "out": Out((rows, columns)),
        "x": x.astype(np.uint8),
        "zeros": zeros,
        "x_scales": rng.uniform(0.1, 1, rows).astype(np.float32),
        "w": w.astype(np.int8),
        "w_scales": rng.uniform(0.1, 1, columns).astype(np.float32),
    }


def exact_product(out, x, zeros, x_scales, w, w_scales):
    real_x = (x.astype(np.float64) - zeros[:, None]) * x_scales[:, None]
    real_w = w.astype(np.float64) * w_scales[:, None]
    return real_x @ real_w.T


def summed_in_float32(out, x, zeros, x_scales, w, w_scales):
    """With sums that are rounded at each step."""
    total = np.zeros(out.shape, np.float32)
    differences = x.astype(np.int64) - zeros[:, None]
    for k in range(x.shape[1]):
        total += (differences[:, k : k + 1] * w[:, k].astype(np.int64)).astype(np.float32)
    return total.astype(np.float64) * x_scales[:, None] * w_scales


def zeros_of_columns(out, x, zeros, x_scales, w, w_scales):
    """With the zero point that has the number of w's row."""
    bare = x.astype(np.float64) @ w.astype(np.float64).T
    by_column = zeros[np.arange(len(w)) % len(zeros)] * w.astype(np.float64).sum(1)
    return (bare - by_column) * x_scales[:, None] * w_scales


ZERO_POINT = Exercise(
    id="low_precision.zero_point",
    title="A product of codes",
    minutes=9,
    task=(
        "The code `x[r, k]`, from 0 to 255, stands for the number"
        " `(x[r, k] - zeros[r]) * x_scales[r]`; the code `w[c, k]` stands for"
        " `w[c, k] * w_scales[c]`. `out[r, c]` is the product of these numbers, summed over k. The"
        " kernel below multiplies the bare codes. Its sums are whole numbers (`zeros` are, too),"
        " and an int holds them exactly; a float32 does not, as rows may be thousands of codes"
        " long. (A float64 does, too, and Numba makes one of float32 plus int. That is allowed"
        " here, but tensor cores for int8 add up ints.)"
    ),
    starter="""
@cuda.jit
def int8_matmul(out, x, zeros, x_scales, w, w_scales):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = 0
        for k in range(x.shape[1]):
            total += np.int32(x[row, k]) * np.int32(w[column, k])
        out[row, column] = total
""",
    solution=int8_matmul,
    inputs=codes_and_scales,
    reference=exact_product,
    specials="finite",  # the scale may stand before or behind the sum
    shapes=(
        (1, 1, 1),
        (4, 4, 4),
        (5, 9, 7),
        (9, 5, 16),
        (17, 8, 33),
        (1, 2, THERE_AND_BACK),
        (1, 2, LONG),
    ),
    fresh=some_numbers((2, 12), (13, 18), (1, 20)),
    probe=(17, 8, 33),
    large=((66_000, 1, 1), (1, 66_000, 1), (1, 1, 66_000)),
    extents=lambda shape: (shape[1], shape[0], 1),
    block=(8, 8, 1),
    other_block=(16, 3, 1),
    is_square=lambda shape: shape[0] == shape[1],
    rtol=1e-4,
    hints=(
        "Which numbers does a scale multiply? Is it the same for the whole sum over k?",
        "The scales of a row of x and of a row of w do not depend on k: multiply by them once, at"
        " the end.",
        "A zero point belongs to x's row, and must be subtracted before the product.",
    ),
    wrong=(
        (
            "x_scales[row] * w_scales[column]",
            "x_scales[row % x_scales.size] * w_scales[row % w_scales.size]",
            "wrong_value",
        ),
        (" - zeros[row]", "", "wrong_value"),
        ("range(x.shape[1])", "range(min(x.shape[1], 4096))", "only_small"),
        (
            "zeros[row]",
            "zeros[column % zeros.size]",
            "wrong_value",
        ),
        (" * w_scales[column]", "", "wrong_value"),
        (
            "np.int32(x[row, k]) - zeros[row]",
            "np.int8(x[row, k]) - zeros[row]",
            "wrong_value",
        ),
        (
            "row < out.shape[0] and column",
            "column",
            "missing_guard",
        ),
        (
            ("(np.int32(x[row, k]) - zeros[row])", "np.int32(x[row, k])"),
            ("total * x_scales", "(total - zeros[row]) * x_scales"),
            "wrong_value",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The zero point is subtracted once, from the whole sum. But it is in each of the"
            " products: times which weight?",
            lambda out, x, zeros, x_scales, w, w_scales: (
                (x.astype(np.float64) @ w.astype(np.float64).T - zeros[:, None])
                * x_scales[:, None]
                * w_scales
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The scales are right, but the code of zero is never subtracted: `zeros` is not used.",
            lambda out, x, zeros, x_scales, w, w_scales: (
                x.astype(np.float64) @ w.astype(np.float64).T * x_scales[:, None] * w_scales
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The zero point is chosen by the column of the result. It belongs to x's row.",
            zeros_of_columns,
        ),
        Hypothesis(
            "wrong_value",
            "The scale of w is chosen by the row of the result. Row c of w makes column c.",
            lambda out, x, zeros, x_scales, w, w_scales: (
                exact_product(out, x, zeros, x_scales, w, np.ones_like(w_scales))
                * w_scales[np.arange(len(x)) % len(w_scales)][:, None]
            ),
        ),
        Hypothesis(
            "wrong_value",
            "A float32 has 24 bits, and a sum of codes soon more: it was rounded on the way. An int"
            " holds all of it.",
            summed_in_float32,
        ),
        Hypothesis(
            "wrong_value",
            "The scales of x are missing.",
            lambda out, x, zeros, x_scales, w, w_scales: exact_product(
                out, x, zeros, np.ones_like(x_scales), w, w_scales
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The difference of a code and its zero point is kept in 8 bits. It may be below 0, or"
            " above 127: widen both first.",
            lambda out, x, zeros, x_scales, w, w_scales: exact_product(
                out,
                (x - zeros[:, None].astype(np.uint8)).astype(np.uint8),
                np.zeros_like(zeros),
                x_scales,
                w,
                w_scales,
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Codes of w go from -127 to 127. Read as unsigned, those below 0 are 256 too large.",
            lambda out, x, zeros, x_scales, w, w_scales: exact_product(
                out, x, zeros, x_scales, w.view(np.uint8), w_scales
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The scales of w are missing.",
            lambda out, x, zeros, x_scales, w, w_scales: exact_product(
                out, x, zeros, x_scales, w, np.ones_like(w_scales)
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The codes of x go from 0 to 255. Read as int8, those from 128 on are negative.",
            lambda out, x, zeros, x_scales, w, w_scales: exact_product(
                out, x.view(np.int8), zeros, x_scales, w, w_scales
            ),
        ),
    ),
)


# ---- squares: sums of half-precision numbers


@cuda.jit
def mean_square(out, x):
    row = cuda.grid(1)
    if row < x.shape[0]:
        total = np.float32(0)
        for k in range(x.shape[1]):
            value = np.float32(x[row, k])
            total += value * value
        out[row] = total / x.shape[1]


def large_and_many(rng, shape):
    """Some rows of large numbers, whose squares leave float16, and some of many small ones.

    In half the rows each number is one of two: what rounds a square to float16 rounds it the same
    way many times. Not in the longest, where float32 would do so, too.
    """
    sizes = rng.choice([0.05, 1.0, 700.0], (shape[0], 1))
    x = rng.uniform(0.5, 1, shape)
    first_or_second = np.where(rng.random(shape) < 0.5, x[:, :1], x[:, -1:])
    two = (shape[1] < LONG) & (rng.random((shape[0], 1)) < 0.5)
    x = np.where(two, first_or_second, x) * sizes * rng.choice((-1, 1), shape)
    return {"out": Out((shape[0],)), "x": x.astype(np.float16)}


def mean_of_short_squares(out, x):
    with np.errstate(over="ignore"):
        return np.mean(x * x, axis=1, dtype=np.float64)


def mean_of_short_sums(out, x):
    total = np.zeros(len(x), np.float32)
    with np.errstate(over="ignore"):
        for column in x.astype(np.float32).T:
            total = (total + column * column).astype(np.float16).astype(np.float32)
    return total / x.shape[1]


def mean_of_shares_in_half(out, x):
    """With each square divided by their number, and a sum that is rounded to float16."""
    total = np.zeros(len(x), np.float32)
    with np.errstate(over="ignore"):
        for column in x.astype(np.float32).T:
            share = column * column / np.float32(x.shape[1])
            total = (total + share).astype(np.float16).astype(np.float32)
    return total


def mean_of_squares(out, x):
    return np.square(x.astype(np.float64)).mean(1)


def mean_in_half(out, x):
    with np.errstate(over="ignore"):
        return mean_of_squares(out, x).astype(np.float16).astype(np.float32)


SQUARES = Exercise(
    id="low_precision.squares",
    title="A sum that must not be short",
    minutes=5,
    task=(
        "`out[row]` is the mean of the squares of a row of float16 numbers, with float32's"
        " precision. (RMS norm divides by its root.) This kernel returns infinity where the numbers"
        " are large, and too little where the rows are long. (One thread per row is enough here:"
        " this exercise is about digits, not about speed.)"
    ),
    starter="""
@cuda.jit
def mean_square(out, x):
    row = cuda.grid(1)
    if row < x.shape[0]:
        total = np.float16(0)
        for k in range(x.shape[1]):
            total = np.float16(total + x[row, k] * x[row, k])
        out[row] = np.float32(total) / x.shape[1]
""",
    solution=mean_square,
    inputs=large_and_many,
    reference=mean_of_squares,
    shapes=((1, 1), (5, 40), (33, 65), (7, 1500)),
    fresh=some_numbers((2, 40), (20, 90)),
    large=((1, 66_000), (66_000, 1)),
    specials="finite",  # a sum that corrects itself makes infinity less itself, which is NaN
    extents=a_thread_a_row,
    other_block=(96, 1, 1),
    is_square=lambda shape: False,
    rtol=1e-4,
    hints=(
        "The largest float16 is 65,504. What is the square of 700?",
        "Two places round, the product and the sum: each has the type of its operands.",
        "Convert x first: `np.float32(x[row, k])`; and begin with `np.float32(0)`.",
    ),
    wrong=(
        (
            "total += value * value",
            "total = np.float32(np.float16(total + value * value))",
            "wrong_value",
        ),
        (
            "total += value * value",
            "total += np.float32(np.float16(value * value))",
            "wrong_value",
        ),
        ("total / x.shape[1]", "total / x.shape[0]", "wrong_value"),
        ("np.float32(x[row, k])", "max(np.float32(x[row, k]), np.float32(0))", "wrong_value"),
        ("range(x.shape[1])", "range(x.shape[1] & 0x7FFF)", "only_small"),
        ("/ x.shape[1]", "/ np.float16(x.shape[1])", "only_small"),
        (
            "total += value * value",
            "total += value",
            "wrong_value",
        ),
        ("row < x.shape[0]", "True", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Numbers below 0 do not count here. Their squares are as large as those of the others.",
            lambda out, x: mean_of_squares(out, np.maximum(x, 0)),
        ),
        Hypothesis(
            "wrong_value",
            "The sum is float32, but each product of two float16 numbers is a float16 again.",
            mean_of_short_squares,
        ),
        Hypothesis(
            "wrong_value",
            "The squares are float32, but their sum becomes a float16 again at each step.",
            mean_of_short_sums,
        ),
        Hypothesis(
            "wrong_value",
            "Each square is divided at once, so none is too large. But the sum is still a float16,"
            " which keeps 11 bits: about three digits are right, and what is small gets lost.",
            mean_of_shares_in_half,
        ),
        Hypothesis(
            "wrong_value",
            "This divides by the number of rows. The mean is over the numbers of one row.",
            lambda out, x: np.square(x.astype(np.float64)).sum(1) / len(x),
        ),
        Hypothesis(
            "wrong_value",
            "This is the root of the mean. The mean itself is asked for.",
            lambda out, x: np.sqrt(mean_of_squares(out, x)),
        ),
        Hypothesis(
            "wrong_value",
            "The result is rounded to float16, which has three digits and ends at 65,504: the"
            " output is float32.",
            mean_in_half,
        ),
        Hypothesis(
            "wrong_value",
            "This is the mean of the numbers, not of their squares.",
            lambda out, x: x.astype(np.float64).mean(1),
        ),
    ),
)


# ---- by_chance: stochastic rounding


@cuda.jit
def by_chance(rounded, bits, random):
    i = cuda.grid(1)
    if i < bits.size:
        rounded[i] = (bits[i] + random[i]) >> 16


def bits_and_random(rng, shape):
    """Bits of finite float32 numbers of both signs, the largest too, and random 16 bits each."""
    x = (rng.normal(size=shape) * rng.choice([1e-3, 1, 1e3], shape)).astype(np.float32)
    random = rng.integers(0, 1 << 16, shape).astype(np.uint32)
    bits = x.view(np.uint32)
    bits[rng.random(shape) < 0.2] &= 0xFFFF0003  # little is cut off, or nothing
    bits[rng.random(shape) < 0.1] |= 0xFFFF  # as much as can be
    bits[rng.random(shape) < 0.1] = 0x7F7FFFFF  # the largest: the next step is infinity
    # of some, both together are just enough, or one too few
    lower = bits & 0xFFFF
    just = (1 << 16) - np.maximum(lower, 1) - rng.integers(0, 2, shape).astype(np.uint32)
    random = np.where(rng.random(shape) < 0.3, just, random).astype(np.uint32)
    return {"rounded": Out(shape, np.uint16), "bits": x.view(np.uint32), "random": random}


def up_or_down(rounded, bits, random):
    lower = bits.astype(np.int64) & 0xFFFF
    return ((bits.astype(np.int64) >> 16) + (lower + random >= 1 << 16)).astype(np.uint16)


BY_CHANCE = Exercise(
    id="low_precision.by_chance",
    title="Round by chance",
    minutes=5,
    task=(
        "bfloat16 is the upper half of a float32. Cut the 32 bits of a float, `bits[i]`, down to"
        " their upper 16, and round away from zero with a *probability* as large as the part that"
        " is cut off. That part is `low`, the lower 16 bits; `random[i]` is a number from 0 to"
        " 65,535, and its `low` *largest* values round away from zero. If `low` is 3, just 65,533,"
        " 65,534 and 65,535 do. No comparison is needed."
    ),
    starter="""
@cuda.jit
def by_chance(rounded, bits, random):
    i = cuda.grid(1)
    if i < bits.size:
        rounded[i] = bits[i] >> 16  # always toward zero
""",
    solution=by_chance,
    inputs=bits_and_random,
    reference=up_or_down,
    large=(66_000,),
    shapes=lengths(1, 31, 33, 100, 257),
    fresh=some_numbers((34, 300), few=True),
    extents=a_thread_each,
    is_square=lambda shape: False,
    other_block=(96, 1, 1),
    hints=(
        "If `low` is 3, then 65,533, 65,534 and 65,535 round away from zero: what do they have in"
        " common when `low` is added to them?",
        "When a sum of two numbers of 16 bits is at least 65,536, what happens in bit 16?",
        "Add first, then cut: the carry does the rest, even into the exponent.",
    ),
    wrong=(
        ("(bits[i] + random[i])", "(bits[i] + 0x8000)", "wrong_value"),
        ("(bits[i] + random[i]) >> 16", "(bits[i] >> 16) + (random[i] >> 15)", "wrong_value"),
        ("bits[i] + random[i]", "bits[i] - random[i]", "wrong_value"),
        ("bits[i] + random[i]", "bits[i] + random[0]", "wrong_value"),
        (
            "(bits[i] + random[i]) >> 16",
            "(bits[i] >> 16) + (random[i] < (bits[i] & 0xFFFF))",
            "wrong_value",
        ),
        ("i < bits.size", "True", "missing_guard"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "A number with `random[i] == 65536 - low` must move away from zero, too: `>=`.",
            lambda rounded, bits, random: up_or_down(rounded, bits, random.astype(np.int64) - 1),
        ),
        Hypothesis(
            "wrong_value",
            "A number with `random[i] == 65535 - low` moves away from zero, one too early.",
            lambda rounded, bits, random: up_or_down(rounded, bits, random.astype(np.int64) + 1),
        ),
        Hypothesis(
            "wrong_value",
            "Numbers below 0 always move toward zero here. Their bits are cut in the same way.",
            lambda rounded, bits, random: np.where(
                bits >> 31, bits >> 16, up_or_down(rounded, bits, random)
            ).astype(np.uint16),
        ),
        Hypothesis(
            "wrong_value",
            "This rounds to the nearest, whatever `random` says.",
            lambda rounded, bits, random: up_or_down(rounded, bits, np.uint32(0x8000)),
        ),
        Hypothesis(
            "wrong_value",
            "Here every number moves away from zero with a chance of one half. The chance must be"
            " as large as the part that is cut off.",
            lambda rounded, bits, random: ((bits >> 16) + (random >> 15)).astype(np.uint16),
        ),
        Hypothesis(
            "wrong_value",
            "As many random values as the task asks for move a number away from zero, but the"
            " smallest ones. It must be the largest: then no comparison is needed.",
            lambda rounded, bits, random: ((bits >> 16) + (random < bits & 0xFFFF)).astype(
                np.uint16
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Every number moves toward zero, as nothing comes up from the lower half. `|` and `^`"
            " carry nothing; which operation does?",
            lambda rounded, bits, random: (bits >> 16).astype(np.uint16),
        ),
        Hypothesis(
            "wrong_value",
            "This subtracts `random`, so numbers move toward zero, and even those that need no"
            " rounding do.",
            lambda rounded, bits, random: ((bits - random) >> 16).astype(np.uint16),
        ),
        Hypothesis(
            "wrong_value",
            "All numbers are rounded by the same random value, `random[0]`.",
            lambda rounded, bits, random: up_or_down(rounded, bits, random[:1]),
        ),
    ),
)


EXERCISES = (SATURATE, BY_CHANCE, SQUARES, BALANCE, ZERO_POINT, NIBBLES, FOUR_BITS)


QUIZZES = (
    Quiz(
        id="low_precision.q_code",
        question=(
            "e5m2 has 5 bits of exponent, with the bias 15, and 2 of mantissa. Which number is"
            " `0 10001 10`?"
        ),
        answer=6,
        explain_right="The exponent is 17 - 15 = 2, and the mantissa gives 1 + 2/4: 4 · 1.5.",
        explain={
            4: "That is 2 to the exponent. The mantissa still makes it larger.",
            1.5: "That is the mantissa, with its leading 1. The exponent still moves it.",
            None: "First the exponent, less the bias; then 1 + mantissa / 4.",
        },
    ),
    Quiz(
        id="low_precision.q_sparse",
        question=(
            "Four neighbours in bfloat16 are 64 bits. Two of them are kept, each with its place"
            " among the four. How many bits are left?"
        ),
        answer=36,
        unit="bits",
        explain_right="Two numbers of 16 bits, and 2 bits each for their places.",
        explain={
            32: "These are the two numbers. Where in the four did they stand?",
            None: "Two numbers of 16 bits each, and for each of them which of four places it had.",
        },
    ),
    one_of(
        "low_precision.q_largest",
        "e4m3's largest number is 448, e5m2's 57,344, both in 8 bits. What does e4m3 get for it?",
        (
            "Nothing: it is the older format",
            "Both were proposed together. Count its bits of mantissa.",
        ),
        (
            "Twice as many numbers between 1 and 2",
            "One bit more of mantissa: 8 steps per octave instead of 4.",
        ),
        (
            "Smaller numbers near zero",
            "The other way round: more exponent bits reach further at both ends.",
        ),
        answer="b",
    ),
    one_of(
        "low_precision.q_half",
        (
            "A float16 weight (10 bits of mantissa) is 1. Every step adds 0.001, rounded to the"
            " nearest. Where is it after 1,000 steps?"
        ),
        (
            "at 1",
            "That is bfloat16's. How far above 1 is the next number with 10 bits of mantissa?",
        ),
        (
            "at about 2",
            (
                "The next float16 above 1 is 1.00098, so each step moves it by one, to 1.98. In"
                " bfloat16, with 7 bits, the next is 1.0078: there it never moves."
            ),
        ),
        ("at infinity", "Float16's largest number is 65,504, far from here."),
        answer="b",
    ),
    Quiz(
        id="low_precision.q_int4",
        question=(
            "4-bit weights with a scale of 16 bits for every 128: how many times fewer bytes than"
            " bfloat16, to one decimal?"
        ),
        choices={"a": "4.0", "b": "3.9", "c": "3.6"},
        answer="b",
        explain_right="4 + 16 / 128 = 4.125 bits a weight: 16 / 4.125.",
        explain={None: "How many bits does a weight have, with its share of the scale?"},
    ),
)
