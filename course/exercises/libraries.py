"""The exercises of the chapter Libraries."""

import numpy as np
from numba import cuda

from course.checking.inputs import Counted, a_thread_a_row, of_any_size, some_numbers, uniform
from course.checking.model import Exercise, Out, Wrong
from course.checking.quiz import Quiz, one_of
from course.libraries import blas
from course.libraries.philox import Philox

# ---- linear: PyTorch's layer by a column-major library


POISON = -999  # no product of the small numbers here


def linear(gemm, y, x, w, rows, n_in, n_out):
    gemm("T", "N", n_out, rows, n_in, 1, w, n_in, x, n_in, 0, y, n_out)
    return y


def linear_in_numpy(gemm, y, x, w, rows, n_in, n_out):
    product = x.memory.reshape(rows, n_in) @ w.memory.reshape(n_out, n_in).T
    return tuple(product.ravel().tolist())


def one_call_fills_y(given, expected):
    """What is wrong with the means by which the right numbers came, or None."""
    if given["gemm"].calls != 1:
        return f"One call of `gemm` does it all: here are {given['gemm'].calls}."
    if tuple(given["y"].tolist()) != expected:
        return "The result must stand in `y`, the array that was given."
    return None


def linear_in_two_steps(gemm, y, x, w, rows, n_in, n_out):
    """The dodge: a second call, although one does it all."""
    gemm("T", "N", n_out, rows, n_in, 2, w, n_in, x, n_in, 0, y, n_out)
    gemm("T", "N", n_out, rows, n_in, -1, w, n_in, x, n_in, 1, y, n_out)
    return y


def linear_elsewhere(gemm, y, x, w, rows, n_in, n_out):
    """The mistake: a new array is filled, and y stays as it was."""
    other = np.zeros_like(y)
    gemm("T", "N", n_out, rows, n_in, 1, w, n_in, x, n_in, 0, other, n_out)
    return other


def linear_by_columns(gemm, y, x, w, rows, n_in, n_out):
    """The mistake: x and y are taken to be column-major."""
    gemm("N", "N", rows, n_out, n_in, 1, x, rows, w, n_in, 0, y, rows)
    return y


LINEAR = Exercise(
    id="libraries.linear",
    title="PyTorch's layer, by cuBLAS",
    minutes=10,
    kind="function",
    task=(
        "Row-major `x` has `rows` rows of `n_in` numbers, row-major `w` (as in PyTorch's"
        " `Linear`) `n_out` rows of `n_in`. Fill row-major `y` with `x @ w.T` and return it, by one"
        " call of `gemm`, which has the arguments of `cublasSgemm` (without the handle) and its"
        " rules: every matrix is column-major. All arrays are flat; `x` and `w` are on the device,"
        " where only `gemm` can read them, and `y` arrives full of poison."
    ),
    starter="""
def linear(gemm, y, x, w, rows, n_in, n_out):
    # gemm(op_a, op_b, m, n, k, 1, a, lda, b, ldb, 0, y, ldc) with "N" or "T" for each op
    return y
""",
    solution=linear,
    reference=linear_in_numpy,
    after=one_call_fills_y,
    inputs=lambda rng, s: {
        "gemm": Counted(blas.gemm),
        "y": np.full(s[0] * s[2], POISON),
        "x": blas.OnDevice(rng.integers(-9, 10, s[0] * s[1])),
        "w": blas.OnDevice(rng.integers(-9, 10, s[2] * s[1])),
        "rows": s[0],
        "n_in": s[1],
        "n_out": s[2],
    },
    shapes=((2, 3, 4), (1, 1, 1), (4, 2, 3), (3, 3, 3), (1, 5, 2), (6, 1, 4)),
    fresh=lambda rng: tuple(map(int, rng.integers(2, 8, 3))),
    hints=(
        "The library reads your row-major y as yᵀ: n_out × rows. What product gives yᵀ?",
        "yᵀ = w xᵀ. What does the library see when it reads the memory of w: w or wᵀ? And of x?",
        "It sees wᵀ (n_in × n_out), which must be transposed: `'T'`. It sees xᵀ, just what is"
        " wanted: `'N'`. Leading dimensions are the lengths of the rows in memory.",
    ),
    wrong=(
        Wrong(
            linear_by_columns,
            "wrong_value",
            "x, w and y lie row after row, and the library reads column after column.",
        ),
        (
            "w, n_in, x, n_in, 0, y, n_out",
            "x, n_in, w, n_in, 0, y, n_out",
            "crashed",
        ),
        ('"T", "N"', '"N", "N"', "crashed"),
        ("n_out, rows, n_in, 1, w", "rows, n_out, n_in, 1, w", "crashed"),
        ("w, n_in, x, n_in, 0", "w, n_out, x, n_in, 0", "crashed"),
        (
            "n_in, 0, y",
            "n_in, 1, y",
            "wrong_value",
            "With β = 1 the product is added to what y held before: poison.",
        ),
        Wrong(linear_in_two_steps, "other_means"),
        Wrong(linear_elsewhere, "other_means"),
        ("    return y", "    return None", "no_return"),
    ),
)


# ---- as_blas: what a view of an array is to a library


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


def view(rng, shape):
    """Shape, strides and itemsize of a view of an array of random size, often much wider."""
    dtype = rng.choice([np.float16, np.float32, np.float64, np.complex128])
    array = np.zeros(rng.integers(5, rng.choice([12, 300]), 2), dtype)
    seen = VIEWS[shape](array)
    return {"shape": seen.shape, "strides": seen.strides, "itemsize": seen.itemsize}


def as_blas(shape, strides, itemsize):
    (rows, columns), (down, across) = shape, strides
    if down == itemsize and across >= rows * itemsize and across % itemsize == 0:
        return 0, across // itemsize
    if across == itemsize and down >= columns * itemsize and down % itemsize == 0:
        return 1, down // itemsize
    return -1, -1


AS_BLAS = Exercise(
    id="libraries.as_blas",
    title="A view, as the library sees it",
    minutes=10,
    kind="function",
    task=(
        "A NumPy array has a `shape` (rows, columns) and `strides` (bytes from row to row, bytes"
        " from column to column). Return `(0, ld)` if cuBLAS can read it where it lies as a"
        " column-major matrix with leading dimension `ld`, `(1, ld)` if it must be told that it is"
        " transposed, `(-1, -1)` if it must be copied first. Columns may not overlap, and each"
        " begins a whole number of elements behind the one before."
    ),
    starter="""
def as_blas(shape, strides, itemsize):
    (rows, columns), (down, across) = shape, strides
    # (0, ld) as it is, (1, ld) transposed, (-1, -1): must be copied
    return 1, columns  # right for an array that is whole and row-major
""",
    solution=as_blas,
    reference=blas.as_blas,
    inputs=view,
    shapes=tuple(VIEWS),
    fresh=lambda rng: str(rng.choice(list(VIEWS))),
    hints=(
        "In a column-major matrix the next element of a column stands right behind: which stride"
        " is then `itemsize`? And in a row-major one?",
        "The other stride, divided by `itemsize`, is the leading dimension: `a[:, 1:4]` keeps the"
        " whole array's.",
        "Neither stride is `itemsize`: copy. A leading dimension less than the length of a column"
        " (of a row, if transposed): copy. That sorts out negative ones, too.",
    ),
    wrong=(
        (
            ("across // itemsize", "rows"),
            ("down // itemsize", "columns"),
            "wrong_value",
            "The leading dimension is a distance in memory, not a length: of `a[:, 1:4]` it is"
            " the whole array's.",
        ),
        (
            ("across // itemsize", "across"),
            ("down // itemsize", "down"),
            "wrong_value",
            "These are bytes. Leading dimensions count elements.",
        ),
        (
            "if across == itemsize and down",
            "if down",
            "wrong_value",
            "`a[:, ::2]` has gaps between neighbours: no leading dimension describes that.",
        ),
        (
            (" and across >= rows * itemsize", ""),
            (" and down >= columns * itemsize", ""),
            "wrong_value",
            "Rows that overlap, stand in one place or run backwards are no matrix to cuBLAS.",
        ),
        (
            (" and across % itemsize == 0", ""),
            (" and down % itemsize == 0", ""),
            "wrong_value",
            "A field of records may lie 14 bytes apart: that is no whole number of floats.",
        ),
        (
            ("across >= rows * itemsize", "16 * rows * itemsize > across >= rows * itemsize"),
            ("down >= columns", "16 * columns * itemsize > down >= columns"),
            "wrong_value",
        ),
        (
            ("return 0, across", "return 1, across"),
            ("1, down", "0, down"),
            "wrong_value",
            "Row-major is what is transposed to the library; column-major is not.",
        ),
    ),
)


# ---- draws: sequences that do not overlap


def draws(generator, seed, thread, launch, count):
    state = generator(seed, thread, launch * count)
    return [state() for _ in range(count)]


def given(rng, shape):
    names = "seed", "thread", "launch", "count"
    return {"generator": Philox, **dict(zip(names, shape, strict=True))}


DRAWS = Exercise(
    id="libraries.draws",
    title="No number twice",
    minutes=8,
    kind="function",
    task=(
        "A kernel is launched again and again; each time every thread draws `count` numbers. There"
        " is its own sequence for each thread (sequence t of the seed for thread t), and each"
        " launch goes on where the last one stopped, be it the billionth."
        " Return the numbers that one thread draws in one launch, as a list. `generator(seed,"
        " sequence, offset)` is `curand_init`, and a call of what it returns is `curand`."
    ),
    starter="""
def draws(generator, seed, thread, launch, count):
    state = generator(seed, 0, 0)  # all threads, all launches: the same numbers
    return [state() for _ in range(count)]
""",
    solution=draws,
    reference=lambda *given: tuple(draws(*given)),
    inputs=given,
    shapes=((2026, 0, 0, 3), (2026, 1, 0, 3), (2026, 1, 1, 3), (7, 2, 5, 1), (2**40, 3, 2, 6)),
    fresh=lambda rng: tuple(map(int, rng.integers(1, 9, 4))),
    draws=lambda some: some.tuples(
        *(of_any_size(some, (1 << bits) - 1) for bits in (64, 40, 40)), some.integers(0, 9)
    ),
    hints=(
        "Three arguments: the seed is the program's, the sequence the thread's, the offset says"
        " how many numbers of the sequence are gone.",
        "Before launch l there were l launches, and each took `count` numbers.",
    ),
    wrong=(
        (
            "generator(seed, thread,",
            "generator(seed + thread, 0,",
            "wrong_value",
            "Another seed for each thread gives unrelated sequences that may overlap or be alike;"
            " the sequences of *one* seed are apart by construction.",
        ),
        (
            "launch * count",
            "0",
            "wrong_value",
            "Every launch draws the same numbers as the first.",
        ),
        ("launch * count", "launch * count % 2**32", "wrong_value"),
        ("launch * count", "launch % 10_000 * count", "wrong_value"),
        ("(seed, thread", "(seed, thread % 2**20", "wrong_value"),
        (
            "launch * count",
            "launch",
            "wrong_value",
            "Launches overlap: launch 1 begins at the second number of launch 0.",
        ),
        (
            "seed, thread, launch * count",
            "seed, launch, thread * count",
            "wrong_value",
            "Thread and launch are mixed up: the sequence is the thread's.",
        ),
        (
            "generator(seed, thread,",
            "generator(seed, 0,",
            "wrong_value",
            "All threads draw the same numbers.",
        ),
        (
            "seed, thread, launch * count",
            "seed, (launch << 32) + thread, 0",
            "wrong_value",
            "No number comes twice, and that is a good way; but here each thread keeps its one"
            " sequence, and a launch goes on where the last one stopped.",
        ),
    ),
)


# ---- polynomials: cuFFT's layout and scale


def multiply(r2c, c2r, p, q):
    n = len(p) + len(q) - 1
    padded = np.zeros((2, n))
    padded[0, : len(p)] = p
    padded[1, : len(q)] = q
    product = c2r(r2c(padded[0]) * r2c(padded[1]), n) / n
    return np.rint(product).astype(int)


def r2c(x):
    """cufftExecR2C: n reals to n / 2 + 1 complex numbers."""
    return np.fft.rfft(x)


def c2r(bins, n):
    """cufftExecC2R: back to n reals, n times as large."""
    if len(bins) != n // 2 + 1:
        raise ValueError(f"{n} reals have {n // 2 + 1} bins, not {len(bins)}")
    return np.fft.irfft(bins, n) * n


def coefficients(rng, count):
    """Random numbers of four digits, half of them zero in some; 20 are the largest there are."""
    numbers = rng.integers(-9999 if count < 20 else 9999, 10_000, count)
    if count < 20 and rng.random() < 0.3:
        numbers[rng.random(count) < 0.5] = 0
    return numbers


def two_polynomials(rng, shape):
    p, q = coefficients(rng, shape[0]), coefficients(rng, shape[1])
    return {"r2c": Noted(r2c, p=p.copy(), q=q.copy()), "c2r": Counted(c2r), "p": p, "q": q}


class Noted(Counted):
    """A transform that remembers what went in, row by row.

    inputs: the answer's own, by name, as they were before it could change them.
    """

    def __init__(self, function, **inputs):
        super().__init__(function)
        self.inputs, self.given = inputs, []

    def __call__(self, *arguments, **named):
        result = super().__call__(*arguments, **named)
        self.given += rows_of((*arguments, *named.values())[0])
        return result


def rows_of(array):
    """A copy of each row of an array, its real numbers, in a list."""
    array = np.real(array).astype(float)
    return list(array.reshape(-1, array.shape[-1]))


def came_from(numbers, rows):
    """Whether numbers are a sum of multiples of these rows, or stand among their values."""
    rows = [row for row in rows if np.isfinite(row).all()]
    if not rows:
        return False
    if np.isin(numbers, [0, *np.concatenate(rows)]).all():
        return True
    columns = np.zeros((max(len(numbers), *map(len, rows)), len(rows)))
    for column, row in zip(columns.T, rows, strict=True):
        column[: len(row)] = row
    factors = np.linalg.lstsq(columns[: len(numbers)], numbers, rcond=None)[0]
    rest = numbers - columns[: len(numbers)] @ factors
    return np.abs(rest).max() < 1e-6 * np.abs(numbers).max()


def by_the_library(given, expected):
    """What is wrong with the means by which the right numbers came, or None."""
    there, back = given["r2c"], given["c2r"]
    if not there.calls or not back.calls:
        return (
            f"`r2c` was called {there.calls} times, `c2r` {back.calls} times: go through these"
            " transforms."
        )
    for name, coefficients in there.inputs.items():
        if not came_from(coefficients, there.given):
            return f"`{name}` did not go through `r2c`: transform both polynomials by it."
    if back.is_idle:
        return "The product did not come out of `c2r`: go back by it."
    return None


def play_twice(answer, r2c, c2r, p, q):
    """What an answer returns; and note in c2r whether it returns that whatever c2r gives it."""
    turned = Counted(lambda bins, n: c2r.function(bins, n) + 100 * n)  # it may divide by 4 n
    mine = p.copy(), q.copy()
    returned = answer(r2c, c2r, p, q)
    try:
        again = answer(Counted(r2c.function), turned, *mine)
        c2r.is_idle = np.array_equal(returned, again)
    except Exception:  # it minds
        c2r.is_idle = False
    return returned


POLYNOMIALS = Exercise(
    id="libraries.polynomials",
    title="Products of polynomials",
    minutes=10,
    kind="function",
    task=(
        "`p` and `q` are the coefficients of two polynomials, whole numbers, that of x⁰ first."
        " (Twenty each at most, of four digits: what comes fits in an int32.) Zeros count like"
        " other numbers, at the ends, too."
        " Return their product's as an array of ints, by Fourier transforms in the manner of"
        " cuFFT: `r2c(x)` takes n reals to their n // 2 + 1 bins, `c2r(bins, n)` goes back, and"
        " neither divides by anything."
    ),
    starter="""
def multiply(r2c, c2r, p, q):
    n = len(p)
    bins = r2c(p) * r2c(q)  # needs arrays of one length, with room for the product
    return np.rint(c2r(bins, n)).astype(int)
""",
    solution=multiply,
    reference=lambda r2c, c2r, p, q: tuple(np.convolve(p, q).tolist()),
    play=play_twice,
    after=by_the_library,
    inputs=two_polynomials,
    shapes=((4, 4), (3, 3), (2, 5), (8, 3), (7, 7), (16, 2), (20, 20)),
    fresh=some_numbers((2, 21), (2, 21)),
    hints=(
        "A product of bins is a *circular* convolution: what runs over the end comes in again at"
        " the front. How many coefficients has the product?",
        "len(p) + len(q) - 1. Fill both with zeros up to that length before you transform.",
        "There and back makes everything n times as large. Divide, then round.",
    ),
    wrong=(
        (
            "padded[1]), n) / n",
            "padded[1]), n)",
            "wrong_value",
            "Everything is n times too large: cuFFT divides in neither direction.",
        ),
        (
            "padded[1]), n) / n",
            "padded[1]), n) / (n // 2 + 1)",
            "wrong_value",
            "Divide by the length of the transform, not by the number of bins.",
        ),
        ("np.rint(product).astype(int)", "product.astype(int)", "wrong_value"),
        ("padded[1]), n) / n", "padded[1]), 2 * (n // 2)) / n", "wrong_value"),
        (
            "len(q) - 1",
            "len(q)",
            "wrong_value",
            "One coefficient too many: the product has len(p) + len(q) - 1.",
        ),
        (
            "len(p) + len(q) - 1",
            "1 << (len(p) + len(q) - 2).bit_length()",
            "wrong_value",
            "The padding is still there: return only the first len(p) + len(q) - 1 coefficients.",
        ),
        (
            "rint(product).astype(int)",
            "trim_zeros(np.rint(product).astype(int))",
            "wrong_value",
        ),
        (
            "    n = len(p)",
            "    p = np.trim_zeros(p) if p.any() else p\n    n = len(p)",
            "wrong_value",
        ),
        ("np.rint(product).astype(int)", "np.convolve(p, q)", "other_means"),
        ("r2c(padded[1])", "np.fft.rfft(padded[1])", "other_means"),
        (
            "c2r(r2c(padded[0]) * r2c(padded[1]), n) / n",
            "np.fft.irfft(r2c(padded[0]) * r2c(padded[1]), n)\n    c2r(r2c(padded[0]) * 0, n)",
            "other_means",
        ),
        (
            ("len(p) + len(q) - 1", "max(len(p), len(q))"),
            "wrong_value",
            "The product's last coefficients have come in again at the front: make room.",
        ),
    ),
)


# ---- choose: among the proposals of a heuristic


def choose(proposals, room, repeatable):
    best = -1
    for i, (status, time, workspace, deterministic) in enumerate(proposals):
        if status != 0 or workspace > room or (repeatable and not deterministic):
            continue
        if best < 0 or time < proposals[best][1]:
            best = i
    return best


def proposals(rng, shape):
    """`shape` proposals (status, µs, bytes, deterministic).

    Times are all different, or what does not work is as fast as one that does. Most differ by less
    than a µs. A third of all lists are of slow ones: seconds, hours. Of many, some want more bytes
    than 32 bits count.
    """
    times = (rng.permutation(2 * shape)[:shape] + 1) / 16
    if shape % 3 == 2:
        times = times * 10**7
    rows = [
        (
            int(rng.choice([0, 0, 0, 0, 0, 0, 1, 15, -1])),
            float(time),
            int(rng.integers(0, 5)) << (20 if shape < 20 else 30),
            int(rng.integers(0, 2)),
        )
        for time in times
    ]
    alike = float(rng.choice(times)) if shape else 0
    rows = [(status, alike if status else time, *rest) for status, time, *rest in rows]
    return {
        "proposals": rows,
        "room": int(rng.integers(0, 5)) << (20 if shape < 20 else 30),
        "repeatable": bool(rng.integers(0, 2)),
    }


CHOOSE = Exercise(
    id="libraries.choose",
    title="Which proposal?",
    minutes=8,
    kind="function",
    task=(
        "A library's heuristic proposes ways to do a convolution: each is `(status, µs, bytes of"
        " workspace, deterministic)`. A status other than 0 (there are many): this one does not"
        " work. Times are in µs, not whole ones, of those that work all different. You have `room`"
        " bytes for a workspace, and if `repeatable` is true, every run must give the same bits."
        " Return the index of the fastest that fits, or -1 if none does."
    ),
    starter="""
def choose(proposals, room, repeatable):
    return 0  # the first
""",
    solution=choose,
    reference=choose,
    inputs=proposals,
    shapes=(1, 2, 3, 5, 8, 13, 8, 5, 0, 20, 24, 100),
    draws=lambda some: some.integers(0, 30),
    hints=(
        "Three reasons to skip a proposal. Look at each before you compare times.",
        "Keep the index of the best so far, which begins as -1.",
    ),
    wrong=(
        (
            "status != 0 or workspace > room",
            "workspace > room",
            "wrong_value",
            "This chooses ways that do not work: look at each proposal's own status.",
        ),
        (
            "status != 0",
            "status == 1",
            "wrong_value",
            "Not only status 1 is an error: every status but 0 is.",
        ),
        (
            "status != 0",
            "status > 1",
            "wrong_value",
            "Status 1 is an error, too: only 0 means success.",
        ),
        (
            " or workspace > room",
            "",
            "wrong_value",
            "`room` is ignored: this needs more workspace than there is.",
        ),
        (
            " or (repeatable and not deterministic)",
            "",
            "wrong_value",
            "This may give other bits in the next run.",
        ),
        (
            "(repeatable and not deterministic)",
            "not deterministic",
            "wrong_value",
            "Who does not ask for the same bits may have a faster way.",
        ),
        ("best < 0 or time <", "best < 0 or time >", "wrong_value"),
        (
            "workspace > room",
            "workspace >= room",
            "wrong_value",
            "A workspace of just `room` bytes fits.",
        ),
    ),
)


# ---- spmv: a kernel over CSR


@cuda.jit
def spmv(y, offsets, columns, values, x):
    row = cuda.grid(1)
    if row < y.size:
        total = np.float32(0)
        for i in range(offsets[row], offsets[row + 1]):
            total += values[i] * x[columns[i]]
        y[row] = total


def csr(rng, shape):
    """A random matrix of (rows, columns) in CSR, some of its rows empty, and a vector."""
    rows, width = shape
    counts = rng.integers(0, min(4, width) + 1, rows)
    counts[rows // 2] = width  # one row without zeros: it may be long
    offsets = np.concatenate(([0], counts.cumsum())).astype(np.int32)
    chosen = [rng.integers(width, size=count) for count in counts]  # in no order, some twice
    columns = np.concatenate([*chosen, []]).astype(np.int32)
    parts = rng.permutation((8, 4096)).tolist()  # one has more digits than half precision
    return {
        "y": Out((rows,)),
        "offsets": offsets,
        "columns": columns,
        "values": multiples(rng, len(columns), parts[0]),
        "x": multiples(rng, width, parts[1]),
    }


def multiples(rng, size, parts):
    """Multiples of 1 / parts between -1 and 1.

    Float32 sums of 512 products of eighths and 4096ths are exact.
    """
    return np.round(parts * uniform(rng, size)) / np.float32(parts)


def sparse_product(y, offsets, columns, values, x):
    products = values.astype(np.float64) * x[columns]
    rows = np.repeat(np.arange(y.shape[0]), np.diff(offsets))
    sums = np.zeros(y.shape)
    np.add.at(sums, rows, products)
    return sums


SPMV = Exercise(
    id="libraries.spmv",
    title="Sparse matrix times vector",
    minutes=10,
    task=(
        "Compute y = A x, one thread a row. A is sparse, in CSR: the elements of row r are"
        " `values[i]` in columns `columns[i]`, for i from `offsets[r]` up to, not with,"
        " `offsets[r + 1]`. Rows may be empty; columns stand in no order, and what stands in one"
        " twice adds up."
    ),
    starter="""
@cuda.jit
def spmv(y, offsets, columns, values, x):
    row = cuda.grid(1)
    if row < y.size:
        y[row] = values[offsets[row]] * x[columns[offsets[row]]]  # only the first of the row
""",
    solution=spmv,
    inputs=csr,
    reference=sparse_product,
    large=(66_000, 3),
    shapes=((1, 1), (5, 0), (33, 20), (100, 7), (64, 64), (40, 300)),
    fresh=lambda rng: tuple(map(int, rng.integers(20, 90, 2))),
    elements=1,
    extents=a_thread_a_row,
    other_block=(96, 1, 1),
    rtol=1e-5,
    hints=(
        "A loop over i, and a sum in a register.",
        "`x` is asked by column: `x[columns[i]]`.",
        "An empty row's sum is 0, and must be written, too: behind the loop.",
    ),
    wrong=(
        ("row < y.size", "row < y.size and x.size > 0", "unwritten"),
        ("cuda.grid(1)", "cuda.blockIdx.x * 32 + cuda.threadIdx.x", "fixed_block"),
        ("values[i] * x[columns[i]]", "x[columns[i]]", "wrong_value"),
        (
            "            total +=",
            "            if columns[i] < columns[offsets[row]]:\n"
            "                break\n            total +=",
            "wrong_value",
        ),
        (
            "            total +=",
            "            if i > offsets[row] and columns[i] == columns[i - 1]:\n"
            "                continue\n            total +=",
            "wrong_value",
        ),
        ("offsets[row + 1])", "offsets[row + 1] + 1)", "out_of_bounds"),
        ("offsets[row + 1])", "offsets[row + 1] - 1)", "wrong_value"),
        ("y[row] = total", "y[row] += total", "reads_output"),
        ("total += values", "total = values", "wrong_value"),
        (
            "        y[row] = total",
            "        if total != 0:\n            y[row] = total",
            "unwritten",
        ),
    ),
)


EXERCISES = (LINEAR, AS_BLAS, DRAWS, POLYNOMIALS, CHOOSE, SPMV)

QUIZZES = (
    one_of(
        "libraries.q_column_major",
        "cuBLAS is handed a row-major 2 × 3 matrix and told nothing of it. What does it see?",
        (
            "The same matrix: memory is memory",
            "It reads column after column, and what lies there are rows.",
        ),
        (
            "Its transpose, 3 × 2",
            "Rows in memory are columns to it. That is why (a b)ᵀ = bᵀ aᵀ is all you need.",
        ),
        (
            "An error: CUBLAS_STATUS_INVALID_VALUE",
            "It cannot know. Only a leading dimension that is too small is refused.",
        ),
        answer="b",
    ),
    Quiz(
        id="libraries.q_status",
        question="cublasSgemm returned CUBLAS_STATUS_SUCCESS. What do you know?",
        choices={
            "a": "The result is there",
            "b": "The arguments make sense, and the work is queued",
            "c": "The result is right",
        },
        answer="b",
        explain_right="Whether the work itself went well is said by the next call that waits.",
        explain={None: "The call came back before the GPU was done."},
    ),
    Quiz(
        id="libraries.q_bias",
        question="Your y is row-major: 512 rows (a batch) of 64 features. An epilogue adds a bias"
        " with one element for each row of what the library computes, which is yᵀ. How many"
        " elements has the bias?",
        answer=64,
        explain_right="yᵀ has a row for each feature, which is what a layer's bias wants.",
        explain={
            512: "Those are your rows; to the library they are columns.",
            None: "How many rows has yᵀ?",
        },
    ),
    Quiz(
        id="libraries.q_scale",
        question="A row of 1,024 reals goes through cufftExecR2C and back through cufftExecC2R. By"
        " what factor has it grown?",
        answer=1024,
        explain_right="Neither direction divides: scale once, where it costs nothing.",
        explain={513: "That is the number of bins.", None: "Neither direction divides by n."},
    ),
    Quiz(
        id="libraries.q_plan",
        question="Which of these belongs inside the loop over your data?",
        choices={
            "a": "cufftPlan1d",
            "b": "cublasCreate",
            "c": "cublasLtMatmul",
            "d": "cublasLtMatmulAlgoGetHeuristic",
        },
        answer="c",
        explain_right="Handles, descriptors, plans, heuristics and workspaces are made before.",
        explain={None: "That is made once, and used as often as you like."},
    ),
    one_of(
        "libraries.q_decide",
        "An elementwise operation follows a large matrix product. What do you try first?",
        (
            "A matrix product of your own, with the operation in it",
            "That is the last thing to try: the library's product is hard to beat.",
        ),
        (
            "The library's epilogue, if it has the operation",
            (
                "It costs one argument. Only where no epilogue fits, the others are worth"
                " their work."
            ),
        ),
        (
            "A kernel of its own for the operation",
            "It reads and writes the whole result once more.",
        ),
        answer="b",
    ),
)
