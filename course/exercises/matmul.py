"""The exercises of the matmul ladder."""

from collections import Counter

import numpy as np
from numba import cuda

from course.checking.inputs import (
    arguments_of,
    columns_and_rows,
    of_any_size,
    uniform,
)
from course.checking.model import (
    Demand,
    Exercise,
    Hypothesis,
    Launch,
    Out,
    Speed,
    Wrong,
    ceil_div,
)
from course.checking.quiz import Quiz, one_of


def product_of(rng, shape):
    """Arguments of a matrix product of shape (m, n, k): c to fill, a and b."""
    m, n, k = shape
    return {"c": Out((m, n)), "a": uniform(rng, m, k), "b": uniform(rng, k, n)}


def product_in_c(rng, shape):
    """The same for CUDA C, which must be told the sizes."""
    m, n, k = shape
    return {**product_of(rng, shape), "m": m, "n": n, "k": k}


def product(c, a, b, m=0, n=0, k=0):
    return a.astype(np.float64) @ b.astype(np.float64)


def some_product(rng):
    """(m, n, k), all different and no multiple of 8."""
    return tuple(
        int(8 * q + r) for q, r in zip(rng.permutation(4) + 1, rng.integers(1, 8, 3), strict=False)
    )


def tiles_of(height, width, block):
    """A launch with a block for each tile of c, and one with a block more along x and y."""

    def launches(shape):
        grid = ceil_div(shape[1], width), ceil_div(shape[0], height), 1
        return [
            Launch(grid, block),
            Launch((grid[0] + 1, grid[1] + 1, 1), block, "more blocks than needed"),
        ]

    return launches


# ---- the tile kernel


@cuda.jit
def matmul_tile(c, a, b):
    a_tile = cuda.shared.array((8, 8), np.float32)
    b_tile = cuda.shared.array((8, 8), np.float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for first in range(0, a.shape[1], 8):
        a_tile[y, x] = a[row, first + x] if row < a.shape[0] and first + x < a.shape[1] else 0
        b_tile[y, x] = b[first + y, column] if first + y < b.shape[0] and column < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(8):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


BRING_A = (
    "        a_tile[y, x] = a[row, first + x]"
    " if row < a.shape[0] and first + x < a.shape[1] else 0\n"
)


@cuda.jit
def tile_left_out(c, a, b):
    column, row = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@cuda.jit
def tile_barrier_in_branch(c, a, b):
    a_tile = cuda.shared.array((8, 8), np.float32)
    b_tile = cuda.shared.array((8, 8), np.float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if row < c.shape[0] and column < c.shape[1]:
        total = np.float32(0)
        for first in range(0, a.shape[1], 8):
            a_tile[y, x] = a[row, first + x] if first + x < a.shape[1] else 0
            b_tile[y, x] = b[first + y, column] if first + y < b.shape[0] else 0
            cuda.syncthreads()
            for k in range(8):
                total += a_tile[y, k] * b_tile[k, x]
            cuda.syncthreads()
        c[row, column] = total


def rereads_memory(trace):
    """Of a 16 × 16 × 16 product: more requests to read a or b than the tiles need."""
    reads = [row for row in trace.coalescing if row.operation == "read"]
    if not trace.banks:
        return (
            "no_shared",
            "Each block should fetch its tiles of `a` and `b` into shared memory, and read them "
            "there.",
            None,
        )
    requests = Counter()
    for row in reads:
        requests[row.array] += row.requests
    [(array, most)] = requests.most_common(1)
    needed = 16  # 4 blocks × 2 steps × 2 warps, one element a thread
    if most <= needed:
        return None
    return (
        "too_much_traffic",
        f"To read `{array}`, warps ask global memory {most} times; with tiles, {needed} times are"
        " enough.",
        max((row for row in reads if row.array == array), key=lambda row: row.requests),
    )


TILE = Exercise(
    id="matmul.tile",
    title="The tile kernel",
    minutes=19,
    one_block=True,
    task=(
        "Write the tile kernel, for blocks of 8 by 8 threads and tiles of 8 by 8, so small that "
        "the check can watch every access. In each step along k a thread brings one element of "
        "`a` and one of `b` into shared memory. The matrices may have any sizes."
    ),
    starter="""
@cuda.jit
def matmul_tile(c, a, b):
    # a_tile = cuda.shared.array((8, 8), np.float32)
    column, row = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):  # right, and every number comes from global memory
            total += a[row, k] * b[k, column]
        c[row, column] = total
""",
    solution=matmul_tile,
    inputs=product_of,
    reference=product,
    shapes=((1, 1, 1), (8, 8, 8), (8, 16, 7), (16, 8, 24), (3, 2, 150), (3, 2, 0), (13, 9, 10)),
    fresh=some_product,
    large=((260, 2, 3), (2, 260, 3), (2, 2, 260)),
    block=(8, 8, 1),
    extents=columns_and_rows,
    demand=Demand((16, 16, 16), rereads_memory),
    swapped=(0, 1),
    race_free=True,
    orders=1,
    speed=Speed(
        "matrices of 1024 × 1024", 1024, lambda side: (1024, 1024, side), small=(64, 128, 192)
    ),
    hints=(
        "A step has three parts: every thread stores two elements, all wait, every thread adds"
        " eight products. What must all threads wait for before the next step begins?",
        "No thread may leave early, because all of them must reach each barrier: guard the loads "
        "and the last store, not the loop. What lies beyond an edge counts as 0.",
        "`a_tile[y, x] = a[row, first + x] if row < a.shape[0] and first + x < a.shape[1] else "
        "0`, the same for `b`, and `total += a_tile[y, k] * b_tile[k, x]` between two "
        "`cuda.syncthreads()`.",
    ),
    wrong=(
        Wrong(tile_left_out, "no_shared"),
        ("    if row", "    if a.shape[1] > 0 and row", "unwritten"),
        ("column, row = cuda.grid(2)", "row, column = cuda.grid(2)", "swapped_axes"),
        (BRING_A, 2 * BRING_A, "too_much_traffic"),
        (
            "total += a_tile[y, k] * b_tile[k, x]",
            "total += (a_tile[y, k] if k < 7 or row >= a.shape[0] or first + k >= a.shape[1]"
            " else a[row, first + k]) * b_tile[k, x]",
            "too_much_traffic",
        ),
        ("        cuda.syncthreads()\n        for k", "        for k", "race"),
        ("        cuda.syncthreads()\n    if row", "    if row", "race"),
        Wrong(tile_barrier_in_branch, "barrier"),
        (
            "range(0, a.shape[1], 8)",
            "range(0, a.shape[1] // 8 * 8, 8)",
            "wrong_value",
        ),
        ("1], 8):\n", "1], 8):\n        total = np.float32(0)\n", "wrong_value"),
        (
            "    if row < c.shape[0] and column < c.shape[1]:\n        c[",
            "    c[",
            "missing_guard",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "The last columns of `a` are left out when k is no multiple of 8.",
            lambda c, a, b: product(c, a[:, : a.shape[1] // 8 * 8], b[: a.shape[1] // 8 * 8]),
        ),
        Hypothesis(
            "wrong_value",
            "Only the last step along k is in the result: set the sum to 0 once, before the loop.",
            lambda c, a, b: product(
                c, a[:, (a.shape[1] - 1) // 8 * 8 :], b[(a.shape[1] - 1) // 8 * 8 :]
            ),
        ),
    ),
)


# ---- the stages in turn


def ring(step, stages):
    ahead = stages - 1
    return step % stages, (step + ahead) % stages, step + ahead


STAGES = Exercise(
    id="matmul.stages",
    title="The stages in turn",
    minutes=6,
    kind="function",
    task=(
        "Step `step` of a kernel with `stages` pairs of tiles is about to begin (steps count from "
        "0). All pairs but one hold tiles that have arrived or are on their way. Return three "
        "numbers: the stage that it reads, the stage that it fills, and the step whose tiles it "
        "starts to copy."
    ),
    starter="""
def ring(step, stages):
    # return the stage that is read, the stage that is filled, and the step of the copies
    pass
""",
    solution=ring,
    inputs=arguments_of(ring),
    reference=ring,
    shapes=((0, 2), (0, 3), (1, 3), (2, 3), (3, 3), (4, 4), (7, 4), (2**60 + 1, 3), (2**31, 5)),
    draws=lambda some: some.tuples(of_any_size(some, 1 << 60), some.integers(2, 40)),
    hints=(
        "With three stages, step 0 reads stage 0, and the copies for steps 1 and 2 are on their "
        "way into stages 1 and 2. They were started before the loop, or by an earlier step. "
        "Which one was started last, and where does the next one go?",
        "The stage to fill is the one that nobody needs any more: the one that the step before "
        "this one has read.",
        "`stages - 1` steps ahead: `step + stages - 1`, and that modulo `stages`.",
    ),
    wrong=(
        (
            "(step + ahead) % stages, step + ahead",
            "step % stages, step + stages",
            "wrong_value",
            "The copies would overwrite the very tiles that this step reads.",
        ),
        (
            "(step + ahead) % stages, step + ahead",
            "(step + 1) % stages, step + 1",
            "wrong_value",
            "Only one pair would be on its way, however many stages there are.",
        ),
        (
            "(step + ahead) % stages, step + ahead",
            "(step + stages - 1) % stages, step + stages",
            "wrong_value",
            (
                "With `stages` pairs, one of them being read, `stages - 1` steps ahead is as far "
                "as copies can run."
            ),
        ),
        (
            "step % stages, (step + ahead) % stages, step + ahead",
            "step, step + stages - 1, step + stages - 1",
            "wrong_value",
            "There are only `stages` places, which are used in turn: take the step modulo"
            " `stages`.",
        ),
        ("stages, step + ahead", "stages, (step + ahead) % 1000", "wrong_value"),
        (
            "step % stages, (step + ahead) % stages, step + ahead",
            "step % 3, (step + 2) % 3, step + 2",
            "wrong_value",
            "That is the table's rule, for three pairs. `stages` may be another number.",
        ),
        (
            "(step + ahead) % stages",
            "(step + 1) % stages",
            "wrong_value",
            "The pair after this one holds the next step's tiles. The one to fill is the one that"
            " was read last.",
        ),
    ),
)


# ---- a register tile of your own

BEAT_CU = """
__global__ void matmul_mine(float *c, const float *a, const float *b, int m, int n, int k)
{
    __shared__ float a_tile[16][64 + 1], b_tile[16][64];
    int t = threadIdx.x, x = t % 16, y = t / 16, left = 64 * blockIdx.x, top = 64 * blockIdx.y;
    float sums[4][4] = {};
    for (int first = 0; first < k; first += 16) {
        for (int i = t; i < 16 * 64; i += 256) {
            int row = top + i / 16, inner = first + i % 16;
            a_tile[i % 16][i / 16] = row < m && inner < k ? a[row * k + inner] : 0;
        }
        for (int i = t; i < 16 * 64; i += 256) {
            int inner = first + i / 64, column = left + i % 64;
            b_tile[i / 64][i % 64] = inner < k && column < n ? b[inner * n + column] : 0;
        }
        __syncthreads();
        for (int q = 0; q < 16; ++q) {
            float from_a[4], from_b[4];
            for (int i = 0; i < 4; ++i) {
                from_a[i] = a_tile[q][y + 16 * i];
                from_b[i] = b_tile[q][x + 16 * i];
            }
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j)
                    sums[i][j] += from_a[i] * from_b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            int row = top + y + 16 * i, column = left + x + 16 * j;
            if (row < m && column < n)
                c[row * n + column] = sums[i][j];
        }
}
"""

SUMS_IN_SHARED_MEMORY = (
    BEAT_CU.replace(
        "float sums[4][4] = {};",
        "__shared__ float all[256][16];\n    for (int i = 0; i < 16; ++i) all[t][i] = 0;",
    )
    .replace("sums[i][j] +=", "all[t][4 * i + j] +=")
    .replace("= sums[i][j]", "= all[t][4 * i + j]")
)

SIXTEEN_SMALL_TILES = """
__global__ void matmul_mine(float* c, const float* a, const float* b, int m, int n, int k) {
    __shared__ float a_tile[16][16], b_tile[16][16];
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (int tile = 0; tile < 16; ++tile) {  // one after the other
        int row = 64 * blockIdx.y + tile / 4 * 16 + y;
        int column = 64 * blockIdx.x + tile % 4 * 16 + x;
        float sum = 0;
        for (int first = 0; first < k; first += 16) {
            a_tile[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0;
            b_tile[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0;
            __syncthreads();
            for (int q = 0; q < 16; ++q)
                sum += a_tile[y][q] * b_tile[q][x];
            __syncthreads();
        }
        if (row < m && column < n)
            c[row * n + column] = sum;
    }
}
"""

SIXTEEN_FROM_MEMORY = """
__global__ void matmul_mine(float* c, const float* a, const float* b, int m, int n, int k) {
    for (int e = threadIdx.x; e < 64 * 64; e += 256) {
        int row = 64 * blockIdx.y + e / 64, column = 64 * blockIdx.x + e % 64;
        float sum = 0;
        for (int i = 0; i < k && row < m && column < n; ++i)
            sum += a[row * k + i] * b[i * n + column];
        if (row < m && column < n)
            c[row * n + column] = sum;
    }
}
"""


def columns_4_apart(b):
    """The columns that a thread multiplies if it takes those 4 apart for those 16 apart."""
    column = np.arange(b.shape[1])
    place = column % 64
    taken = column - place + place % 16 + place // 16 * 4
    inside = np.pad(b, ((0, 0), (0, 64)))  # beyond the edge the tile holds zeros
    return inside[:, taken]


def sums_turned(c, a, b, m, n, k):
    """The product, but each thread stores sums[j][i] where sums[i][j] belongs."""
    tall, wide = (-(-size // 64) * 64 for size in (m, n))
    whole = np.zeros((tall, wide))  # beyond the edge the tiles hold zeros
    whole[:m, :n] = product(c, a, b)
    row, column = np.ogrid[:tall, :wide]
    i, j = row % 64 // 16, column % 64 // 16
    turned = whole[row + 16 * (j - i), column + 16 * (i - j)]
    return turned[:m, :n]


BEAT = Exercise(
    id="matmul.beat",
    title="A register tile",
    minutes=18,
    one_block=True,
    kind="cuda_c",
    kernel_name="matmul_mine",
    path="build/matmul_mine.cu",
    task=(
        "Blocks have 256 threads in a row and compute 64 by 64 elements of `c`, so each thread has "
        "16 sums. The tiles come into shared memory already. Let each thread keep its 16 sums in "
        "registers and store them all. The matrices may have any sizes, and each block fetches its "
        "tiles once."
    ),
    starter="""%%writefile build/matmul_mine.cu
__global__ void matmul_mine(float* c, const float* a, const float* b, int m, int n, int k) {
    __shared__ float a_tile[16][64 + 1];  // turned: a_tile[q] holds 64 rows of a, in column q
    __shared__ float b_tile[16][64];
    int t = threadIdx.x;
    int x = t % 16, y = t / 16;
    int left = 64 * blockIdx.x, top = 64 * blockIdx.y;
    float sum = 0;  // one of 16: rows y, y + 16, y + 32, y + 48, and columns likewise from x
    for (int first = 0; first < k; first += 16) {
        for (int i = t; i < 16 * 64; i += 256) {
            int row = top + i / 16, inner = first + i % 16;
            a_tile[i % 16][i / 16] = row < m && inner < k ? a[row * k + inner] : 0;
        }
        for (int i = t; i < 16 * 64; i += 256) {
            int inner = first + i / 64, column = left + i % 64;
            b_tile[i / 64][i % 64] = inner < k && column < n ? b[inner * n + column] : 0;
        }
        __syncthreads();
        for (int q = 0; q < 16; ++q) {
            sum += a_tile[q][y] * b_tile[q][x];
        }
        __syncthreads();
    }
    int row = top + y, column = left + x;
    if (row < m && column < n) {
        c[row * n + column] = sum;
    }
}
""",
    solution=BEAT_CU,
    inputs=product_in_c,
    reference=product,
    shapes=(
        *((1, 1, 1), (64, 64, 16), (65, 64, 16), (64, 63, 16), (64, 64, 17), (70, 130, 5)),
        *((192, 128, 3), (3, 2, 0), (3, 2, 300)),  # whole tiles; too long for a char
    ),
    large=((260, 260, 3), (66_000, 2, 3), (2, 66_000, 3), (2, 2, 3000)),
    fresh=some_product,
    launches=tiles_of(64, 64, (256, 1, 1)),
    extents=lambda shape: (
        256 * ceil_div(shape[1], 64),
        ceil_div(shape[0], 64),
        1,
    ),  # of threads, not of elements
    race_free=True,
    orders=1,
    effort=4.1,  # 3.7 where the compiler is trusted with the values, 4.5 with sums in shared memory
    traffic=1.5,
    speed=Speed(
        "matrices of 1024 × 1024",
        1024,
        lambda depth: (1024, 1024, 1024) if depth == 1024 else (64, 64, depth),
        small=(32, 48, 64),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "A thread's columns are 16 apart in `c`, and are read 4 apart from the tile of `b`.",
            lambda c, a, b, m, n, k: product(c, a, columns_4_apart(b)),
        ),
        Hypothesis(
            "wrong_value",
            "A thread's rows are 16 apart in `c`, and are read 4 apart from the tile of `a`.",
            lambda c, a, b, m, n, k: product(c, columns_4_apart(a.T).T, b),
        ),
        Hypothesis(
            "wrong_value",
            "Rows and columns of a thread's sums have changed places: `sums[i][j]` belongs to row i"
            " and column j of its 4 × 4 elements.",
            sums_turned,
        ),
    ),
    hints=(
        "Start with `float sums[4][4] = {}` in place of `sum`. Which row and which column does "
        "sums[i][j] belong to?",
        "sums[i][j] is row `top + y + 16 * i`, column `left + x + 16 * j`. In each step q it "
        "gets `a_tile[q][y + 16 * i] * b_tile[q][x + 16 * j]`: two loops inside the loop over q. "
        "Before them, a loop that reads the four values of a and the four of b.",
        "The same two loops stand around the last `if`, since each of the 16 elements may lie "
        "beyond the edge.",
    ),
    wrong=(
        ("            if (row < m && column < n)\n", "", "out_of_bounds"),
        (
            "        __syncthreads();\n        for (int q",
            "        for (int q",
            "race",
        ),
        ("row < m && inner < k ?", "row < m ?", "out_of_bounds"),
        (
            "i < 16 * 64; i += 256) {\n            int in",
            "i < 8 * 64; i += 256) {\n            int in",
            "uninitialized",
        ),
        (
            "float sums[4][4] = {};\n    for (int first",
            "float sums[4][4] = {};\n    if (top + y >= m) return;\n    for (int first",
            "uninitialized",
        ),
        ("b_tile[q][x + 16 * i]", "b_tile[q][x + 4 * i]", "wrong_value"),
        (
            "sums[i][j] += from_a[i] * from_b[j]",
            "sums[j][i] += from_a[i] * from_b[j]",
            "wrong_value",
        ),
        ("a_tile[q][y + 16 * i]", "a_tile[q][y + 4 * i]", "wrong_value"),
        Wrong(SUMS_IN_SHARED_MEMORY, "too_much_work"),
        Wrong(SIXTEEN_SMALL_TILES, "too_much_traffic"),
        Wrong(SIXTEEN_FROM_MEMORY, "too_much_traffic"),
    ),
)

EXERCISES = (TILE, BEAT, STAGES)

QUIZZES = (
    Quiz(
        id="matmul.q_warps",
        question="`BM` 128, `BN` 256, `WM` 64, `WN` 64: how many warps has a block?",
        answer=8,
        unit="warps",
        explain_right="128 / 64 · 256 / 64 = 2 · 4: each has its own part of the block's tile.",
        explain={
            256: "That is how many threads it has: 32 in each warp.",
            None: "Cut the block's tile of 128 × 256 into pieces of 64 × 64: one for each warp.",
        },
    ),
    Quiz(
        id="matmul.q_intensity",
        question=(
            "Two 1024 × 1024 matrices of float32 are multiplied, and each element is moved once."
            " How many FLOPs per byte is that, rounded down?"
        ),
        answer=170,
        unit="FLOPs per byte",
        explain_right="2 · 1024³ operations over 3 · 4 · 1024² bytes is 1024 / 6.",
        explain={
            85: "A multiply-add counts as two operations.",
            256: "C is written too: three matrices.",
            None: "2 n³ operations, 3 n² elements of 4 bytes.",
        },
    ),
    Quiz(
        id="matmul.q_tile",
        question=(
            "Without caches, how many times less global memory does a kernel with 64 × 64 tiles "
            "of c read than one that loads two values for every multiply-add?"
        ),
        answer=64,
        unit="times",
        explain_right="Each value of a serves 64 columns, each value of b 64 rows.",
        explain={
            32: (
                "Count one operand: how many products does a value that has been brought in take "
                "part in?"
            ),
            4096: (
                "A value of a is used in one row of the tile, by its 64 columns, not by all of "
                "its elements."
            ),
            None: "In how many products of the tile does one loaded value of a take part?",
        },
    ),
    one_of(
        "matmul.q_register",
        (
            "A thread's register tile grows from 4 × 4 to 8 × 8. Loads from shared memory per "
            "multiply-add:"
        ),
        ("stay the same", "Sides add up to loads, and multiply to products."),
        ("are halved", "8 loads for 16 becomes 16 loads for 64: from a half to a quarter."),
        ("are a quarter", "The products are four times as many, and the loads are twice as many."),
        answer="b",
    ),
    one_of(
        "matmul.q_flag",
        "A block hands over its sums, and sets its flag without a fence before it. Then",
        (
            "nothing goes wrong: the sums were written first",
            "That is what the thread itself sees; another SM may see its writes in another order.",
        ),
        (
            "another block may see the flag and read old sums",
            "With a fence, whoever sees the flag sees the sums; without one nothing promises it.",
        ),
        ("both blocks wait for each other for ever", "The flag does come, only too early."),
        answer="b",
    ),
    one_of(
        "matmul.q_async",
        "What does `cp.async` save?",
        ("The bytes from global memory", "Every byte is still moved."),
        (
            "The way through registers, and the wait before the arithmetic can go on",
            (
                "The copy goes from global to shared memory by itself, while the threads "
                "compute on "
                "the stage before."
            ),
        ),
        (
            "The barrier",
            (
                "Other threads' copies must have arrived, so a barrier still stands before their "
                "use."
            ),
        ),
        answer="b",
    ),
)
