"""The exercises of the chapter Memory."""

import numpy as np
from numba import cuda

from course.checking.inputs import (
    a_thread_each,
    arguments_of,
    factor,
    lengths,
    some_length,
    some_numbers,
    some_zeros,
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
    cover,
)
from course.checking.quiz import Quiz, one_of
from utils.occupancy import occupancy

TILE, ROWS = 32, 8


def wasteful(trace):
    """The worst global access that moves more than a tenth more than it needs, as `Demand.unmet`
    says it.
    """
    row = min(trace.coalescing, key=lambda row: row.efficiency)
    if row.efficiency > 90:
        return None
    needed = row.fewest / row.requests
    says = (
        f"To {row.operation} `{row.array}`, a warp moves {row.sectors_per_request:.3g} sectors"
        f" of 32 bytes where {needed:.3g} would do: {row.efficiency:.0f} %."
    )
    return "uncoalesced", says, row


def wasteful_or_conflicting(trace):
    """Also: no shared memory at all, or a bank conflict."""
    waste = wasteful(trace)
    if waste:
        return waste
    if not trace.banks:
        says = "Pass the values from one thread to another through shared memory."
        return "no_shared", says, None
    row = max(trace.banks, key=lambda row: row.ways)
    if row.ways == 1:
        return None
    surplus = row.conflicts / row.requests
    says = (
        f"To {row.operation} `{row.array}`, {row.ways} lanes of a warp wait for each other at one"
        f" bank: a {row.ways}-way conflict, {surplus:.3g} passes too many each time."
    )
    return "bank_conflict", says, row


# ---- scale_four: a stride that wastes memory


@cuda.jit
def scale_four(out, a, factor):
    start = 4 * cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    for k in range(4):
        i = start + k * cuda.blockDim.x
        if i < out.size:
            out[i] = factor * a[i]


SCALE_FOUR = Exercise(
    id="memory.scale_four",
    title="Four elements per thread",
    minutes=6,
    task=(
        "Each thread of this kernel scales four elements, and the grid has a quarter of the usual"
        " threads. It is right, and slow: look which elements the lanes of a warp touch at the same"
        " time. Change the index so that neighbouring lanes touch neighbouring elements. Each"
        " thread still does four."
    ),
    starter="""
@cuda.jit
def scale_four(out, a, factor):
    for k in range(4):
        i = 4 * cuda.grid(1) + k  # change this line
        if i < out.size:
            out[i] = factor * a[i]
""",
    solution=scale_four,
    inputs=lambda rng, n: {
        "out": Out(n),
        "a": some_zeros(rng, *n),
        "factor": factor(rng),
    },
    reference=lambda out, a, factor: a.astype(np.float64) * factor,
    large=(66_000,),
    shapes=lengths(1, 31, 127, 128, 129, 256, 513),
    fresh=some_length,
    elements=4,
    extents=lambda n: (ceil_div(n[0], 4), 1, 1),
    demand=Demand((512,), wasteful, ragged=(456,)),
    effort=1,
    other_block=(96, 1, 1),
    speed=Speed("4 million elements", 4 << 20, block=(256, 1, 1)),
    hints=(
        (
            "Trace it: `trace(scale_four, 2, 32, out, a, np.float32(2))` with arrays of 256. In one"
            " step lane 0 touches element 0. Which one does lane 1 touch, and which should it?"
        ),
        (
            "In step k the block's lanes should touch `blockDim.x` elements in a row. A block has"
            " `4 * blockDim.x` of its own."
        ),
        (
            "`i = 4 * cuda.blockIdx.x * cuda.blockDim.x + k * cuda.blockDim.x + cuda.threadIdx.x`,"
            " or a stride of `cuda.gridsize(1)` from `cuda.grid(1)`."
        ),
    ),
    wrong=(
        ("start + k * cuda.blockDim.x", "4 * cuda.grid(1) + k", "uncoalesced"),
        (
            (
                "start = 4 * cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x",
                "lanes = cuda.blockDim.x // 8  # eight lanes apart\n"
                "    t = cuda.threadIdx.x % lanes * 8 + cuda.threadIdx.x // lanes",
            ),
            ("start + k * cuda.blockDim.x", "4 * (cuda.blockIdx.x * cuda.blockDim.x + t) + k"),
            "uncoalesced",
        ),
        ("i < out.size", "True", "out_of_bounds"),
        ("4 * cuda.blockIdx.x", "cuda.blockIdx.x", "duplicate_work"),
        ("4 * cuda.blockIdx.x * cuda.blockDim.x + ", "", "duplicate_work"),
    ),
)


# ---- split: array of structures -> structure of arrays


@cuda.jit
def split(out, points):
    tile = cuda.shared.array(96, np.float32)
    t = cuda.threadIdx.x
    first = 32 * cuda.blockIdx.x
    for k in range(3):
        i = 3 * first + 32 * k + t
        if i < points.size:
            tile[32 * k + t] = points[i]
    cuda.syncthreads()
    if first + t < out.shape[1]:
        for k in range(3):
            out[k, first + t] = tile[3 * t + k]


@cuda.jit
def split_directly(out, points):
    i = cuda.grid(1)
    if i < out.shape[1]:
        for k in range(3):
            out[k, i] = points[3 * i + k]


@cuda.jit
def split_flat_threads(out, points):
    for k in range(3):
        i = 96 * cuda.blockIdx.x + 32 * k + cuda.threadIdx.x
        if i < points.size:
            out[i % 3, i // 3] = points[i]


SPLIT = Exercise(
    id="memory.split",
    title="From an array of structures to a structure of arrays",
    minutes=12,
    one_block=True,
    task=(
        "`points` holds x, y, z of each point in turn: x0 y0 z0 x1 y1 z1 … Write all x into"
        " `out[0]`, all y into `out[1]` and all z into `out[2]`, so that reads **and** writes are"
        " coalesced. A block has 32 threads and does 32 points: fetch their 96 numbers into shared"
        " memory in the order of memory, then hand them out by point."
    ),
    starter="""
@cuda.jit
def split(out, points):
    # tile = cuda.shared.array(96, np.float32)
    t = cuda.threadIdx.x  # my place in the block
    first = 32 * cuda.blockIdx.x  # the block's first point
    if first + t < out.shape[1]:
        for k in range(3):
            out[k, first + t] = points[3 * (first + t) + k]  # right, but look at the sectors
""",
    solution=split,
    inputs=lambda rng, n: {"out": Out((3, *n)), "points": some_zeros(rng, 3 * n[0])},
    reference=lambda out, points: points.reshape(-1, 3).T,
    copies=True,
    traffic=1.25,  # each number is loaded once and stored once
    shapes=lengths(1, 31, 32, 33, 64, 97),
    fresh=some_length,
    large=(66_000,),
    extents=a_thread_each,
    demand=Demand((64,), wasteful_or_conflicting, ragged=(40,)),
    race_free=True,
    hints=(
        (
            "Two steps with a barrier between them. In the first a thread does not care whose"
            " number it fetches: `points[3 * first + 32 * k + t]` for k = 0, 1, 2."
        ),
        (
            "Put that number into `tile[32 * k + t]`. Where in the tile are x, y and z of point t"
            " then?"
        ),
        (
            "After `cuda.syncthreads()`: `out[k, first + t] = tile[3 * t + k]`. Guard both steps,"
            " and let every thread reach the barrier."
        ),
    ),
    wrong=(
        Wrong(split_directly, "uncoalesced"),
        Wrong(split_flat_threads, "uncoalesced"),
        (
            ("array(96", "array(128"),
            ("tile[32 * k + t]", "tile[(32 * k + t) // 3 * 4 + (32 * k + t) % 3]"),
            ("3 * t + k", "4 * t + k"),
            "bank_conflict",
        ),
        ("    cuda.syncthreads()\n", "", "race"),
        (
            ("i < points.size", "True"),
            ("first + t < out.shape[1]", "True"),
            "missing_guard",
        ),
        ("3 * t + k", "32 * k + t", "uninitialized"),
    ),
)


# ---- rotate_tile: a tile, padded


@cuda.jit
def rotate(out, a):
    tile = cuda.shared.array((32, 33), np.float32)
    height, width = a.shape
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
    for j in range(0, 32, 8):
        if top + ty + j < height and left + tx < width:
            tile[ty + j, tx] = a[top + ty + j, left + tx]
    cuda.syncthreads()
    for j in range(0, 32, 8):
        if top + tx < height and left + ty + j < width:
            out[left + ty + j, height - 1 - top - tx] = tile[tx, ty + j]


@cuda.jit
def rotate_naive(out, a):
    height, width = a.shape
    x, y = 32 * cuda.blockIdx.x + cuda.threadIdx.x, 32 * cuda.blockIdx.y + cuda.threadIdx.y
    for j in range(0, 32, 8):
        if y + j < height and x < width:
            out[x, height - 1 - y - j] = a[y + j, x]


def tiles(shape):
    """Blocks of 32 by 8 threads, each for a tile of 32 by 32; and one block more along x and y."""
    height, width = shape
    grid = ceil_div(width, TILE), ceil_div(height, TILE), 1
    block = (TILE, ROWS, 1)
    return [
        Launch(grid, block),
        Launch((grid[0] + 1, grid[1] + 1, 1), block, "more blocks than needed"),
    ]


ROTATE_TILE = Exercise(
    id="memory.rotate_tile",
    title="Turn a picture, at full speed",
    minutes=18,
    one_block=True,
    task=(
        "Turn `a` by 90 degrees clockwise: the pixel at row r, column c comes to row c, column"
        " `height - 1 - r`. This kernel is right, and its writes are scattered. Use a tile in"
        " shared memory, so that reads and writes are coalesced and no lanes of a warp meet in a"
        " bank. Blocks have 32 by 8 threads and do 32 by 32 pixels, also at the edges."
    ),
    starter="""
@cuda.jit
def rotate(out, a):
    height, width = a.shape
    x = 32 * cuda.blockIdx.x + cuda.threadIdx.x
    y = 32 * cuda.blockIdx.y + cuda.threadIdx.y
    for j in range(0, 32, 8):
        if y + j < height and x < width:
            out[x, height - 1 - (y + j)] = a[y + j, x]  # neighbouring lanes write to different rows
""",
    solution=rotate,
    inputs=lambda rng, shape: {"out": Out(shape[::-1]), "a": some_zeros(rng, *shape)},
    reference=lambda out, a: np.rot90(a, -1),
    copies=True,
    traffic=1.25,  # each number is loaded once and stored once
    shapes=((1, 1), (5, 40), (32, 32), (33, 31), (64, 32)),
    launches=tiles,
    extents=lambda shape: (shape[1], ceil_div(shape[0], 4), 1),
    demand=Demand((32, 64), wasteful_or_conflicting, ragged=(24, 40)),
    race_free=True,
    orders=1,
    fresh=some_numbers((1, 70), (1, 70)),
    large=((1, 300), (300, 1)),
    hints=(
        (
            "The chapter's transpose is nearly it. The first half, reading into the tile, stays as"
            " it is there."
        ),
        (
            "Thread (tx, ty) writes row `left + ty + j` of the output, and lanes run along that"
            " row: which row of `a` does lane tx stand for, and in which column of the output does"
            " it end?"
        ),
        (
            "`out[left + ty + j, height - 1 - (top + tx)] = tile[tx, ty + j]`, guarded by `top + tx"
            " < height` and `left + ty + j < width`. Then mind the width of the tile."
        ),
    ),
    wrong=(
        Wrong(rotate_naive, "uncoalesced"),
        ("(32, 33)", "(32, 32)", "bank_conflict"),
        ("(32, 33)", "(32, 34)", "bank_conflict"),
        (
            (
                "top + tx < height and left + ty + j < width",
                "top + ty + j < height and left + tx < width",
            ),
            (
                "out[left + ty + j, height - 1 - top - tx] = tile[tx, ty + j]",
                "out[left + tx, height - 1 - top - ty - j] = tile[ty + j, tx]",
            ),
            "uncoalesced",
        ),
        ("    cuda.syncthreads()\n", "", "race"),
        ("height - 1 - top - tx", "top + tx", "wrong_value"),
        (
            ("left + tx]\n", "left + tx]\n        else:\n            tile[ty + j, tx] = 0\n"),
            ("top + tx < height and left + ty + j < width", "True"),
            "missing_guard",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value", "This is the transpose: the rows come out mirrored.", lambda out, a: a.T
        ),
        Hypothesis("wrong_value", "It turns the other way round.", lambda out, a: np.rot90(a)),
    ),
)


# ---- copy4: 16 bytes a thread, and the rest

COPY4_CU = """
__global__ void copy4(float* out, const float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4)
        reinterpret_cast<float4*>(out)[i] = reinterpret_cast<const float4*>(a)[i];
    if (i < n % 4) {
        int last = n / 4 * 4 + i;
        out[last] = a[last];
    }
}
"""
TAIL = "    if (i < n % 4)" + COPY4_CU.partition("    if (i < n % 4)")[2].rpartition("}\n")[0]

COPY4 = Exercise(
    id="memory.copy4",
    title="Sixteen bytes per thread, in CUDA C",
    minutes=10,
    kind="cuda_c",
    kernel_name="copy4",
    path="build/copy4_exercise.cu",
    task=(
        "Copy `n` floats, each once, four per thread, with one load and one store of 16"
        " bytes (`float4`, say). The grid has one thread for every four elements, and at least four"
        " threads: enough for the last elements, too. `n` need not be a multiple of 4: the last"
        " `n % 4` elements are copied one by one."
    ),
    starter="""%%writefile build/copy4_exercise.cu
__global__ void copy4(float* out, const float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i];  // only the first quarter: four elements a thread are needed
}
""",
    solution=COPY4_CU,
    inputs=lambda rng, n: {"out": Out(n), "a": some_zeros(rng, *n), "n": n[0]},
    reference=lambda out, a, n: a,
    copies=True,
    traffic=1.1,  # each number is loaded once and stored once; one of four once more is an eighth
    shapes=lengths(1, 3, 4, 31, 128, 129, 254, 512),
    large=(263_003,),
    fresh=some_length,
    launches=lambda n: cover((ceil_div(n[0], 4), 1, 1), (32, 1, 1)),
    extents=lambda n: (ceil_div(n[0], 4), 1, 1),
    other_block=(96, 1, 1),
    needs=("wide", "wide_loads"),
    effort=2.5,
    probe=(511,),
    hints=(
        (
            "`reinterpret_cast<float4 *>(out)` sees the same memory as an array of `float4`: there"
            " are `n / 4` whole ones."
        ),
        (
            "What is left begins at `n / 4 * 4`, and there are at most three of them: give one each"
            " to threads 0, 1 and 2."
        ),
        "`if (i < n % 4) out[n / 4 * 4 + i] = a[n / 4 * 4 + i];`",
    ),
    wrong=(
        (TAIL, "", "unwritten"),
        ("i < n / 4)", "i < (n + 3) / 4)", "out_of_bounds"),
        ("if (i < n / 4)", "if (i < n)", "out_of_bounds"),
        ("n / 4 * 4 + i;", "n / 4 + i;", "unwritten"),
        ("if (i < n % 4)", "if (i < n % 4 - 1)", "off_by_one"),
        (
            "    if (i < n % 4)",
            "    const volatile float* again = a;\n    if (i < n / 4) again[4 * i];\n"
            "    if (i < n % 4)",
            "too_much_traffic",
        ),
    ),
)


# ---- occupancy


def blocks_per_sm(threads, registers, shared):
    warps = (threads + 31) // 32
    by_warps = 64 // warps
    by_shared = 228 * 1024 // ((shared + 1024 + 127) // 128 * 128)
    a_warp = (registers * 32 + 255) // 256 * 256
    by_registers = 4 * (16384 // a_warp) // warps
    return min(by_warps, 32, by_shared, by_registers)


def some_blocks(some):
    """Any blocks, and such that just fit, or just do not, into an SM's shared memory, or registers.

    Returns a strategy of (threads, registers, shared bytes).
    """
    fitting = some.integers(1, 32).map(lambda blocks: 228 * 1024 // blocks // 128 * 128 - 1024)
    near = some.tuples(fitting, some.integers(-130, 130)).map(sum)
    shared = near.filter(lambda bytes: 0 <= bytes <= 227 * 1024)
    return some.one_of(
        some.tuples(some.integers(1, 64), some.just(16), shared),
        some.tuples(some.integers(1, 1024), some.integers(16, 255), some.integers(0, 60_000)),
        some.tuples(some.integers(1, 1024), some.integers(16, 64), some.just(0)),
    )


OCCUPANCY = Exercise(
    id="memory.occupancy",
    title="Occupancy by hand",
    minutes=10,
    kind="function",
    task=(
        "How many blocks does an SM of compute capability 9.0 hold at once? It has places for 64"
        " warps and 32 blocks, 228 KiB of shared memory, of which each block takes its `shared`"
        " bytes and 1 KiB more, rounded up to 128 bytes, and four quarters of 16,384 registers. A"
        " warp takes `32 * registers`, rounded up to a multiple of 256, from one quarter."
    ),
    starter="""
def blocks_per_sm(threads, registers, shared):
    # the smallest of four limits: warps, blocks, shared memory, registers
    ...
""",
    solution=blocks_per_sm,
    inputs=arguments_of(blocks_per_sm),
    reference=lambda threads, registers, shared: (
        occupancy((9, 0), threads, registers, shared).blocks
    ),
    shapes=(
        (256, 32, 0),
        (32, 16, 0),
        (64, 16, 0),
        (33, 20, 0),
        (100, 32, 0),
        (256, 33, 0),
        (128, 41, 0),
        (1024, 32, 0),
        (256, 32, 33 * 1024),
        (128, 16, 20_000),
        (256, 32, 28 * 1024),
        (512, 40, 100_000),
        (160, 33, 8192),
        (160, 16, 0),
        (416, 16, 0),
        (32, 16, 28_160),
        (32, 16, 28_161),
        (32, 16, 45_696),
        (32, 64, 0),
        (32, 128, 0),
        (32, 255, 0),
        (20, 32, 0),
        (96, 33, 0),
        (96, 40, 100),
    ),
    fresh=some_numbers((1, 513), (16, 64), (0, 60_000)),
    draws=some_blocks,
    hints=(
        (
            "Work out four numbers of blocks, one for each resource as if it were the only one, and"
            " return the smallest."
        ),
        (
            "Warps of a block: `(threads + 31) // 32`. The SM has 64 places, so `64 // warps`"
            " blocks. The limit of 32 blocks stands as it is. Shared memory: `228 * 1024 // (shared"
            " + 1024, rounded up to 128)`."
        ),
        (
            "Registers: `a_warp = (registers * 32 + 255) // 256 * 256`, a quarter holds `16384 //"
            " a_warp` warps, so the SM four times as many, and `// warps` makes blocks of them."
        ),
    ),
    wrong=(
        (
            "by_warps, 32, by_shared, by_registers",
            "2048 // threads, 32",
            "wrong_value",
            "Registers and shared memory set limits too.",
        ),
        (
            "(threads + 31) // 32",
            "max(1, threads // 32)",
            "wrong_value",
            "A begun warp is a whole one: round up.",
        ),
        (
            "by_warps, 32",
            "by_warps",
            "wrong_value",
            "However small they are, an SM holds 32 blocks at most.",
        ),
        (
            "shared + 1024",
            "max(shared, 1024)",
            "wrong_value",
            "CUDA keeps 1 KiB of shared memory for each block.",
        ),
        (
            "4 * (16384 // a_warp) // warps",
            "65536 // (registers * 32 * warps)",
            "wrong_value",
            "Registers go to whole warps: round a warp's up to 256, and count how many warps a"
            " quarter of the SM holds.",
        ),
        (
            "4 * (16384 // a_warp) // warps",
            "65536 // a_warp // warps",
            "wrong_value",
            "A warp takes its registers from one quarter: count how many warps a quarter holds, and"
            " take that four times.",
        ),
        (
            "return min(",
            "return max(",
            "wrong_value",
            "The scarcest resource decides: take the smallest of the four numbers.",
        ),
    ),
)


# ---- roofline


def attainable(flops, bytes_moved, gflop_per_s, gb_per_s):
    memory_roof = flops * gb_per_s // bytes_moved
    return min(gflop_per_s, memory_roof)


def some_kernels(some):
    """Any small numbers, and numbers as real kernels have them, more than a float32 can tell apart.

    The latter do a whole number of FLOPs a byte, or move one for each FLOP. Returns a strategy.
    """
    roofs = some.integers(5_000, 80_000), some.integers(200, 8_000)
    many = some.integers(1 << 24, 1 << 40)
    times = some.integers(1, 5)
    return some.one_of(
        some.tuples(some.integers(1, 999), some.integers(1, 999), *roofs),
        some.builds(lambda many, times, *roofs: (many * times, many, *roofs), many, times, *roofs),
        some.builds(lambda many, times, *roofs: (many, many * times, *roofs), many, times, *roofs),
    )


ROOFLINE = Exercise(
    id="memory.roofline",
    title="Under which roof?",
    minutes=4,
    kind="function",
    task=(
        "A kernel does `flops` operations and moves `bytes_moved` bytes, on a GPU with"
        " `gflop_per_s` GFLOP/s of arithmetic and `gb_per_s` GB/s of memory. Return the most"
        " GFLOP/s that it can reach, rounded down to a whole number."
    ),
    starter="""
def attainable(flops, bytes_moved, gflop_per_s, gb_per_s): ...  # the lower of two roofs
""",
    solution=attainable,
    inputs=arguments_of(attainable),
    reference=attainable,
    shapes=(
        (1, 12, 60_000, 4_000),
        (2, 8, 60_000, 4_000),
        (1000, 8, 60_000, 4_000),
        (15, 1, 60_000, 4_000),
        (200, 7, 30_000, 900),
        (333, 10, 30_000, 900),  # a float's quotient falls short here, and in the next
        (201, 100, 60_000, 1_000),
        (10, 333, 20_000, 1_008),
        (41_067_633, 41_067_633, 60_000, 4_000),
    ),
    fresh=some_numbers((1, 1000), (1, 1000), (5_000, 80_000), (200, 8_000)),
    draws=some_kernels,
    hints=(
        (
            "Arithmetic intensity is FLOPs per byte: `flops / bytes_moved`. Memory that brings"
            " `gb_per_s` bytes per nanosecond feeds intensity times that many FLOPs."
        ),
        (
            "One roof is `flops * gb_per_s // bytes_moved`, the other `gflop_per_s`. Which of the"
            " two counts?"
        ),
    ),
    wrong=(
        (
            "min(gflop_per_s, memory_roof)",
            "gflop_per_s",
            "wrong_value",
            "Memory sets a roof too.",
        ),
        (
            "min",
            "max",
            "wrong_value",
            "It is the lower of the two roofs that counts.",
        ),
        (
            "min(gflop_per_s, memory_roof)",
            "memory_roof",
            "wrong_value",
            "No kernel is faster than the arithmetic.",
        ),
        (
            "flops * gb_per_s // bytes_moved",
            "bytes_moved * gb_per_s // flops",
            "wrong_value",
            "Intensity is FLOPs per byte, not bytes per FLOP.",
        ),
        (
            "flops * gb_per_s // bytes_moved",
            "flops / bytes_moved * gb_per_s",
            "wrong_dtype",
        ),
        (
            "flops * gb_per_s // bytes_moved",
            "int(flops / bytes_moved * gb_per_s)",
            "wrong_value",
            "The quotient is a float, and rounding left it just below a whole number: multiply"
            " first, then divide by `//`.",
        ),
    ),
)

EXERCISES = (SCALE_FOUR, SPLIT, ROTATE_TILE, COPY4, OCCUPANCY, ROOFLINE)

QUIZZES = (
    Quiz(
        id="memory.q_sectors",
        question=(
            "Lane i of a warp reads `a[2 * i]`, float32, `a` aligned. How many sectors of 32 bytes"
            " are moved?"
        ),
        answer=8,
        unit="sectors",
        explain_right="32 lanes reach over 64 floats, 256 bytes: 8 sectors, of which half is used.",
        explain={
            4: "That is what `a[i]` needs: 32 floats in a row.",
            32: "Neighbouring lanes are 8 bytes apart, so four of them share a sector.",
            None: "From the first to the last byte that a lane asks for, in pieces of 32.",
        },
    ),
    Quiz(
        id="memory.q_banks",
        question=(
            "A tile is `shared.array((32, 32), float32)`. Lane i reads `tile[i, 5]`. How many"
            " passes does that take?"
        ),
        answer=32,
        unit="passes",
        explain_right=(
            "Rows are 32 words apart, so all 32 elements lie in bank 5: a 32-way conflict. With 33"
            " columns it is one pass."
        ),
        explain={
            1: "That is so for `tile[5, i]`, or with 33 columns.",
            None: "In which bank, word number modulo 32, does `tile[i, 5]` lie?",
        },
    ),
    one_of(
        "memory.q_transfer",
        (
            "You need each of 4 GB of host data once in a kernel, and only then. What moves the"
            " least over the bus?"
        ),
        (
            "cudaMemcpy from pageable memory",
            "It moves 4 GB, and the driver copies them once more on the host.",
        ),
        (
            "cudaMemcpy from pinned memory",
            "It moves 4 GB too, only faster: no copy on the host comes before.",
        ),
        (
            "All of them move the same 4 GB",
            (
                "The bytes are the same. Pinned memory saves a copy on the host and can "
                "overlap with"
                " kernels; zero-copy lets the kernel fetch them itself."
            ),
        ),
        answer="c",
    ),
    one_of(
        "memory.q_occupancy",
        "A kernel runs at 50 % occupancy and 98 % of the copy bandwidth. What do you do?",
        (
            "Cut its registers until occupancy is 100 %",
            "That may spill registers to memory, and the memory is already full.",
        ),
        (
            "Nothing: enough loads are under way",
            "Occupancy is a means. What counts is the bytes in flight, and those suffice.",
        ),
        (
            "Make the blocks larger",
            "Larger blocks do not bring more bytes, and the bandwidth is all but used.",
        ),
        answer="b",
    ),
)
