"""The exercises of the chapter on tensor cores."""

import itertools

import numpy as np

from course.checking.inputs import arguments_of, of_any_size
from course.checking.model import Exercise, Hypothesis, Launch, Out, Wrong
from course.checking.quiz import Quiz, one_of

# ---- tensor_cores.wmma: a product of fragments, along k

WMMA_CU = """
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void product(float* c, const __half* a, const __half* b, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    int row = 16 * blockIdx.y;
    int column = 16 * blockIdx.x;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(fa, a + row * k + i, k);
        wmma::load_matrix_sync(fb, b + i * n + column, n);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
"""


def halves(rng, shape):
    """Arguments of a product of half-precision matrices; shape: (m, n, k), multiples of 16."""
    m, n, k = shape
    a = rng.uniform(-1, 1, (m, k)).astype(np.float16)
    b = rng.uniform(-1, 1, (k, n)).astype(np.float16)
    return {"c": Out((m, n)), "a": a, "b": b, "n": n, "k": k}


def product_of_halves(c, a, b, n, k):
    return a.astype(np.float64) @ b.astype(np.float64)


def a_warp_each(shape):
    """One launch: a warp for each 16 × 16 tile of c."""
    m, n, _ = shape
    return [Launch((n // 16, m // 16, 1), (32, 1, 1))]


ELEMENT_BY_ELEMENT = """
#include <cuda_fp16.h>

__global__ void product(float* c, const __half* a, const __half* b, int n, int k) {
    for (int e = threadIdx.x; e < 256; e += 32) {
        int row = 16 * blockIdx.y + e / 16, column = 16 * blockIdx.x + e % 16;
        float sum = 0;
        for (int i = 0; i < k; ++i)
            sum += __half2float(a[row * k + i]) * __half2float(b[i * n + column]);
        c[row * n + column] = sum;
    }
}
"""


def tiles_transposed(c):
    """c with each of its tiles of 16 × 16 transposed."""
    m, n = c.shape
    return c.reshape(m // 16, 16, n // 16, 16).transpose(0, 3, 2, 1).reshape(m, n)


def with_rows_16_apart(a, b):
    """The product if each tile of a is loaded as if its rows were 16 numbers apart in memory."""
    m, k = a.shape
    row, column = np.mgrid[0:m, 0:k]
    place = (row - row % 16) * k + column - column % 16 + row % 16 * 16 + column % 16
    return product_of_halves(None, a.ravel()[place], b, 0, 0)


def tiles_from(x, begin):
    """x if its tile (down, across) is loaded from where `begin(down, across)` says."""
    row, column = np.mgrid[0 : x.shape[0], 0 : x.shape[1]]
    place = begin(row // 16, column // 16) + row % 16 * x.shape[1] + column % 16
    return x.ravel()[place]


WMMA = Exercise(
    id="tensor_cores.wmma",
    title="Along k",
    minutes=10,
    one_block=True,
    kind="cuda_c",
    kernel_name="product",
    path="build/product.cu",
    task=(
        "A block is one warp, and computes one tile of 16 by 16 of `c`. The sides are multiples "
        "of 16. The starter multiplies only the first 16 columns of `a` with the first 16 rows "
        "of `b`, and stores the first tile only. Make it right."
    ),
    starter="""%%writefile build/product.cu
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void product(float* c, const __half* a, const __half* b, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(fa, a, k);  // where the tile begins, and how far apart its rows are
    wmma::load_matrix_sync(fb, b, n);
    wmma::mma_sync(sum, fa, fb, sum);
    if (blockIdx.x == 0 && blockIdx.y == 0)
        wmma::store_matrix_sync(c, sum, n, wmma::mem_row_major);
}
""",
    solution=WMMA_CU,
    needs=("products",),
    inputs=halves,
    reference=product_of_halves,
    shapes=((16, 16, 16), (16, 16, 48), (48, 16, 32), (144, 32, 16), (16, 144, 16), (16, 32, 288)),
    large=((272, 272, 16), (65_552, 16, 16), (16, 65_552, 16)),
    fresh=lambda rng: tuple(int(16 * q) for q in rng.permutation(4)[:3] + 1),
    launches=a_warp_each,
    extents=lambda shape: (2 * shape[1], shape[0] // 16, 1),  # of threads, not of elements
    hints=(
        "Which row and column does this block's tile begin at? Which tile of `a`, and which of "
        "`b`, does step i need?",
        "`a + row * k + i` and `b + i * n + column`, in a loop over i in steps of 16.",
        "Fill `sum` before the loop, store it after: `c + row * n + column`, rows n apart.",
    ),
    wrong=(
        (
            "    for (int i = 0; i < k; i += 16) {",
            "    int i = 0;\n    {",
            "wrong_value",
        ),
        (
            "i += 16) {",
            "i += 16) {\n wmma::fill_fragment(sum, 0.0f);",
            "wrong_value",
        ),
        ("b + i * n + column", "b + i + column * n", "wrong_value"),
        ("b + i * n + column", "b + i + column", "wrong_value"),
        ("a + row * k + i", "a + row + i", "wrong_value"),
        ("a + row * k + i", "a + blockIdx.y * k + i", "wrong_value"),
        ("b + i * n + column", "b + i * n + blockIdx.x", "wrong_value"),
        ("wmma::mem_row_major", "wmma::mem_col_major", "wrong_value"),
        ("a + row * k + i, k", "a + row * k + i, 16", "wrong_value"),
        Wrong(ELEMENT_BY_ELEMENT, "other_means"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Each tile of `c` is stored with rows and columns exchanged: rows lie side by side, so"
            " `mem_row_major`.",
            lambda c, a, b, n, k: tiles_transposed(product_of_halves(c, a, b, n, k)),
        ),
        Hypothesis(
            "wrong_value",
            "The last argument of `load_matrix_sync` says how far apart the rows lie in memory: for"
            " `a` that is k.",
            lambda c, a, b, n, k: with_rows_16_apart(a, b),
        ),
        Hypothesis(
            "wrong_value",
            "Row i of `b` begins at `b + i * n`: a row has n numbers.",
            lambda c, a, b, n, k: product_of_halves(
                c, a, tiles_from(b, lambda down, across: 16 * (down + across)), n, k
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The first tile is right, the one below is not: a row of `a` has k numbers, so row"
            " `row` begins at `a + row * k`.",
            lambda c, a, b, n, k: product_of_halves(
                c, tiles_from(a, lambda down, across: 16 * (down + across)), b, n, k
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The first tile is right, the one below is not: it needs the rows of `a` from"
            " `16 * blockIdx.y` on.",
            lambda c, a, b, n, k: product_of_halves(
                c, tiles_from(a, lambda down, across: down * k + 16 * across), b, n, k
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The first tile is right, the one beside it is not: it needs the columns of `b` from"
            " `16 * blockIdx.x` on.",
            lambda c, a, b, n, k: product_of_halves(
                c, a, tiles_from(b, lambda down, across: 16 * down * n + across), n, k
            ),
        ),
        Hypothesis(
            "wrong_value",
            "Only the first 16 columns of `a` and rows of `b` are in the result.",
            lambda c, a, b, n, k: product_of_halves(c, a[:, :16], b[:16], n, k),
        ),
        Hypothesis(
            "wrong_value",
            "Only the last 16 columns of `a` and rows of `b` are in the result: set the sum to 0 "
            "once, before the loop.",
            lambda c, a, b, n, k: product_of_halves(c, a[:, -16:], b[-16:], n, k),
        ),
    ),
)


# ---- tensor_cores.fragment: which lane holds what


def place(lane, register, half):
    row = lane // 4 + register % 2 * 8
    column = lane % 4 * 2 + half + register // 2 * 8
    return row, column


FRAGMENT = Exercise(
    id="tensor_cores.fragment",
    title="Who holds what",
    minutes=5,
    kind="function",
    task=(
        "A fragment of A for `mma.m16n8k16` has 16 by 16 numbers: each of 32 lanes has 4 registers,"
        " and each register has 2 numbers (`half` 0 and 1). Return (row, column) of the number that"
        " a lane holds in a half of a register, as the picture above shows."
    ),
    starter="""
def place(lane, register, half):
    # the row, the column
    ...
""",
    solution=place,
    inputs=arguments_of(place),
    reference=place,
    shapes=tuple(itertools.product(range(32), range(4), range(2))),  # all that there are
    hints=(
        "Four lanes share a row, and eight rows make a block of 8 by 8. Which row of it does "
        "lane 5 have? Which two columns?",
        "Registers 0 and 1 are the two blocks on the left, 2 and 3 those on the right.",
        "`lane // 4 + register % 2 * 8`, and `lane % 4 * 2 + half + register // 2 * 8`.",
    ),
    wrong=(
        (
            "row, column",
            "place(lane, register % 2 * 2 + register // 2, half)",
            "wrong_value",
            "Register 1 is 8 rows below register 0, and register 2 is 8 columns to its right.",
        ),
        (
            "row, column",
            "lane // 4 + register % 2 * 8, lane % 4 + half + register // 2 * 8",
            "wrong_value",
            "A register holds two neighbours, so the next lane begins two columns further.",
        ),
        ("row, column", "column, row", "wrong_value", "Rows and columns are exchanged."),
        (
            "row, column",
            "lane // 8 + register % 2 * 8, lane % 8 * 2 + half + register // 2 * 8",
            "wrong_value",
            "A row of a block of 8 by 8 has eight numbers: four lanes, two each.",
        ),
        (
            "row, column",
            "place(lane, register, 0)",
            "wrong_value",
            "A register holds two numbers: that of half 1 is one column further.",
        ),
        ("half +", "half * (lane != 21) +", "wrong_value"),
    ),
)


# ---- tensor_cores.ldmatrix: who names what a lane gets


def named_by(lane, register):
    return register * 8 + lane // 4


LDMATRIX = Exercise(
    id="tensor_cores.ldmatrix",
    title="Who named it",
    minutes=4,
    kind="function",
    task=(
        "`ldmatrix` fills 4 registers of each of 32 lanes from a tile of 16 by 16. Lanes 0 to 15"
        " name the rows of its left half, lanes 16 to 31 those of the right half. Return the lane"
        " that named the row from which `lane` gets its `register`."
    ),
    starter="""
def named_by(lane, register):
    # a lane, 0 to 31
    ...
""",
    solution=named_by,
    inputs=arguments_of(named_by),
    reference=named_by,
    shapes=tuple(itertools.product(range(32), range(4))),  # all that there are
    hints=(
        "Which row does a lane's register hold, and is it in the left half or in the right one? "
        "That was the exercise of section 1.",
        "Lane 6 holds rows 1 and 9. Registers 0 and 1 come from the left half, whose rows 1 and 9 "
        "lanes 1 and 9 name. Registers 2 and 3 come from the right half.",
        "Each register is a block of 8 rows, and its rows are named by 8 lanes in turn: "
        "`register * 8 + lane // 4`.",
    ),
    wrong=(
        (
            "register * 8",
            "register % 2 * 8",
            "wrong_value",
            "Registers 2 and 3 come from the right half, whose rows lanes 16 to 31 name.",
        ),
        (
            "register * 8",
            "(register % 2 * 2 + register // 2) * 8",
            "wrong_value",
            "Register 1 is 8 rows below register 0, still in the left half.",
        ),
        (
            "lane // 4",
            "lane % 8",
            "wrong_value",
            "Four lanes share a row, so lanes 0 to 3 get pairs of row 0.",
        ),
        (
            "register * 8 + lane // 4",
            "lane",
            "wrong_value",
            "Naming and holding are two things: what a lane names goes to four lanes.",
        ),
        (
            "register * 8 + lane // 4",
            "lane // 4 + register % 2 * 8, register // 2 * 8",
            "wrong_value",
            "That is the row, and the column at which its half begins. Which lane named it?",
        ),
        ("lane // 4", "lane // 4 * (lane != 21)", "wrong_value"),
    ),
)


# ---- tensor_cores.registers: a product of fragments that a lane fills itself

REGISTERS_CU = """
#include <cuda_fp16.h>

__device__ void multiply_add(float (&d)[4], unsigned a0, unsigned a1, unsigned b0) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(b0));
}

__device__ unsigned two(const __half* first, int apart) {
    return __half_as_ushort(first[0]) | __half_as_ushort(first[apart]) << 16;
}

__global__ void product(float* c, const __half* a, const __half* b, int n, int k) {
    int row = 16 * blockIdx.y + threadIdx.x / 4;
    int column = 8 * blockIdx.x;
    int pair = threadIdx.x % 4 * 2;
    float d[4] = {};
    for (int i = 0; i < k; i += 8) {
        const __half* upper = a + row * k + i + pair;
        const __half* lower = upper + 8 * k;
        const __half* down = b + (i + pair) * n + column + threadIdx.x / 4;
        multiply_add(d, two(upper, 1), two(lower, 1), two(down, n));
    }
    float* out = c + row * n + column + pair;
    out[0] = d[0];
    out[1] = d[1];
    out[8 * n] = d[2];
    out[8 * n + 1] = d[3];
}
"""


def of_eights(rng):
    """(m, n, k), as few tiles as show a mistake: multiples of 16, 8 and 8."""
    m, n, k = (int(q) for q in rng.integers(1, 5, 3))
    return 16 * m, 8 * n, 8 * k


def pairs_of_a_row(b):
    """b as it is multiplied if a register gets a number and its right neighbour in memory."""
    place = np.arange(b.size).reshape(b.shape)
    place[1::2] = place[::2] + 1
    return b.ravel()[place]


def sums_moved(c, first, second):
    """c with two of a lane's four sums, 0 to 3, in each other's places."""
    moved = c.copy()
    lanes = c.reshape(c.shape[0] // 16, 2, 8, c.shape[1] // 8, 4, 2)
    places = moved.reshape(lanes.shape)
    (row, column), (other_row, other_column) = divmod(first, 2), divmod(second, 2)
    places[:, row, :, :, :, column] = lanes[:, other_row, :, :, :, other_column]
    places[:, other_row, :, :, :, other_column] = lanes[:, row, :, :, :, column]
    return moved


def eights_exchanged(a):
    """a with the upper and the lower 8 of every 16 rows exchanged."""
    return a.reshape(-1, 2, 8, a.shape[1])[:, ::-1].reshape(a.shape)


REGISTERS = Exercise(
    id="tensor_cores.registers",
    title="Your own fragments",
    minutes=15,
    one_block=True,
    kind="cuda_c",
    kernel_name="product",
    path="build/registers.cu",
    task=(
        "A warp computes a tile of 16 by 8 of `c` with `mma.m16n8k8`, and each lane fills its own "
        "registers. `a` is m × k, `b` is k × n, and their sides are multiples of 16 and 8. The "
        "starter multiplies zeros and stores the first of a lane's four sums."
    ),
    starter="""%%writefile build/registers.cu
#include <cuda_fp16.h>

// d (16 x 8) += a (16 x 8) b (8 x 8): two registers of a, one of b, two numbers in each
__device__ void multiply_add(float (&d)[4], unsigned a0, unsigned a1, unsigned b0) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(b0));
}

// A register of two numbers, `apart` from each other in memory: the first is its lower half.
__device__ unsigned two(const __half* first, int apart) {
    return __half_as_ushort(first[0]) | __half_as_ushort(first[apart]) << 16;
}

__global__ void product(float* c, const __half* a, const __half* b, int n, int k) {
    int row = 16 * blockIdx.y + threadIdx.x / 4;
    int column = 8 * blockIdx.x;
    int pair = threadIdx.x % 4 * 2;
    float d[4] = {};
    for (int i = 0; i < k; i += 8) {
        unsigned a0 = 0, a1 = 0, b0 = 0;  // which numbers are this lane's?
        multiply_add(d, a0, a1, b0);
    }
    c[row * n + column + pair] = d[0];  // where do the other three sums belong?
}
""",
    solution=REGISTERS_CU,
    needs=("products",),
    inputs=halves,
    reference=product_of_halves,
    shapes=((16, 8, 8), (16, 8, 24), (48, 8, 16), (16, 40, 16), (32, 16, 72)),
    large=((32, 24, 8208), (65_552, 8, 8), (16, 65_544, 8)),
    fresh=of_eights,
    launches=lambda shape: [Launch((shape[1] // 8, shape[0] // 16, 1), (32, 1, 1))],
    extents=lambda shape: (4 * shape[1], shape[0] // 16, 1),  # of threads, not of elements
    hints=(
        "It is the left half of the picture above: register 0 holds row `lane // 4`, register 1 "
        "the row 8 below. Each holds columns `pair` and `pair + 1`. And B?",
        "B is dealt by columns: a lane holds column `lane // 4`, and of it the rows `pair` and "
        "`pair + 1`, which are n numbers apart.",
        "`a0 = two(a + row * k + i + pair, 1)`; `a1` is 8 * k numbers further; `b0` is `two(b + (i "
        "+ pair) * n + column + threadIdx.x / 4, n)`. d[0] and d[1] are neighbours of a row, d[2] "
        "and d[3] lie 8 rows below.",
    ),
    wrong=(
        (
            "two(down, n)",
            "two(down, 1)",
            "wrong_value",
        ),
        (
            "two(upper, 1), two(lower, 1)",
            "two(lower, 1), two(upper, 1)",
            "wrong_value",
        ),
        (
            "two(upper, 1)",
            "two(upper + 1, -1)",
            "wrong_value",
        ),
        ("n + column + threadIdx.x / 4;", "n + column;", "wrong_value"),
        ("    out[1] = d[1];\n", "", "unwritten"),
        (
            "out[8 * n] = d[2];\n    out[8 * n + 1] = d[3]",
            "out[8] = d[2];\n    out[9] = d[3]",
            "race",
        ),
        ("out[8 * n] = d[2]", "out[8 * n] = d[3]", "wrong_value"),
        ("i < k; i += 8", "i < 8; i += 8", "wrong_value"),
        Wrong(
            ELEMENT_BY_ELEMENT.replace("256; e", "128; e")
            .replace("float sum", "double sum")  # no rounding, which would be another reason
            .replace("e / 16", "e / 8")
            .replace("e % 16", "e % 8")
            .replace("16 * blockIdx.x", "8 * blockIdx.x"),
            "other_means",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "B is dealt by columns: a register holds two numbers of one column, not of one row.",
            lambda c, a, b, n, k: product_of_halves(c, a, pairs_of_a_row(b), n, k),
        ),
        Hypothesis(
            "wrong_value",
            "Every lane gives the first column of B's tile: lane l holds column `l / 4` of it.",
            lambda c, a, b, n, k: product_of_halves(c, a, np.repeat(b[:, ::8], 8, axis=1), n, k),
        ),
        Hypothesis(
            "wrong_value",
            "The two registers of `a` are exchanged: register 1 is 8 rows below register 0.",
            lambda c, a, b, n, k: product_of_halves(c, eights_exchanged(a), b, n, k),
        ),
        Hypothesis(
            "wrong_value",
            "Sums 1 and 2 of each lane have changed places: 0 and 1 lie side by side, and 2 and 3"
            " 8 rows below them.",
            lambda c, a, b, n, k: sums_moved(product_of_halves(c, a, b, n, k), 1, 2),
        ),
        Hypothesis(
            "wrong_value",
            "Only the first 8 columns of `a` and rows of `b` are in the result.",
            lambda c, a, b, n, k: product_of_halves(c, a[:, :8], b[:8], n, k),
        ),
    ),
)


# ---- tensor_cores.swizzle: where a number lies in a swizzled tile


def address(row, column):
    piece = column // 8
    return row * 128 + (piece ^ row % 8) * 16 + column % 8 * 2


SWIZZLE = Exercise(
    id="tensor_cores.swizzle",
    title="The swizzled tile",
    minutes=4,
    kind="function",
    task=(
        "A box has 64 columns of bf16 numbers, so a row has 128 bytes, or 8 pieces of 16 bytes. It"
        " may have any number of rows. The copy engine puts piece p of row r at place p XOR r % 8"
        " of that row. Return the byte, counted from the box's beginning, at which the number at"
        " (row, column) begins."
    ),
    starter="""
def address(row, column):
    # the row's bytes, the piece's, those within the piece
    ...
""",
    solution=address,
    inputs=arguments_of(address),
    reference=address,
    shapes=(
        (0, 0),
        (1, 0),
        (0, 9),
        (3, 17),
        (8, 8),
        (13, 63),
        (63, 1),
        (5, 40),
        (255, 63),
        (2**55 + 1, 9),
    ),
    draws=lambda some: some.tuples(of_any_size(some, 1 << 55), some.integers(0, 63)),
    hints=(
        "How many numbers of 2 bytes are in a piece? Which piece does a column belong to?",
        "Piece `column // 8` lies at place `column // 8 ^ row % 8`; within it nothing moves.",
        "`row * 128 + (column // 8 ^ row % 8) * 16 + column % 8 * 2`",
    ),
    wrong=(
        (
            "(piece ^ row % 8) * 16 + column % 8",
            "column",
            "wrong_value",
            "That is the tile without a swizzle.",
        ),
        (
            "(piece ^ row % 8) * 16 + column % 8",
            "(column ^ row % 8)",
            "wrong_value",
            "Whole pieces of 8 numbers change places, not single numbers.",
        ),
        (
            "(piece ^ row % 8)",
            "(column // 8 + row) % 8",
            "wrong_value",
            "The place is p XOR r % 8, not (p + r) % 8.",
        ),
        (
            "(piece ^ row % 8)",
            "(column // 8 ^ row)",
            "wrong_value",
            "The rows' pattern begins again after 8 rows.",
        ),
        (
            "row * 128 + (piece ^ row % 8) * 16 + column % 8 *",
            "address(row, column) //",
            "wrong_value",
            "Bytes are asked for: a number has two.",
        ),
        (
            "row * 128",
            "row % 8 * 128",
            "wrong_value",
            "Only the pattern begins again every 8 rows. Row 8 lies behind row 7, 8 · 128 bytes"
            " from the beginning.",
        ),
        (
            "column % 8 * 2",
            "column % 8",
            "wrong_value",
            "Within its piece, too, a number has two bytes.",
        ),
        ("row * 128", "row % 256 * 128", "wrong_value"),
    ),
)


# ---- tensor_cores.ring: a producer, a consumer, and a ring of slots between them

RING_HEAD = """
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
// Warp 0 copies tiles of 32 numbers, warp 1 adds up, of each tile, a number times the next one.
// out: 32 sums, then the `stages` slots as they are at the end. steps: tiles, no fewer than slots.
__global__ void ring(float* out, const float* tiles, int steps, int stages) {
    __shared__ float slots[4][32];
    __shared__ barrier full[4], empty[4];  // of which `stages` are used
    bool produces = threadIdx.x < 32;
    int lane = threadIdx.x % 32;
    if (!produces && lane < stages) {
        init(&full[lane], 32);  // arrivals
        init(&empty[lane], 32);
    }
    __syncthreads();
    float sum = 0;
"""
RING_TAIL = """
    __syncthreads();
    if (!produces)
        out[lane] = sum;
    for (int slot = 0; produces && slot < stages; ++slot)
        out[32 + slot * 32 + lane] = slots[slot][lane];
}
"""
ONE_SLOT = """
    for (int step = 0; step < steps; ++step) {
        if (produces)
            slots[0][lane] = tiles[step * 32 + lane];
        __syncthreads();
        if (!produces)
            sum += slots[0][lane] * slots[0][(lane + 1) % 32];
        __syncthreads();
    }
"""
MANY_SLOTS = """
    for (int step = 0; step < steps; ++step) {
        int slot = step % stages;
        int lap = step / stages;
        if (produces) {
            empty[slot].wait_parity((lap + 1) % 2);
            slots[slot][lane] = tiles[step * 32 + lane];
            (void)full[slot].arrive();
        } else {
            full[slot].wait_parity(lap % 2);
            sum += slots[slot][lane] * slots[slot][(lane + 1) % 32];
            (void)empty[slot].arrive();
        }
    }
"""


def ring_of(body):
    """The whole file with this loop."""
    return RING_HEAD + body.lstrip("\n") + RING_TAIL.lstrip("\n")


def ring_inputs(rng, shape):
    """shape: (tiles, slots)."""
    steps, stages = shape
    tiles = rng.integers(-9, 10, (steps, 32)).astype(np.float32)
    return {"out": Out((1 + stages, 32)), "tiles": tiles, "steps": steps, "stages": stages}


def ring_results(out, tiles, steps, stages):
    """The sums, and in each slot the last tile that came there."""
    wide = tiles.astype(float)
    sums = (wide * np.roll(wide, -1, axis=1)).sum(0)
    last = [max(range(slot, steps, stages)) for slot in range(stages)]
    return np.vstack([sums, wide[last]])


def slots_for_steps_in_blocks(out, tiles, steps, stages):
    """What lies in the slots if each slot keeps its tiles for a while, and is not taken in turn."""
    results = ring_results(out, tiles, steps, stages)
    each = -(-steps // stages)
    last = [min(steps, (slot + 1) * each) - 1 for slot in range(stages)]
    results[1:] = tiles[last]
    return results


PRODUCER_WAITS = "            empty[slot].wait_parity((lap + 1) % 2);\n"
CONSUMER_WAITS = "            full[slot].wait_parity(lap % 2);\n"
CONSUMER_ARRIVES = "            (void)empty[slot].arrive();\n"
ADDS = "            sum += slots[slot][lane] * slots[slot][(lane + 1) % 32];\n"
RING = Exercise(
    id="tensor_cores.ring",
    title="More than one slot",
    minutes=10,
    kind="cuda_c",
    kernel_name="ring",
    path="build/ring_of_slots.cu",
    one_block=True,
    task=(
        "The starter has one slot, and in each step producer and consumer meet twice at"
        " `__syncthreads()`, so neither works while the other does. Build the ring: step s uses"
        " slot `s % stages`. The producer waits at the slot's `empty` until it may overwrite the"
        " slot, copies, and arrives at `full`. The consumer waits at `full`, adds up, and arrives"
        " at `empty`. `b.wait_parity(p)` ends when the phase of parity p is over, and"
        " `(void)b.arrive();` arrives. Use no `__syncthreads()` in the loop."
    ),
    starter="\n%%writefile build/ring_of_slots.cu" + ring_of(ONE_SLOT),
    solution=ring_of(MANY_SLOTS),
    inputs=ring_inputs,
    reference=ring_results,
    rtol=0,
    shapes=((1, 1), (5, 1), (2, 2), (7, 2), (9, 3), (12, 3), (3, 3), (13, 2), (11, 4)),
    fresh=lambda rng: (int(rng.integers(4, 20)), int(rng.integers(1, 5))),
    large=(66_000, 3),
    launches=lambda shape: [Launch((1, 1, 1), (64, 1, 1))],
    extents=lambda shape: (64, 1, 1),
    is_square=lambda shape: False,
    specials="finite",
    powers=(-50, 50),  # products of two are to fit into a float32
    race_free=True,
    no_more=("barriers",),
    effort=4,
    hints=(
        "How often has the ring been gone round before step s? Call that the lap: `step / stages`.",
        "In lap 0 the consumer waits for the first phase of `full`, parity 0; in lap 1 for the"
        " second, parity 1: `lap % 2`.",
        "The producer waits for what the consumer did in the lap before: `(lap + 1) % 2`. In lap 0"
        " that is parity 1, the phase before the first, and a fresh barrier lets it pass.",
        "Arrive at `empty` after the tile has been used, not before. If the run says that one side "
        "waits for ever after several phases, then look at the other side: without a wait it runs "
        "ahead, and a parity knows only even and odd.",
    ),
    wrong=(
        Wrong(ring_of(ONE_SLOT), "uninitialized"),
        ("(lap + 1) % 2", "lap % 2", "barrier"),
        (PRODUCER_WAITS, "", "barrier"),
        (CONSUMER_WAITS, "", "race"),
        ("full[slot].wait_parity(lap % 2)", "full[slot].wait_parity(step % 2)", "barrier"),
        (CONSUMER_ARRIVES, "", "barrier"),
        (ADDS + CONSUMER_ARRIVES, CONSUMER_ARRIVES + ADDS, "race"),
        ("step % stages", "0", "barrier"),
        (
            MANY_SLOTS,
            ONE_SLOT.replace("slots[0]", "slots[step % stages]"),
            "other_means",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The sums are right, but slots must be taken in turn: step s uses slot `s % stages`.",
            slots_for_steps_in_blocks,
        ),
    ),
)


EXERCISES = (WMMA, FRAGMENT, REGISTERS, LDMATRIX, SWIZZLE, RING)
# ---- questions: before a cell shows the answer, and at the end

QUIZZES = (
    Quiz(
        id="tensor_cores.q_feed",
        question="A warp has a tile of 64 × 64 sums. For 16 steps along k it reads 64 × 16 numbers "
        "of A and 16 × 64 of B from shared memory, 2 bytes each. How many bytes is that?",
        answer=4096,
        unit="bytes",
        explain_right="2 · 64 · 16 numbers of 2 bytes.",
        explain={
            2048: "Those are the numbers; each has 2 bytes.",
            None: "64 · 16 numbers of A and as many of B, 2 bytes each.",
        },
    ),
    Quiz(
        id="tensor_cores.q_cycles",
        question="One wgmma does 64 × 256 × 16 multiply-adds. A Hopper SM does 2,048 per cycle. "
        "How many cycles does it take?",
        answer=128,
        unit="cycles",
        explain_right="262,144 / 2,048.",
        explain={
            256: "It is 2,048 multiply-adds per cycle, not FLOPs.",
            None: "64 · 256 · 16, divided by 2,048.",
        },
    ),
    one_of(
        "tensor_cores.q_serial",
        (
            "Predict: suppose that copying a step's tiles takes twice as long as multiplying "
            "them, and nothing overlaps. What share of the time are the tensor cores busy?"
        ),
        ("about a third", "Of three parts, one is multiplying and two are waiting."),
        ("about a half", "Then copying would have to take as long as multiplying."),
        ("about two thirds", "That is the share of the time in which they wait."),
        answer="a",
    ),
    Quiz(
        id="tensor_cores.q_stages",
        question="Predict: a copy takes 1,700 cycles, a multiplication 1,024. With how many slots "
        "do the tensor cores never wait, in the long run?",
        answer=3,
        unit="slots",
        explain_right="A slot is busy for 2,724 cycles per lap, so three of them give a step every "
        "908 cycles, and a multiplication takes 1,024.",
        explain={
            1: "With one slot a copy begins when the multiplication before it has ended.",
            2: "Two slots give a step every 1,362 cycles.",
            4: "Four do, but fewer are enough.",
            None: "A slot is busy for a copy and a multiplication. How many make it one step every "
            "1,024 cycles?",
        },
    ),
    one_of(
        "tensor_cores.q_colleague",
        "One slip in rung 19, and these lines of the error. Which slip was it?",
        (
            "`produce` waits at `empty` for parity `lap % 2`",
            "In lap 0 that is the first phase of `empty`, which ends when a slot is given back. But"
            " nobody can give back what was never filled.",
        ),
        (
            "`consume` waits at `full` for parity `(lap + 1) % 2`",
            "Then the consumers would not wait in lap 0: they would read tiles too early.",
        ),
        (
            "`consume` never arrives at `empty`",
            "Then the first lap would go well, and a phase of `full` would be over.",
        ),
        answer="a",
    ),
    one_of(
        "tensor_cores.q_order",
        (
            "Predict: 128 tiles of 128 × 256 are computed at one time, row by row or as a "
            "patch of 16 rows of tiles. Where does the patch save most?"
        ),
        (
            "at 4096 × 4096",
            "There a row has 16 tiles: 128 of them are a quarter of C, a patch already.",
        ),
        (
            "at 8192 × 8192",
            "There a row has 32 tiles: 128 of them need every column of B, and few rows of A.",
        ),
        (
            "at both alike",
            "How many tiles has a row of C at each size, and how many rows are 128 tiles?",
        ),
        answer="b",
    ),
    Quiz(
        id="tensor_cores.q_multicast",
        question="A step's tiles are 16 KiB of A and 32 KiB of B. Two blocks of a cluster need the "
        "same tile of B, and each fetches half of it for both. How many KiB does a block fetch?",
        answer=32,
        unit="KiB",
        explain_right="16 of A and 16 of B: a third less.",
        explain={
            48: "That is without a cluster.",
            24: "A is not shared: the blocks have different rows.",
            None: "All of its own tile of A, and half of B's.",
        },
    ),
    one_of(
        "tensor_cores.q_clock",
        (
            "Predict: the same bf16 kernel multiplies matrices of zeros. How fast do the SMs' "
            "clocks run, beside random numbers?"
        ),
        ("slower", "What holds the clock down is power. Which of the two needs more?"),
        ("alike", "The instructions are the same, but not the energy that they need."),
        (
            "faster",
            (
                "Hardly a bit flips, so each cycle needs less energy, and more cycles fit under the"
                " power limit."
            ),
        ),
        answer="c",
    ),
    Quiz(
        id="tensor_cores.q_owner",
        question="Of a 16 × 8 result of `mma.m16n8k16`, which lane holds row 0, columns 4 and 5?",
        answer=2,
        unit="(lane)",
        explain_right="Four lanes share a row, two neighbours each.",
        explain={
            4: "A lane holds two neighbours.",
            None: "Lane 0 holds columns 0 and 1 of row 0, lane 1 columns 2 and 3.",
        },
    ),
    one_of(
        "tensor_cores.q_wgmma",
        "Who issues a `wgmma`, and where does it find a and b?",
        ("A warp; both in registers", "That is `mma.sync`."),
        (
            "Four warps together; b always in shared memory, a there or in registers",
            (
                "A warp group of 128 threads. Nothing of b passes through registers, which "
                "is much of what it saves."
            ),
        ),
        (
            "A single thread; both in global memory",
            "One thread is enough for a TMA copy, which brings the tiles to shared memory.",
        ),
        answer="b",
    ),
    one_of(
        "tensor_cores.q_full",
        "What makes a `full` barrier's phase end, when TMA fills the slot?",
        (
            "The arrival of 128 consumers",
            "Consumers arrive at `empty`, when they have read the slot.",
        ),
        (
            "One arrival, and as many bytes as it was told to expect",
            "The producer arrives and names the bytes; the copy engine reports them.",
        ),
        ("A `__syncthreads()` of the block", "Nobody but the waiting consumers stops for it."),
        answer="b",
    ),
    one_of(
        "tensor_cores.q_energy",
        (
            "On an H200 the best kernel keeps the tensor cores busy in about nine of ten cycles,"
            " and yet stays well below the data sheet's number. Why?"
        ),
        ("Memory is too slow", "Then the tensor cores would wait, and they are busy."),
        (
            "The power limit: the clock falls while the tensor cores are busy",
            "The cycles are there, but each is longer.",
        ),
        (
            "Rounding to bfloat16 takes time",
            "It is a few instructions for each result, once per tile.",
        ),
        answer="b",
    ),
)
