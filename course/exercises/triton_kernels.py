"""The exercises of the chapter on Triton whose answers are kernels; `triton.py` gathers them."""

import utils  # noqa: F401  first: it puts Triton on this machine's engine

# isort: split
import numpy as np
import triton
import triton.language as tl

from course.checking.inputs import some_numbers
from course.checking.model import InOut, Out, Wrong
from course.checking.triton_kernels import TritonExercise, name_kernels_as_numba_does

name_kernels_as_numba_does()
MANY = 300  # elements, from which on some are special
MANY_IN_A_ROW = 16  # the same


def normal(rng, *sizes):
    """Normally distributed float32 numbers."""
    return rng.standard_normal(sizes).astype(np.float32)


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
    minutes=8,
    task=(
        "`out = weight * x + (1 - weight) * y`, for `n` elements of each. As many programs as are"
        " needed run, each with `BLOCK` elements; the last has fewer."
    ),
    starter="""
@triton.jit
def blend(out, x, y, weight, n, BLOCK: tl.constexpr):
    i = ...
""",
    solution=blend,
    inputs=lambda rng, n: {
        "out": Out((n,)),
        "x": normal(rng, n),
        "y": normal(rng, n),
        "weight": float(np.float32(rng.uniform(0.1, 0.9))),
        "n": n,
    },
    reference=lambda out, x, y, weight, n, BLOCK: weight * x + (1 - weight) * y,
    shapes=(64, 1, 200, 66_000, 129),
    fresh=lambda rng: int(rng.integers(65, 300)),
    blocks=(64, 32, 128, 1024),
    grid=lambda n, block: (triton.cdiv(n, block),),
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
        "Program r writes `log(sum(exp(x)))` of row r: the heart of a cross-entropy loss. This one"
        " works for small numbers in rows of a power of two. Make it right for any row (up to"
        " `BLOCK` columns) and for numbers of a thousand, of either sign, far apart in one row."
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
    blocks=(128, 256),
    grid=lambda shape, block: shape[:1],
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
        ("row * columns", "row * BLOCK", "out_of_bounds"),
        ("out + row,", "out,", "race"),
    ),
)

# ---- transpose: two axes, two strides


@triton.jit
def transpose(out, x, rows, columns, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    inside = (row < rows) & (column < columns)
    tile = tl.load(x + row * columns + column, mask=inside)
    tl.store(out + column * rows + row, tile, mask=inside)


TRANSPOSE = TritonExercise(
    id="triton.transpose",
    title="Turn a matrix",
    minutes=12,
    task=(
        "`out = x.T`: `x` has `rows` × `columns` elements, `out` has `columns` × `rows`. Program"
        " (p, q) takes the tile of B × B that begins at row p B and column q B."
    ),
    starter="""
@triton.jit
def transpose(out, x, rows, columns, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    ...
""",
    solution=transpose,
    inputs=lambda rng, shape: {
        "out": Out(shape[::-1]),
        "x": some_special(rng, *shape),
        "rows": shape[0],
        "columns": shape[1],
    },
    reference=lambda out, x, rows, columns, B: x.T,
    shapes=((16, 16), (1, 1), (20, 35), (40, 10), (182, 190), (33, 16)),
    fresh=some_numbers((17, 40), (17, 40)),
    blocks=(16, 8),
    grid=tiles,
    rtol=0,
    hints=(
        "Element (row, column) of x is the element (column, row) of out. How long is a row of x?"
        " And one of out?",
        "Rows of x are `columns` long, rows of out are `rows` long: `x + row * columns + column`,"
        " and `out + column * rows + row`.",
        "The mask is about which elements exist: `(row < rows) & (column < columns)`, the same for"
        " both, as long as the tile is not turned.",
    ),
    wrong=(
        ("column * rows + row,", "column * columns + row,", "out_of_bounds"),
        ("column * rows + row,", "row * columns + column,", "wrong_value"),
        ("x + row * columns", "x + row * rows", "wrong_value"),
        (
            "(row < rows) & (column < columns)",
            "(row < columns) & (column < rows)",
            "out_of_bounds",
        ),
        ("(row < rows) & (column < columns)", "row < rows", "out_of_bounds"),
        ("tl.program_id(1)", "tl.program_id(0)", "race"),
        ("tile, mask=inside", "tl.trans(tile), mask=inside", "wrong_value"),
    ),
)

# ---- column_sums: programs that meet


@triton.jit
def column_sums(out, x, rows, columns, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)
    inside = (row < rows) & (column[None, :] < columns)
    tile = tl.load(x + row * columns + column[None, :], mask=inside, other=0.0)
    tl.atomic_add(out + column, tl.sum(tile, 0), mask=column < columns)


@triton.jit
def columns_alone(out, x, rows, columns, B: tl.constexpr):
    """Another right answer: the first program of each column of tiles adds up all of it."""
    column = tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for first in range(0, rows, B):
        row = first + tl.arange(0, B)[:, None]
        inside = (row < rows) & (column[None, :] < columns)
        total += tl.sum(tl.load(x + row * columns + column[None, :], mask=inside, other=0.0), 0)
    tl.atomic_add(out + column, total, mask=(column < columns) & (tl.program_id(0) == 0))


def infinite_ends(rng, rows, columns):
    """Normally distributed numbers; of many rows and columns each last one has an infinity."""
    x = normal(rng, rows, columns)
    if min(rows, columns) > MANY_IN_A_ROW:
        x[rng.integers(rows), -1] = np.inf
        x[-1, rng.integers(columns - 1)] = -np.inf
    return x


COLUMN_SUMS = TritonExercise(
    id="triton.column_sums",
    title="Programs that meet",
    minutes=12,
    task=(
        "`out[c]` is the sum of column c; `out` begins with zeros. Program (p, q) has the tile at"
        " row p B and column q B. On a GPU this kernel is right today and wrong tomorrow. Find out"
        " why, and repair it; each element of x is read once."
    ),
    starter="""
@triton.jit
def column_sums(out, x, rows, columns, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)
    inside = (row < rows) & (column[None, :] < columns)
    tile = tl.load(x + row * columns + column[None, :], mask=inside, other=0.0)
    total = tl.load(out + column, mask=column < columns)
    tl.store(out + column, total + tl.sum(tile, 0), mask=column < columns)
""",
    solution=column_sums,
    inputs=lambda rng, shape: {
        "out": InOut(np.zeros(shape[1], np.float32)),
        "x": infinite_ends(rng, *shape),
        "rows": shape[0],
        "columns": shape[1],
    },
    reference=lambda out, x, rows, columns, B: x.astype(np.float64).sum(0),
    shapes=((16, 16), (1, 1), (50, 20), (500, 2), (33, 40)),
    fresh=some_numbers((17, 60), (17, 40)),
    blocks=(16, 8),
    grid=tiles,
    effort=1.9,
    hints=(
        "Which programs share a column? What if two of them load the same total, and then both"
        " store theirs?",
        "Loading, adding and storing must be one step that no other program gets between.",
        "`tl.atomic_add(out + column, tl.sum(tile, 0), mask=column < columns)`.",
    ),
    wrong=(
        (
            "tl.atomic_add(out + column, tl.sum(tile, 0), mask=column < columns)",
            "tl.store(out + column, tl.sum(tile, 0), mask=column < columns)",
            "race",
        ),
        (
            "tl.atomic_add(out + column, tl.sum(tile, 0), mask=column < columns)",
            "total = tl.load(out + column, mask=column < columns)\n"
            "    total += tl.sum(tile, 0)\n"
            "    tl.atomic_xchg(out + column, total, mask=column < columns)",
            "race",
        ),
        (", other=0.0", "", "uninitialized"),
        (
            "tl.sum(tile, 0), mask=column < columns",
            "tl.sum(tile, 0)",
            "out_of_bounds",
        ),
        ("tl.sum(tile, 0)", "tl.sum(tile, 1)", "wrong_value"),
        ("tl.program_id(0)", "tl.program_id(1)", "wrong_value"),
        Wrong(columns_alone, "one_thread"),
        (
            "    tl.atomic_add(out + column, tl.sum(tile, 0)",
            "    again = tl.load(x + row * columns + column[None, :], mask=inside, other=0.0)\n"
            "    tl.atomic_add(out + column, tl.sum(tile + again, 0) / 2",
            "one_thread",
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

    In larger ones a row of a and a column of b end with an infinity: who reads it again behind the
    end gets NaN from it, times zero.
    """
    m, n, k = shape
    a, b = normal(rng, m, k), normal(rng, k, n)
    if k > 64:
        meet = rng.integers(k)
        a[:, meet] = 0
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


PRODUCT = TritonExercise(
    id="triton.product",
    title="A product in float32",
    minutes=15,
    task=(
        "`c = a b`: a has m × k elements, b has k × n. This kernel keeps only three of seven"
        " decimal digits, and reads behind the end where k is no multiple of B. Give it both: every"
        " digit that float32 has, and every k. Zero times infinity stays NaN."
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
    blocks=(16, 32),
    grid=tiles,
    rtol=2e-6,
    rounds=True,
    hints=(
        "Which elements of a's tile exist in the last step along k? A mask of rows alone does not"
        " say.",
        "What lies behind k must add nothing: masked, with other=0.0, in *both* tiles.",
        'By default `tl.dot` cuts float32 factors to TF32. `input_precision="ieee"` does not.',
    ),
    wrong=(
        (', input_precision="ieee"', "", "wrong_value"),
        ("(row < m) & (right < k), other", "row < m, other", "out_of_bounds"),
        ("(down < k) & (column < n), other=0.0", "(down < k) & (column < n)", "uninitialized"),
        ("a + row * k", "a + row * m", "wrong_value"),
        ("tile_a, tile_b, total, input", "tile_a, tile_b, input", "wrong_value"),
        ("total, mask=(row", "total.to(tl.bfloat16), mask=(row", "wrong_value"),
        ("down = k0 + ", "down = ", "wrong_value"),
        ("range(0, k, B)", "range(0, min(k, 64), B)", "wrong_value"),
    ),
)  # fmt: skip

EXERCISES = (BLEND, LOG_SUM, TRANSPOSE, COLUMN_SUMS, PRODUCT)
