"""The exercises of the chapter on Triton whose answers are kernels; `triton.py` gathers them."""

import utils  # noqa: F401  first: it puts Triton on this machine's engine

# isort: split
from functools import partial

import numpy as np
import torch
import triton
import triton.language as tl

from course.checking.inputs import some_numbers, with_small
from course.checking.model import Hypothesis, Out, Speed
from course.checking.triton_kernels import TritonExercise, name_kernels_as_numba_does
from utils.cpu.triton import to_tf32

name_kernels_as_numba_does()
MANY = 300  # elements, from which on some are special
MANY_IN_A_ROW = 16  # the same
#: Of products, tile by tile
SQUARES = Speed("matrices of 1024 × 1024", 1024, lambda side: (side, side, side), block=32)


def normal(rng, *sizes):
    """Normally distributed float32 numbers, some of them 0, some near it."""
    return with_small(rng, rng.standard_normal(sizes).astype(np.float32))


def some_special(rng, *sizes):
    """Normally distributed float32 numbers, and among many of them infinity, NaN and -0."""
    x = normal(rng, *sizes)
    special = np.array((np.inf, -np.inf, np.nan, -0.0), np.float32)
    if x.size > MANY:
        x.flat[rng.choice(x.size, special.size, replace=False)] = special
    return x


def tiles(shape, block):
    """A program for each tile of block × block elements of a matrix."""
    return triton.cdiv(shape[0], block), triton.cdiv(shape[1], block)


# ---- blend: programs and masks


@triton.jit
def blend(out, x, y, weight, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(x + i, mask=inside)
    b = tl.load(y + i, mask=inside)
    tl.store(out + i, weight * a + (1 - weight) * b, mask=inside)


BLEND = TritonExercise(
    id="triton.blend",
    title="Blend two pictures",
    minutes=6,
    task=(
        "`out = weight * x + (1 - weight) * y`, for `n` elements of each. As many programs as are"
        " needed run, each with `BLOCK` elements; the last has fewer."
    ),
    starter="""
@triton.jit
def blend(out, x, y, weight, n, BLOCK: tl.constexpr):
    pass
""",
    solution=blend,
    inputs=lambda rng, n: {
        "out": Out((n,)),
        "x": normal(rng, n),
        "y": normal(rng, n),
        "weight": float(np.float32(rng.uniform(-1, 2))),
        "n": n,
    },
    reference=lambda out, x, y, weight, n, BLOCK: weight * x + (1 - weight) * y,
    shapes=(64, 1, 200, 66_000, 129),
    fresh=lambda rng: int(rng.integers(65, 300)),
    blocks=(64, 32, 128, 1024),
    speed=Speed("2 million elements", 2 << 20, lambda count: count, block=1024),
    grid=lambda n, block: (triton.cdiv(n, block),),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "That is weight * x + weight * y: y's share is 1 - weight.",
            lambda out, x, y, weight, n, BLOCK: weight * x + weight * y,
        ),
        Hypothesis(
            "wrong_value",
            "The two shares have changed places: `weight` is x's, and 1 - weight is y's.",
            lambda out, x, y, weight, n, BLOCK: (1 - weight) * x + weight * y,
        ),
        Hypothesis(
            "wrong_value",
            "That is weight * x + 1 - weight * y: the brackets round 1 - weight are missing.",
            lambda out, x, y, weight, n, BLOCK: weight * x + 1 - weight * y,
        ),
    ),
    hints=(
        "What does `tl.arange(0, BLOCK)` need in front of it, so that program 3 does not do"
        " program 0's elements?",
        "`i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)`. Which of these exist?",
        "`mask=i < n` belongs to *each* of the two loads and to the store.",
    ),
    wrong=(
        ("+ (1 - weight) * b, mask=inside", "+ (1 - weight) * b", "out_of_bounds"),
        ("a = tl.load(x + i, mask=inside)", "a = tl.load(x + i)", "out_of_bounds"),
        ("i < n", "i <= n", "out_of_bounds"),
        ("tl.program_id(0) * BLOCK + ", "", "race"),
        (
            "tl.store(out + i, weight * a + (1 - weight) * b, mask=inside)",
            "tl.store(out + i, 0 * a, mask=inside)\n    tl.store(x + i, 0 * a, mask=inside)"
            "\n    tl.store(y + i, 0 * b, mask=inside)",
            "modifies_input",
        ),
        ("i < n", "i < n - 1", "unwritten"),
        (
            "i, weight * a",
            "i, tl.load(out + i, mask=inside) + weight * a",
            "reads_output",
        ),
        ("(1 - weight)", "weight", "wrong_value"),
        ("(1 - weight)", "1 - weight", "wrong_value"),
        ("weight * a + (1 - weight) * b", "(1 - weight) * a + weight * b", "wrong_value"),
        ("tl.program_id(0) * BLOCK", "tl.program_id(0) * 64", "race"),
        (
            "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    inside = i < n\n",
            "    i = tl.arange(0, 131072)\n    inside = (i < n) & (tl.program_id(0) == 0)\n",
            "one_thread",
        ),
    ),
)

# ---- log_sum: what is behind the end of a row


@triton.jit
def log_sum(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
    top = tl.max(values, 0)
    tl.store(out + row, top + tl.log(tl.sum(tl.exp(values - top), 0)))


def logarithm_of_sum(out, x, columns, BLOCK):
    """The logarithm of each row's sum of exponentials, in float64."""
    x = x.astype(np.float64)
    top = x.max(1)
    return top + np.log(np.exp(x - top[:, None]).sum(1))


def padded_with(number, out, x, columns, BLOCK):
    """What comes of this number as `other=`."""
    padded = np.pad(x, ((0, 0), (0, BLOCK - columns)), constant_values=number)
    return logarithm_of_sum(out, padded, BLOCK, BLOCK)


def zeros_in_the_maximum(out, x, columns, BLOCK):
    """What comes of `other=0.0` where the sum alone leaves out what does not exist."""
    top = x.max(1, keepdims=True)
    return less_in_float32(x, np.maximum(top, 0) if columns < BLOCK else top)


def to_base_two(out, x, columns, BLOCK):
    """What comes of `tl.log2`."""
    top = x.max(1)
    return top + (logarithm_of_sum(out, x, columns, BLOCK) - top) / np.log(2)


def without_top(out, x, columns, BLOCK):
    """What comes of it where the maximum is not added again."""
    return logarithm_of_sum(out, x, columns, BLOCK) - x.max(1)


def less_in_float32(x, subtracted):
    """What comes of it where this is subtracted in place of the maximum."""
    with np.errstate(over="ignore", divide="ignore"):
        powers = np.exp(x - np.float32(subtracted)).astype(np.float32)
        return np.log(powers.sum(1, dtype=np.float32)) + np.ravel(subtracted)


def far_apart(rng, rows, columns):
    """Rows of float32 around 1000, -200, 200 or -1000.

    From the fifth on one element of a row, the first or the last, is far above the rest.
    """
    around = (1000, -200, 200, -1000)
    first = int(rng.integers(len(around)))
    x = normal(rng, rows, columns)
    for row in range(rows):
        x[row] += around[(first + row) % len(around)]
    x[4::2, 0] += 300
    x[5::2, -1] += 300
    return x


LOG_SUM = TritonExercise(
    id="triton.log_sum",
    title="The logarithm of a sum",
    minutes=10,
    task=(
        "Program r writes `log(sum(exp(x)))` of row r: the heart of a cross-entropy loss. The"
        " starter works for small numbers in rows of exactly `BLOCK` columns. Make it right for"
        " fewer columns, too, and for numbers around a thousand, of either sign, even where one"
        " number of a row is hundreds above the others."
    ),
    starter="""
@triton.jit
def log_sum(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns)
    tl.store(out + row, tl.log(tl.sum(tl.exp(values), 0)))
""",
    solution=log_sum,
    inputs=lambda rng, shape: {
        "out": Out(shape[:1]),
        "x": far_apart(rng, *shape),
        "columns": shape[1],
    },
    reference=logarithm_of_sum,
    shapes=((3, 128), (1, 1), (8, 77), (2, 127), (8, 50)),
    fresh=some_numbers((2, 6), (2, 127)),
    large=(300, 2),
    blocks=(128, 256),
    speed=Speed("16,384 rows of 256", 1 << 14, lambda rows: (rows, 256), block=256),
    grid=lambda shape, block: shape[:1],
    rtol=1e-6,  # beside a thousand, one number of 128 in the sum is 8e-6
    hints=(
        "What does `tl.load` give where the mask is False and there is no `other=`? And what would"
        " a 0 there add to the sum?",
        "exp(200) is too large for float32. `log(sum(exp(x)))` is"
        " `top + log(sum(exp(x - top)))` for any `top`.",
        "`other=-float('inf')`: the maximum does not see it, and exp of it is 0. Then"
        " `top = tl.max(values, 0)`.",
    ),
    wrong=(
        (', other=-float("inf")', "", "uninitialized"),
        ('other=-float("inf")', "other=0.0", "wrong_value"),
        ('other=-float("inf")', "other=-1000.0", "wrong_value"),
        (", mask=column < columns", ", mask=column < BLOCK", "out_of_bounds"),
        ("top = tl.max(values, 0)", "top = 0.0", "wrong_value"),
        (
            "top = tl.max(values, 0)",
            "top = tl.load(x + row * columns)",
            "wrong_value",
        ),
        (
            "top = tl.max(values, 0)",
            "top = tl.sum(values, 0) / columns",
            "wrong_value",
        ),
        ("top + tl.log", "tl.log", "wrong_value"),
        (
            ('other=-float("inf")', "other=0.0"),
            ("tl.exp(values - top)", "tl.where(column < columns, tl.exp(values - top), 0)"),
            "wrong_value",
        ),
        ("tl.log(", "tl.log2(", "wrong_value"),
        ("row * columns", "row * BLOCK", "out_of_bounds"),
        ("out + row,", "out,", "race"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "With `other=0.0` the columns that do not exist count as numbers 0: they take part in"
            " the maximum, and each adds exp(0 - top) to the sum.",
            partial(padded_with, 0),
        ),
        Hypothesis(
            "wrong_value",
            "With `other=0.0` the columns that do not exist take part in the maximum. In a row"
            " below zero 0 is the largest then: every `exp` is 0, and its logarithm -infinity.",
            zeros_in_the_maximum,
        ),
        Hypothesis(
            "wrong_value",
            "`other=-1000.0` is not low enough: there are rows around -1000, and larger ones could"
            " lie lower still. Only -infinity adds nothing.",
            partial(padded_with, -1000),
        ),
        Hypothesis(
            "wrong_value",
            "This subtracts each row's first number. Another one may be hundreds above it, and"
            " `exp` of the difference is infinite: subtract the largest.",
            lambda out, x, columns, BLOCK: less_in_float32(x, x[:, :1]),
        ),
        Hypothesis(
            "wrong_value",
            "This subtracts each row's mean, or another number far below the largest. `exp` of the"
            " difference is infinite then: subtract the largest.",
            lambda out, x, columns, BLOCK: less_in_float32(x, x.mean(1, keepdims=True)),
        ),
        Hypothesis(
            "wrong_value",
            "This subtracts the largest *magnitude*. In a row below zero that is no number of the"
            " row: every `exp` is 0, and the logarithm of 0 is -infinity.",
            lambda out, x, columns, BLOCK: less_in_float32(x, np.abs(x).max(1, keepdims=True)),
        ),
        Hypothesis(
            "wrong_value",
            "Nothing is subtracted: `exp` of a thousand is infinite in float32, and of -1000 it is"
            " 0. Subtract the row's largest, and add it again at the end.",
            lambda out, x, columns, BLOCK: less_in_float32(x, np.zeros((len(x), 1))),
        ),
        Hypothesis(
            "wrong_value",
            "This subtracts 1000 from every row, wherever that lies: subtract the row's largest.",
            lambda out, x, columns, BLOCK: less_in_float32(x, np.full((len(x), 1), 1000)),
        ),
        Hypothesis(
            "wrong_value",
            "That has the logarithm to base 2, and `exp` has base e: `tl.log`.",
            to_base_two,
        ),
        Hypothesis(
            "wrong_value",
            "That is each row's largest number alone: the logarithm of the scaled sum is missing.",
            lambda out, x, columns, BLOCK: x.max(1),
        ),
        Hypothesis(
            "wrong_value",
            "That is the logarithm of the scaled sum. What was subtracted must be added again.",
            without_top,
        ),
    ),
)

# ---- product: what tl.dot cuts off


@triton.jit
def product(c, a, b, m, n, k, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    total = tl.zeros((B, B), tl.float32)
    for k0 in range(0, k, B):
        right = k0 + tl.arange(0, B)[None, :]
        down = k0 + tl.arange(0, B)[:, None]
        tile_a = tl.load(a + row * k + right, mask=(row < m) & (right < k), other=0.0)
        tile_b = tl.load(b + down * n + column, mask=(down < k) & (column < n), other=0.0)
        total = tl.dot(tile_a, tile_b, total, input_precision="ieee")
    tl.store(c + row * n + column, total, mask=(row < m) & (column < n))


def factors(rng, shape):
    """Arguments of `product`. In long sums one of the products is zero times infinity.

    It stands in a tile of a that is all zeros: that is no reason to leave the tile out.
    In larger ones a row of a and a column of b end with an infinity: who reads it again behind the
    end gets NaN from it, times zero.
    """
    m, n, k = shape
    a, b = normal(rng, m, k), normal(rng, k, n)
    if k > 64:
        meet = rng.integers(k)
        tile = meet // 32 * 32
        a[:, tile : tile + 32] = 0
        b[meet, rng.integers(n)] = np.inf
    if min(shape) > MANY_IN_A_ROW:
        a[rng.integers(m), -1] = np.inf
        b[-1, rng.integers(n)] = -np.inf
    return {
        "c": Out((m, n)),
        "a": a,
        "b": b,
        "m": m,
        "n": n,
        "k": k,
    }


def product_in_float64(c, a, b, m, n, k, B):
    """a b in float64; zero times infinity is NaN."""
    with np.errstate(invalid="ignore"):
        return a.astype(np.float64) @ b.astype(np.float64)


def last_step(a, b, k, B):
    """The columns of a and the rows of b of the last step along k."""
    first = (k - 1) // B * B
    return a[:, first:], b[first:]


def first_of_each_sum(c, a, b, m, n, k, B):
    """What comes of `right < n` in the mask of a."""
    return product_in_float64(c, a[:, :n], b[:n], m, n, k, B)


def to_bf16(x):
    """The nearest numbers that bfloat16 has, as float32."""
    return torch.from_numpy(np.asarray(x, np.float32)).bfloat16().float().numpy()


def with_the_last_row_again(c, a, b, m, n, k, B):
    """What comes of zeros in a, and b's last row once more, behind k."""
    whole = product_in_float64(c, a, b, m, n, k, B)
    if k % B:
        whole[:, ~np.isfinite(b[-1])] = np.nan
    return whole


def with_the_last_column_again(c, a, b, m, n, k, B):
    """What comes of zeros in b, and a's last column once more, behind k."""
    whole = product_in_float64(c, a, b, m, n, k, B)
    if k % B:
        whole[~np.isfinite(a[:, -1])] = np.nan
    return whole


PRODUCT = TritonExercise(
    id="triton.product",
    title="A product in float32",
    minutes=9,
    task=(
        "`c = a b`: a has m × k elements, b has k × n. The starter keeps only three of seven"
        " decimal digits, and reads behind the end where k is no multiple of B. Give it both: the"
        " digits that float32 has (or as many as `tf32x3` keeps), and every k. The matrices may"
        " hold infinities, and zero times infinity is NaN."
    ),
    starter="""
@triton.jit
def product(c, a, b, m, n, k, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    total = tl.zeros((B, B), tl.float32)
    for k0 in range(0, k, B):
        right = k0 + tl.arange(0, B)[None, :]
        down = k0 + tl.arange(0, B)[:, None]
        tile_a = tl.load(a + row * k + right, mask=row < m, other=0.0)
        tile_b = tl.load(b + down * n + column, mask=column < n, other=0.0)
        total = tl.dot(tile_a, tile_b, total)
    tl.store(c + row * n + column, total, mask=(row < m) & (column < n))
""",
    solution=product,
    inputs=factors,
    reference=product_in_float64,
    shapes=((16, 16, 32), (1, 1, 1), (20, 30, 150), (17, 40, 33), (3, 2, 600)),
    fresh=some_numbers((17, 40), (17, 40), (65, 130)),
    large=((300, 1, 2), (1, 300, 2)),
    blocks=(16, 32),
    speed=SQUARES,
    grid=tiles,
    rtol=2e-6,
    rounds=True,
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "That is the product of a and b cut to TF32, 10 bits of fraction.",
            lambda c, a, b, m, n, k, B: product_in_float64(c, to_tf32(a), to_tf32(b), m, n, k, B),
        ),
        Hypothesis(
            "wrong_value",
            "Those are the sums of the last step along k alone: each step must add to `total`.",
            lambda c, a, b, m, n, k, B: product_in_float64(
                c, *last_step(a, b, k, B), m, n, k, B
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Those are only the first n products of each sum: a row of a ends at k, not at n.",
            first_of_each_sum,
        ),
        Hypothesis(
            "wrong_value",
            "That is the product of a and b rounded to bfloat16, 7 bits of fraction.",
            lambda c, a, b, m, n, k, B: product_in_float64(c, to_bf16(a), to_bf16(b), m, n, k, B),
        ),
        *(
            Hypothesis(
                "wrong_value",
                "An infinity is read again behind k, and 0 times infinity is NaN: there must be"
                " zeros in *both* tiles.",
                guess,
            )
            for guess in (with_the_last_row_again, with_the_last_column_again)
        ),
    ),
    hints=(
        "Which elements of a's tile exist in the last step along k? The starter's mask looks at"
        " rows alone.",
        "What lies behind k must add nothing: masked, with other=0.0, in *both* tiles.",
        'By default `tl.dot` cuts float32 factors to TF32. `input_precision="ieee"` does not.'
        ' (`"tf32x3"` makes three products of parts and comes close to it: that is taken, too.)',
    ),
    wrong=(
        (', input_precision="ieee"', "", "wrong_value"),
        ("(row < m) & (right < k), other", "row < m, other", "out_of_bounds"),
        ("(down < k) & (column < n), other=0.0", "(down < k) & (column < n)", "uninitialized"),
        ("a + row * k", "a + row * m", "wrong_value"),
        ("(right < k)", "(right < n)", "wrong_value"),
        (
            ("(down < k) & (column < n)", "column < n"),
            ("b + down * n", "b + tl.minimum(down, k - 1) * n"),
            "wrong_value",
        ),
        ("tile_a, tile_b, total, input", "tile_a, tile_b, input", "wrong_value"),
        ("total, mask=(row", "total.to(tl.bfloat16), mask=(row", "wrong_value"),
        ("down = k0 + ", "down = ", "wrong_value"),
        ("range(0, k, B)", "range(0, min(k, 64), B)", "wrong_value"),
    ),
)  # fmt: skip

# ---- swiglu: two products, and what happens to them before they are stored


@triton.jit
def swiglu(out, x, gate, up, m, n, k, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    gates = tl.zeros((B, B), tl.float32)
    ups = tl.zeros((B, B), tl.float32)
    for k0 in range(0, k, B):
        right = k0 + tl.arange(0, B)[None, :]
        down = k0 + tl.arange(0, B)[:, None]
        inside = (down < k) & (column < n)
        tile = tl.load(x + row * k + right, mask=(row < m) & (right < k), other=0.0)
        tile_gate = tl.load(gate + down * n + column, mask=inside, other=0.0)
        tile_up = tl.load(up + down * n + column, mask=inside, other=0.0)
        gates = tl.dot(tile, tile_gate, gates, input_precision="ieee")
        ups = tl.dot(tile, tile_up, ups, input_precision="ieee")
    result = gates * tl.sigmoid(gates) * ups
    tl.store(out + row * n + column, result, mask=(row < m) & (column < n))


def gated(rng, shape):
    """Arguments of `swiglu`; the products' elements are of the order of 1."""
    m, n, k = shape
    weights = {name: normal(rng, k, n) / np.float32(k**0.5) for name in ("gate", "up")}
    return {"out": Out((m, n)), "x": normal(rng, m, k), **weights, "m": m, "n": n, "k": k}


def swiglu_in_float64(out, x, gate, up, m, n, k, B):
    """silu(x gate) * (x up)."""
    return silu(x.astype(np.float64) @ gate) * (x.astype(np.float64) @ up)


def sigmoid(t):
    """1 / (1 + exp(-t)), without a warning where that is infinite."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-t))


def silu(t):
    return t * sigmoid(t)


def swiglu_step_by_step(out, x, gate, up, m, n, k, B):
    """With silu of the sums so far after each step of the loop."""
    gates = np.zeros((m, n))
    for k0 in range(0, k, B):
        gates = gates + x[:, k0 : k0 + B].astype(np.float64) @ gate[k0 : k0 + B]
        gates = silu(gates)
    return gates * (x.astype(np.float64) @ up)


def swiglu_of_each_step(out, x, gate, up, m, n, k, B):
    """The sum of what each step of the loop would give alone."""
    result = np.zeros((m, n))
    for k0 in range(0, k, B):
        part = slice(k0, k0 + B)
        result += swiglu_in_float64(out, x[:, part], gate[part], up[part], m, n, k, B)
    return result


def swiglu_in_tf32(out, x, gate, up, m, n, k, B):
    """With factors of the second product cut to TF32."""
    return silu(x.astype(np.float64) @ gate) * (to_tf32(x).astype(np.float64) @ to_tf32(up))


def swiglu_all_in_tf32(out, x, gate, up, m, n, k, B):
    return swiglu_in_float64(out, to_tf32(x), to_tf32(gate), to_tf32(up), m, n, k, B)


def swiglu_without_silu(out, x, gate, up, m, n, k, B):
    return (x.astype(np.float64) @ gate) * (x.astype(np.float64) @ up)


def swiglu_by_sigmoid(out, x, gate, up, m, n, k, B):
    return sigmoid(x.astype(np.float64) @ gate) * (x.astype(np.float64) @ up)


def swiglu_of_the_other(out, x, gate, up, m, n, k, B):
    return swiglu_in_float64(out, x, up, gate, m, n, k, B)


def swiglu_of_the_gate(out, x, gate, up, m, n, k, B):
    return swiglu_in_float64(out, x, gate, gate, m, n, k, B)


def swiglu_of_the_product(out, x, gate, up, m, n, k, B):
    return silu(swiglu_without_silu(out, x, gate, up, m, n, k, B))


def swiglu_of_the_last_ups(out, x, gate, up, m, n, k, B):
    """With the second product's last step alone."""
    last_x, last_up = last_step(x, up, k, B)
    return silu(x.astype(np.float64) @ gate) * (last_x.astype(np.float64) @ last_up)


SWIGLU = TritonExercise(
    id="triton.swiglu",
    title="An epilogue with a gate",
    minutes=11,
    task=(
        "`out = silu(x gate) * (x up)`, with `silu(t) = t * sigmoid(t)`: the first half of the"
        " feed-forward layer in Llama and its like. x has m × k elements, gate and up have k × n."
        " The starter computes `x gate`. Add the second product to the same loop, from the tile of"
        " x that is there already, and combine both before the one store."
    ),
    starter="""
@triton.jit
def swiglu(out, x, gate, up, m, n, k, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    gates = tl.zeros((B, B), tl.float32)
    for k0 in range(0, k, B):
        right = k0 + tl.arange(0, B)[None, :]
        down = k0 + tl.arange(0, B)[:, None]
        inside = (down < k) & (column < n)
        tile = tl.load(x + row * k + right, mask=(row < m) & (right < k), other=0.0)
        tile_gate = tl.load(gate + down * n + column, mask=inside, other=0.0)
        gates = tl.dot(tile, tile_gate, gates, input_precision="ieee")
    tl.store(out + row * n + column, gates, mask=(row < m) & (column < n))
""",
    solution=swiglu,
    inputs=gated,
    reference=swiglu_in_float64,
    shapes=((16, 16, 32), (1, 1, 1), (20, 30, 50), (17, 40, 33), (3, 2, 200)),
    fresh=some_numbers((17, 40), (17, 40), (17, 60)),
    powers=(-50, 50),  # the product of two is to fit into a float32
    large=((300, 1, 2), (1, 300, 2), (1, 1, 300)),
    blocks=(16, 32),
    speed=SQUARES,
    grid=tiles,
    rtol=1e-5,
    rounds=True,
    effort=1.2,
    hints=(
        "A second block of sums, `ups`, that begins with zeros like `gates`. Which loads does a"
        " step of the loop need for it?",
        "Only the tile of `up`, at the same places as that of `gate`: the tile of x is there.",
        "After the loop: `gates * tl.sigmoid(gates) * ups`. Inside it the sums are not done.",
    ),
    wrong=(
        ("gates * tl.sigmoid(gates) * ups", "gates * ups", "wrong_value"),
        ("gates * tl.sigmoid(gates) * ups", "tl.sigmoid(gates) * ups", "wrong_value"),
        ("gates * tl.sigmoid(gates) * ups", "ups * tl.sigmoid(ups) * gates", "wrong_value"),
        (
            "ups = tl.dot(tile, tile_up, ups, input",
            "ups = tl.dot(tile, tile_up, input",
            "wrong_value",
        ),
        ("tl.load(up + down * n", "tl.load(gate + down * n", "wrong_value"),
        (
            "        ups = tl.dot(tile,",
            "        inside = (row < m) & (right < k)\n"
            "        again = tl.load(x + row * k + right, mask=inside, other=0.0)\n"
            "        ups = tl.dot(again,",
            "too_much_traffic",
        ),
        (
            "    tl.store(out + row * n + column, result, mask=(row < m) & (column < n))\n",
            "    tl.store(out + row * n + column, result, mask=(row < m) & (column < n))\n" * 2,
            "too_much_traffic",
        ),
        (
            (
                'gates, input_precision="ieee")',
                'gates, input_precision="ieee")\n        gates = gates * tl.sigmoid(gates)',
            ),
            ("gates * tl.sigmoid(gates) * ups", "gates * ups"),
            "wrong_value",
        ),
        (
            "tl.load(up + down * n + column, mask=inside, other",
            "tl.load(up + down * n + column, mask=down < k, other",
            "out_of_bounds",
        ),
        ('ups, input_precision="ieee"', "ups", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "That is `(x gate) * (x up)`: silu is missing.",
            swiglu_without_silu,
        ),
        Hypothesis(
            "wrong_value",
            "That is `sigmoid(x gate) * (x up)`: silu multiplies the sigmoid by t once more.",
            swiglu_by_sigmoid,
        ),
        Hypothesis(
            "wrong_value",
            "`gate` and `up` have changed places: silu belongs to the gate.",
            swiglu_of_the_other,
        ),
        Hypothesis(
            "wrong_value",
            "Both factors come from `x gate`: the second product takes the tile of `up`.",
            swiglu_of_the_gate,
        ),
        Hypothesis(
            "wrong_value",
            "That is silu of the two factors' product: silu belongs to `x gate` alone.",
            swiglu_of_the_product,
        ),
        Hypothesis(
            "wrong_value",
            "`ups` holds the last step along k alone: each step must add to it.",
            swiglu_of_the_last_ups,
        ),
        *(
            Hypothesis(
                "wrong_value",
                "silu stands inside the loop, where the sums are not done: it belongs behind it.",
                guess,
            )
            for guess in (swiglu_step_by_step, swiglu_of_each_step)
        ),
        *(
            Hypothesis(
                "wrong_value",
                "That is with factors cut to TF32, 10 bits of fraction:"
                ' `input_precision="ieee"` belongs to each `tl.dot`.',
                guess,
            )
            for guess in (swiglu_in_tf32, swiglu_all_in_tf32)
        ),
    ),
)

# ---- described: blocks asked for by row and column


@triton.jit
def described(c, a, b, m, n, k, B: tl.constexpr):
    of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [B, B])
    of_b = tl.make_tensor_descriptor(b, [n, k], [k, 1], [B, B])
    of_c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [B, B])
    row = tl.program_id(0) * B
    column = tl.program_id(1) * B
    total = tl.zeros((B, B), tl.float32)
    for k0 in range(0, k, B):
        tile_a = of_a.load([row, k0])
        tile_b = of_b.load([column, k0])
        total = tl.dot(tile_a, tile_b.T, total, input_precision="ieee")
    of_c.store([row, column], total)


def to_describe(rng, shape):
    """Arguments of `described`: rows of b and columns of c are the same things."""
    m, n, k = shape
    return {
        "c": Out((m, n)),
        "a": normal(rng, m, k),
        "b": normal(rng, n, k),
        "m": m,
        "n": n,
        "k": k,
    }


def padded(x, B):
    """x with zeros behind its rows and columns, up to a multiple of B and one block more."""
    rows, columns = (-(-size // B) * B + B for size in x.shape)
    whole = np.zeros((rows, columns))
    whole[: x.shape[0], : x.shape[1]] = x
    return whole


def of_blocks(a, b, B, block):
    """[m, n]: a bᵀ by blocks of B × B, of which `block(wide_b, column, k0)` gives b's.

    b: [n, k], or the same numbers read as [k, n].
    """
    (m, k), n = a.shape, b.size // a.shape[1]
    wide_a, side = padded(a, B), max(n, k)
    wide_b = np.zeros((side + 2 * B, side + 2 * B))
    wide_b[: b.shape[0], : b.shape[1]] = b
    c = np.zeros((m, n + B))
    for column in range(0, n, B):
        for k0 in range(0, k, B):
            tile = wide_a[:m, k0 : k0 + B]
            c[:, column : column + B] += tile @ block(wide_b, column, k0)
    return c[:, :n]


def as_it_comes(wide_b, column, k0, B):
    return wide_b[column : column + B, k0 : k0 + B]


def turned(wide_b, column, k0, B):
    return as_it_comes(wide_b, column, k0, B).T


def of_the_wrong_place(wide_b, column, k0, B):
    return as_it_comes(wide_b, k0, column, B)


def of_the_wrong_place_turned(wide_b, column, k0, B):
    return of_the_wrong_place(wide_b, column, k0, B).T


DESCRIBED = TritonExercise(
    id="triton.described",
    title="Say once what a matrix is",
    minutes=9,
    task=(
        "`c = a bᵀ`: a has m rows of k, and b has n rows of k, as `torch.nn.Linear` keeps its"
        " weights. k and n are multiples of 4, since a descriptor's rows must be multiples of 16"
        " bytes apart. The starter takes b for a matrix of k × n. Describe b as it lies, ask for"
        " the block that you need, and turn it."
    ),
    starter="""
@triton.jit
def described(c, a, b, m, n, k, B: tl.constexpr):
    of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [B, B])  # shape, strides, block
    of_b = tl.make_tensor_descriptor(b, [k, n], [n, 1], [B, B])
    of_c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [B, B])
    row = tl.program_id(0) * B
    column = tl.program_id(1) * B
    total = tl.zeros((B, B), tl.float32)
    for k0 in range(0, k, B):
        tile_a = of_a.load([row, k0])
        tile_b = of_b.load([k0, column])
        total = tl.dot(tile_a, tile_b, total, input_precision="ieee")
    of_c.store([row, column], total)
""",
    solution=described,
    inputs=to_describe,
    reference=lambda c, a, b, m, n, k, B: a.astype(np.float64) @ b.T,
    shapes=((16, 16, 32), (1, 4, 4), (20, 32, 52), (17, 40, 36), (3, 8, 200)),
    fresh=lambda rng: tuple(int(4 * q) for q in rng.integers(5, 12, 3)),
    large=((300, 4, 4), (1, 300, 4), (1, 4, 300)),
    blocks=(16, 32),
    speed=SQUARES,
    grid=tiles,
    rtol=1e-5,
    rounds=True,
    call="make_tensor_descriptor",
    hints=(
        "How long is a row of b, and how many rows are there? These are its shape and its first"
        " stride.",
        "Which block of b does a tile of c need? Its rows are the tile's columns: `[column, k0]`.",
        "The block has rows of k; `tl.dot` wants k downwards: `tile_b.T`.",
    ),
    wrong=(
        ("of_b.load([column, k0])", "of_b.load([k0, column])", "wrong_value"),
        (
            ("of_b.load([column, k0])", "of_b.load([k0, column])"),
            ("tile_b.T", "tile_b"),
            "wrong_value",
        ),
        ("column = tl.program_id(1) * B", "column = tl.program_id(1)", "crashed"),
        (
            ("    of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [B, B])\n", ""),
            ("    of_b = tl.make_tensor_descriptor(b, [n, k], [k, 1], [B, B])\n", ""),
            ("    of_c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [B, B])\n", ""),
            ("row = tl.program_id(0) * B", "row = tl.program_id(0) * B + tl.arange(0, B)[:, None]"),
            ("column = tl.program_id(1) * B", "column = tl.program_id(1) * B + tl.arange(0, B)"),
            (
                "tile_a = of_a.load([row, k0])",
                "k1 = k0 + tl.arange(0, B)\n"
                "        tile_a = tl.load(a + row * k + k1, mask=(row < m) & (k1 < k), other=0.0)",
            ),
            (
                "tile_b = of_b.load([column, k0])",
                "there = (column[:, None] < n) & (k1 < k)\n"
                "        tile_b = tl.load(b + column[:, None] * k + k1, mask=there, other=0.0)",
            ),
            (
                "of_c.store([row, column], total)",
                "tl.store(c + row * n + column, total, mask=(row < m) & (column < n))",
            ),
            "other_means",
        ),
        ("tile_b.T", "tile_b", "wrong_value"),
        ("(b, [n, k], [k, 1]", "(b, [k, n], [n, 1]", "wrong_value"),
        ("(b, [n, k], [k, 1]", "(b, [n, k], [n, 1]", "wrong_value"),
        (
            ("(b, [n, k], [k, 1], [B, B])", "(b, [k, n], [1, k], [B, B])"),
            ("of_b.load([column, k0])", "of_b.load([k0, column])"),
            ("tile_b.T", "tile_b"),
            "does_not_compile",
        ),
        ("tile_b.T, total, input", "tile_b.T, input", "wrong_value"),
        ("of_c.store([row, column]", "of_c.store([column, row]", "wrong_value"),
        ('total, input_precision="ieee")', "total)", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "That is the product with b's memory read as k rows of n.",
            lambda c, a, b, m, n, k, B: a.astype(np.float64) @ b.reshape(k, n),
        ),
        Hypothesis(
            "wrong_value",
            "That is the product with b's blocks as they come, rows of k: each must be turned.",
            lambda c, a, b, m, n, k, B: of_blocks(a, b, B, partial(as_it_comes, B=B)),
        ),
        *(
            Hypothesis(
                "wrong_value",
                "That is the product with the block at `[k0, column]`. b has n rows: the tile's"
                f" columns are rows of b, and come first.{more}",
                lambda c, a, b, m, n, k, B, block=block: of_blocks(a, b, B, partial(block, B=B)),
            )
            for block, more in (
                (of_the_wrong_place_turned, ""),
                (of_the_wrong_place, " Then turn it."),
            )
        ),
        *(
            Hypothesis(
                "wrong_value",
                "b's memory is read as k rows of n here, and the blocks are turned. b has n rows of"
                " k: describe it so.",
                lambda c, a, b, m, n, k, B, block=block: of_blocks(
                    a, b.reshape(k, n), B, partial(block, B=B)
                ),
            )
            for block in (turned, of_the_wrong_place_turned)
        ),
        Hypothesis(
            "wrong_value",
            "That is the product of a and b cut to TF32, 10 bits of fraction.",
            lambda c, a, b, m, n, k, B: to_tf32(a).astype(np.float64) @ to_tf32(b).T,
        ),
        Hypothesis(
            "wrong_value",
            "Those are the sums of the last step along k alone: each step must add to `total`.",
            lambda c, a, b, m, n, k, B: np.matmul(*last_step(a.astype(np.float64), b.T, k, B)),
        ),
    ),
)

EXERCISES = (BLEND, LOG_SUM, PRODUCT, SWIGLU, DESCRIBED)
