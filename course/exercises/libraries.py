"""The exercises of the chapter Libraries."""

import numpy as np
from numba import cuda

from course.checking.inputs import (
    Counted,
    a_thread_a_row,
    of_any_size,
    some_numbers,
    uniform,
    with_zeros,
)
from course.checking.model import Exercise, Hypothesis, Launch, Out, Wrong
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
        return f"One call of `gemm` does it all, and this made {given['gemm'].calls}."
    if tuple(given["y"].tolist()) != expected:
        return "The result must be in `y`, the array that was given."
    return None


def linear_in_two_steps(gemm, y, x, w, rows, n_in, n_out):
    """The dodge: a second call, although one does it all."""
    gemm("T", "N", n_out, rows, n_in, 2, w, n_in, x, n_in, 0, y, n_out)
    gemm("T", "N", n_out, rows, n_in, -1, w, n_in, x, n_in, 1, y, n_out)
    return y


def linear_turned(gemm, y, x, w, rows, n_in, n_out):
    """The mistake: x comes first, so y is filled column by column."""
    gemm("T", "N", rows, n_out, n_in, 1, x, n_in, w, n_in, 0, y, rows)
    return y


def linear_as_in_a_manual(gemm, y, x, w, rows, n_in, n_out):
    """The mistake: the formula, as if all three were column-major."""
    gemm("N", "T", rows, n_out, n_in, 1, x, rows, w, n_out, 0, y, rows)
    return y


def linear_untransposed(gemm, y, x, w, rows, n_in, n_out):
    """The mistake: the library is not told that it sees w transposed."""
    gemm("N", "N", n_out, rows, n_in, 1, w, n_out, x, n_in, 0, y, n_out)
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


def linear_returns_the_call(gemm, y, x, w, rows, n_in, n_out):
    """The mistake: `gemm` fills y and returns nothing."""
    return gemm("T", "N", n_out, rows, n_in, 1, w, n_in, x, n_in, 0, y, n_out)


ROW_AFTER_ROW = "x, w and y lie row after row, and the library reads column after column."

LINEAR = Exercise(
    id="libraries.linear",
    title="PyTorch's layer, by cuBLAS",
    minutes=10,
    kind="function",
    task=(
        "Row-major `x` has `rows` rows of `n_in` numbers, and row-major `w` (as in PyTorch's"
        " `Linear`) has `n_out` rows of `n_in`. Fill row-major `y` with `x @ w.T` and return it, by"
        " one call of `gemm`, which has the arguments of `cublasSgemm` (without the handle) and its"
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
            ROW_AFTER_ROW,
        ),
        Wrong(linear_as_in_a_manual, "wrong_value", ROW_AFTER_ROW),
        Wrong(
            linear_turned,
            "wrong_value",
            "These are the right numbers in the order of yᵀ: hand over w first, then x.",
        ),
        Wrong(
            linear_untransposed,
            "wrong_value",
            "In the memory of w the library sees wᵀ, which is n_in × n_out: that one must be"
            " transposed.",
        ),
        Wrong(linear_returns_the_call, "no_return"),
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


# ---- draws: sequences that do not overlap


def draws(generator, seed, thread, launch, count):
    state = generator(seed, thread, launch * count)
    return [state() for _ in range(count)]


class Generator(Philox):
    """The generator for the exercise: nobody may step through the launches before."""

    MOST = 1000  # numbers, far more than any launch here draws

    def __init__(self, seed, sequence, offset):
        super().__init__(seed, sequence, offset)
        self.drawn = 0

    def __call__(self):
        self.drawn += 1
        if self.drawn > self.MOST:
            raise RuntimeError(
                f"{self.MOST:,} numbers were drawn, and `count` is far less. Stepping through all"
                " launches before takes hours in the billionth: where does `offset` begin?"
            )
        return super().__call__()


def given(rng, shape):
    names = "seed", "thread", "launch", "count"
    return {"generator": Generator, **dict(zip(names, shape, strict=True))}


DRAWS = Exercise(
    id="libraries.draws",
    title="No number twice",
    minutes=8,
    kind="function",
    task=(
        "A kernel is launched again and again, and each thread draws `count` numbers each time."
        " Thread t uses sequence t of the seed, and each launch goes on where the last one stopped,"
        " even the billionth."
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
        "There are three arguments. The seed belongs to the program, the sequence to the thread,"
        " and the offset says how many numbers of the sequence have been used already.",
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
        (
            "seed, thread, launch * count",
            "seed + launch, thread, 0",
            "wrong_value",
            "Another seed for each launch gives unrelated sequences that may be alike. Stay with"
            " one seed, and let the offset say how many numbers were drawn already.",
        ),
        ("launch * count", "launch * count % 2**32", "wrong_value"),
        (
            "launch * count",
            "launch * count // 4",
            "wrong_value",
            "The offset counts numbers, not groups of four.",
        ),
        (
            "launch * count",
            "(launch + 1) * count",
            "wrong_value",
            "Launch 0 has no launch before it: it begins at the sequence's first number.",
        ),
        (
            ("launch * count", "0"),
            ("    return", "    for _ in range(launch * count):\n        state()\n    return"),
            "crashed",
        ),
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


# ---- softmax: a kernel of one's own with pieces of CUB

SOFTMAX_CU = """
#include <cub/cub.cuh>

constexpr int THREADS = 128;

__global__ void softmax(float* out, const float* x, int columns) {
    using Reduce = cub::BlockReduce<float, THREADS>;
    __shared__ typename Reduce::TempStorage memory;
    __shared__ float top, total;
    const float* row = x + blockIdx.x * columns;

    float largest = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += THREADS)
        largest = fmaxf(largest, row[i]);
    largest = Reduce(memory).Reduce(largest, [](float a, float b) { return fmaxf(a, b); });
    if (threadIdx.x == 0)
        top = largest;
    __syncthreads();

    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += THREADS)
        sum += expf(row[i] - top);
    sum = Reduce(memory).Sum(sum);
    if (threadIdx.x == 0)
        total = sum;
    __syncthreads();

    for (int i = threadIdx.x; i < columns; i += THREADS)
        out[blockIdx.x * columns + i] = expf(row[i] - top) / total;
}
"""
BLOCK_OF_CUB = 128
SPREADS = (1, 300, -300)  # what is added to a row: `exp` of it is ordinary, infinite, zero


def rows_far_from_zero(rng, shape):
    """Rows of normal numbers, some of them moved so far that `exp` overflows or gives 0."""
    rows, columns = shape
    moved = rng.choice(SPREADS, (rows, 1))
    moved[0] = SPREADS[1 + columns % 2]
    x = with_zeros(rng, (rng.normal(size=shape) + moved).astype(np.float32), 1 / 32)
    return {"out": Out(shape), "x": x, "columns": columns}


def softmax_of_rows(out, x, columns):
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def softmax_below(x, top):
    """What comes out in float32 if `top` is taken for the largest number of each row."""
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(x - top)
        return powers / powers.sum(1, keepdims=True)


SOFTMAX = Exercise(
    id="libraries.softmax",
    title="A softmax, with pieces of CUB",
    minutes=15,
    one_block=True,
    kind="cuda_c",
    kernel_name="softmax",
    path="build/softmax.cu",
    task=(
        "Block r writes the softmax of row r: `exp(x - top) / sum(exp(x - top))`, where `top` is"
        " the row's largest number. A block has 128 threads, and a row has any number of columns."
        " The starter forgets `top`, so large numbers overflow, and it divides by a sum that only"
        " thread 0 has."
    ),
    starter="""
%%writefile build/softmax.cu
#include <cub/cub.cuh>

constexpr int THREADS = 128;

__global__ void softmax(float* out, const float* x, int columns) {
    using Reduce = cub::BlockReduce<float, THREADS>;
    __shared__ typename Reduce::TempStorage memory;
    const float* row = x + blockIdx.x * columns;

    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += THREADS)
        sum += expf(row[i]);
    sum = Reduce(memory).Sum(sum);  // the block's sum, in thread 0

    for (int i = threadIdx.x; i < columns; i += THREADS)
        out[blockIdx.x * columns + i] = expf(row[i]) / sum;
}
""",
    solution=SOFTMAX_CU,
    inputs=rows_far_from_zero,
    reference=softmax_of_rows,
    shapes=((1, 1), (3, 128), (2, 300), (5, 33), (4, 129), (2, 1000)),
    large=((3, 70_000), (300, 3)),
    fresh=some_numbers((1, 9), (2, 500)),
    launches=lambda s: [Launch((s[0], 1, 1), (BLOCK_OF_CUB, 1, 1))],
    extents=lambda s: (BLOCK_OF_CUB * s[0], 1, 1),
    race_free=True,
    specials="finite",
    finite=("x",),
    rtol=1e-4,
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The row's largest number is not subtracted, so `exp` overflows, or every term is 0.",
            lambda out, x, columns: softmax_below(x, np.zeros((len(x), 1), np.float32)),
        ),
        Hypothesis(
            "wrong_value",
            "The search for the largest number begins at 0, so a row of negative numbers seems to"
            " have a 0: begin at -INFINITY.",
            lambda out, x, columns: softmax_below(x, np.maximum(x.max(1, keepdims=True), 0)),
        ),
    ),
    hints=(
        "You need three loops over the row: for the largest number, for the sum, for the result."
        " `Reduce(memory).Reduce(mine, larger)` takes any function of two numbers.",
        "Only thread 0 gets what `Reduce` returns. How do the other 127 threads learn it? Through"
        " a `__shared__ float`, and a barrier.",
        "`memory` is used twice. All threads must have left the first use before the second"
        " begins. The barrier after the first broadcast takes care of that, too.",
    ),
    wrong=(
        (
            ("        top = largest;", "        top = 0;"),
            "wrong_value",
        ),
        ("largest = -INFINITY", "largest = 0", "wrong_value"),
        (
            "        total = sum;\n    __syncthreads();\n",
            "        total = sum;\n",
            "race",
        ),
        (
            "        top = largest;\n    __syncthreads();\n",
            "        top = largest;\n",
            "race",
        ),
        (
            ("expf(row[i] - top) / total", "expf(row[i] - top) / sum"),
            "wrong_value",
        ),
        (
            "i < columns; i += THREADS)\n        sum",
            "i < THREADS; i += THREADS)\n        sum",
            "out_of_bounds",
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


def without_the_last(values, offsets):
    """The values, with a 0 for the last one of each row."""
    left = values.copy()
    left[offsets[1:][np.diff(offsets) > 0] - 1] = 0
    return left


SPMV = Exercise(
    id="libraries.spmv",
    title="Sparse matrix times vector",
    minutes=10,
    task=(
        "Compute y = A x, one thread per row. A is sparse, in CSR: row r owns"
        " `values[offsets[r]:offsets[r + 1]]`, and `columns` holds the column of each value. Rows"
        " may be empty. A row's columns may come in any order. If a column occurs twice in a row,"
        " both values count."
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
    large=((66_000, 3), (2, 66_000)),
    shapes=((1, 1), (5, 0), (33, 20), (100, 7), (64, 64), (40, 300)),
    fresh=lambda rng: tuple(map(int, rng.integers(20, 90, 2))),
    elements=1,
    extents=a_thread_a_row,
    other_block=(96, 1, 1),
    rtol=1e-5,
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The elements of `x` are added up without the matrix's values.",
            lambda y, offsets, columns, values, x: sparse_product(
                y, offsets, columns, np.ones_like(values), x
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The last element of each row is left out: `range` already stops before its end.",
            lambda y, offsets, columns, values, x: sparse_product(
                y, offsets, columns, without_the_last(values, offsets), x
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Only the last element of each row is in the result: add to the sum, and do not"
            " replace it.",
            lambda y, offsets, columns, values, x: sparse_product(
                y, offsets, columns, values - without_the_last(values, offsets), x
            ),
        ),
    ),
    hints=(
        "You need a loop over i, and a sum in a register.",
        "The value's column says which element of `x` it meets: `x[columns[i]]`.",
        "An empty row's sum is 0, and must be written, too: so write it after the loop.",
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


EXERCISES = (LINEAR, DRAWS, SPMV, SOFTMAX)

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
            "It cannot know the order. It refuses a leading dimension that is too small, no more.",
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
        explain={
            None: "The call came back before the GPU was done, and nobody has checked the numbers."
        },
    ),
    one_of(
        "libraries.q_manual",
        "`cusolverDnSgetrf(handle, m, n, A, lda, Workspace, devIpiv, devInfo)`: the matrix turns"
        " out to be singular. Where do you learn it?",
        (
            "The status is not CUSOLVER_STATUS_SUCCESS",
            "The status speaks of the call: it is there before the work is done.",
        ),
        (
            "In devInfo, which lies on the device, after waiting",
            "What the *work* finds out can only be left on the device: copy `devInfo`, and look.",
        ),
        (
            "In devIpiv",
            "That holds the order of the rows (the pivots), which the solver needs.",
        ),
        answer="b",
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
                "It costs one argument. The other two are worth their work only where no epilogue"
                " fits."
            ),
        ),
        (
            "A kernel of its own for the operation",
            "It reads and writes the whole result once more.",
        ),
        answer="b",
    ),
)
