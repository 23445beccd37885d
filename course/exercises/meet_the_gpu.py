"""The exercises of chapter 04, Meet the GPU."""

import numpy as np
from numba import cuda

from course.checking.model import Exercise, Hypothesis, Out, Wrong, ceil_div
from course.checking.quiz import Quiz

# ---- 04.warp_and_lane: which warp, which lane


def warp_and_lane(x, y, block_x):
    rank = y * block_x + x
    return rank // 32, rank % 32


def warp_ignores_rows(x, y, block_x):
    return x // 32, x % 32


def warp_lane_swapped(x, y, block_x):
    rank = y * block_x + x
    return rank % 32, rank // 32


def warp_rows_are_warps(x, y, block_x):
    return y, x


def warp_column_major(x, y, block_x):
    rank = x * block_x + y
    return rank // 32, rank % 32


def warp_as_float(x, y, block_x):
    rank = y * block_x + x
    return rank / 32, rank % 32


def warp_of_16(x, y, block_x):
    rank = y * block_x + x
    return rank // 16, rank % 16


WARP_AND_LANE = Exercise(
    id="meet_the_gpu.warp_and_lane",
    title="Which warp, which lane?",
    minutes=5,
    kind="function",
    task=(
        "A block has rows of `block_x` threads. Return `(warp, lane)` of the thread at column `x` of row `y`."
        " Warps have 32 lanes, and threads are counted along x first, then row by row."
    ),
    starter="""
def warp_and_lane(x, y, block_x): ...  # return (warp, lane)
""",
    solution=warp_and_lane,
    inputs=lambda rng, shape: dict(zip(("x", "y", "block_x"), shape, strict=True)),
    reference=lambda x, y, block_x: ((y * block_x + x) // 32, (y * block_x + x) % 32),
    shapes=(
        (0, 0, 32),
        (31, 0, 256),
        (5, 3, 16),
        (32, 0, 64),
        (7, 9, 8),
        (2, 20, 33),
        (15, 15, 16),
        (0, 1, 48),
    ),
    hints=(
        "First give the thread one number, its rank in the block: how many threads come before it?",
        "Before row `y` there are `y` whole rows of `block_x` threads, and in its own row `x` more.",
        "`rank = y * block_x + x`; the warp is `rank // 32`. And the lane?",
    ),
    wrong=(
        Wrong(warp_ignores_rows, "wrong_value"),
        Wrong(warp_lane_swapped, "swapped_axes"),
        Wrong(warp_rows_are_warps, "wrong_value"),
        Wrong(warp_column_major, "swapped_axes"),
        Wrong(warp_as_float, "wrong_dtype"),
        Wrong(warp_of_16, "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "swapped_axes", "Warp and lane are exchanged: the warp comes first.", warp_lane_swapped
        ),
        Hypothesis(
            "swapped_axes",
            "Threads are counted along x first: a row has `block_x` of them.",
            warp_column_major,
        ),
        Hypothesis("wrong_value", "The rows before this one are not counted.", warp_ignores_rows),
        Hypothesis(
            "wrong_value",
            "A row is not a warp: rows may be shorter or longer than 32 threads.",
            warp_rows_are_warps,
        ),
        Hypothesis("wrong_value", "A warp has 32 lanes.", warp_of_16),
    ),
)


# ---- 04.divergence: what a branch costs


def issued(threads, split, then_cost, else_cost):
    total = 0
    for first in range(0, threads, 32):
        end = min(first + 32, threads)
        if first < split:
            total += then_cost
        if end > split:
            total += else_cost
    return total


def issued_by_every_warp(threads, split, then_cost, else_cost):
    return ceil_div(threads, 32) * (then_cost + else_cost)


def issued_by_threads(threads, split, then_cost, else_cost):
    return min(split, threads) * then_cost + max(threads - split, 0) * else_cost


def issued_without_divergence(threads, split, then_cost, else_cost):
    total = 0
    for first in range(0, threads, 32):
        total += then_cost if first < split else else_cost
    return total


def issued_whole_warps_only(threads, split, then_cost, else_cost):
    return issued(threads // 32 * 32, split, then_cost, else_cost)


def issued_full_last_warp(threads, split, then_cost, else_cost):
    return issued(ceil_div(threads, 32) * 32, split, then_cost, else_cost)


def issued_boundary(threads, split, then_cost, else_cost):
    total = 0
    for first in range(0, threads, 32):
        end = min(first + 32, threads)
        if first <= split:
            total += then_cost
        if end > split:
            total += else_cost
    return total


def dearer_side(threads, split, then_cost, else_cost):
    total = 0
    for first in range(0, threads, 32):
        end = min(first + 32, threads)
        total += max(then_cost if first < split else 0, else_cost if end > split else 0)
    return total


DIVERGENCE = Exercise(
    id="meet_the_gpu.divergence",
    title="What does a branch cost?",
    minutes=10,
    kind="function",
    task=(
        "In a block of `threads` threads those with `i < split` run `then_cost` instructions and the others"
        " `else_cost`. Return how many instructions the block's warps issue together. A warp issues a side"
        " if at least"
        " one of its lanes takes it; the last warp may have fewer than 32 threads."
    ),
    starter="""
def issued(
    threads, split, then_cost, else_cost
): ...  # go through the warps: which sides do the lanes of each take?
""",
    solution=issued,
    inputs=lambda rng, shape: dict(
        zip(("threads", "split", "then_cost", "else_cost"), shape, strict=True)
    ),
    reference=issued,
    shapes=(
        (32, 16, 10, 20),
        (64, 32, 10, 20),
        (64, 33, 7, 5),
        (256, 0, 3, 4),
        (256, 256, 3, 4),
        (70, 64, 6, 9),
        (80, 75, 2, 5),
        (40, 40, 11, 3),
        (70, 70, 4, 9),
        (96, 40, 1, 8),
        (128, 96, 13, 2),
    ),
    hints=(
        "Warps start at the threads 0, 32, 64 …: `for first in range(0, threads, 32)`. The last thread of one"
        " is `min(first + 32, threads) - 1`.",
        "If a warp's first thread has `i < split`, the warp issues the `then` side. If its last thread does"
        " not, it issues the `else` side. Both may be true.",
        "With `end = min(first + 32, threads)`: add `then_cost` if `first < split`, and `else_cost` if `end"
        " > split`.",
    ),
    wrong=(
        Wrong(issued_by_every_warp, "wrong_value"),
        Wrong(issued_by_threads, "wrong_value"),
        Wrong(issued_without_divergence, "wrong_value"),
        Wrong(issued_whole_warps_only, "only_multiples"),
        Wrong(issued_full_last_warp, "only_multiples"),
        Wrong(issued_boundary, "off_by_one"),
        Wrong(dearer_side, "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Every warp is counted with both sides. A warp whose lanes all agree issues only one.",
            issued_by_every_warp,
        ),
        Hypothesis(
            "wrong_value",
            "This counts threads. A warp issues an instruction once for all its lanes.",
            issued_by_threads,
        ),
        Hypothesis(
            "wrong_value",
            "A warp whose lanes disagree issues both sides, one after the other.",
            issued_without_divergence,
        ),
        Hypothesis(
            "wrong_value", "The sides run one after the other, so their costs add up.", dearer_side
        ),
        Hypothesis(
            "only_multiples",
            "The last warp, which is not full, is left out.",
            issued_whole_warps_only,
        ),
        Hypothesis(
            "only_multiples",
            "The last warp may end before lane 31: threads that do not exist take no side.",
            issued_full_last_warp,
        ),
        Hypothesis(
            "off_by_one", "Thread `split` itself does not take the `then` side.", issued_boundary
        ),
    ),
)


# ---- 04.littles_law: how many warps keep the memory busy


def warps_per_sm(gb_per_s, latency_ns, bytes_per_thread, sms):
    in_flight = gb_per_s * latency_ns
    return ceil_div(in_flight, 32 * bytes_per_thread * sms)


def warps_rounded_down(gb_per_s, latency_ns, bytes_per_thread, sms):
    return gb_per_s * latency_ns // (32 * bytes_per_thread * sms)


def threads_not_warps(gb_per_s, latency_ns, bytes_per_thread, sms):
    return ceil_div(gb_per_s * latency_ns, bytes_per_thread * sms)


def warps_of_the_chip(gb_per_s, latency_ns, bytes_per_thread, sms):
    return ceil_div(gb_per_s * latency_ns, 32 * bytes_per_thread)


def warps_without_latency(gb_per_s, latency_ns, bytes_per_thread, sms):
    return ceil_div(gb_per_s, 32 * bytes_per_thread * sms)


def warps_as_float(gb_per_s, latency_ns, bytes_per_thread, sms):
    return gb_per_s * latency_ns / (32 * bytes_per_thread * sms)


def warps_bytes_multiplied(gb_per_s, latency_ns, bytes_per_thread, sms):
    return ceil_div(gb_per_s * latency_ns * bytes_per_thread, 32 * sms)


LITTLES_LAW = Exercise(
    id="meet_the_gpu.littles_law",
    title="How many warps keep the memory busy?",
    minutes=10,
    kind="function",
    task=(
        "The memory delivers `gb_per_s` GB/s, and a load takes `latency_ns` nanoseconds. Each thread has"
        " `bytes_per_thread` bytes on their way at any time. Return how many warps each of the `sms` SMs"
        " needs so that"
        " the memory is never idle: a whole number, rounded up. (1 GB/s is 1 byte a nanosecond.)"
    ),
    starter="""
def warps_per_sm(
    gb_per_s, latency_ns, bytes_per_thread, sms
): ...  # bytes in flight -> threads -> warps -> warps of one SM
""",
    solution=warps_per_sm,
    inputs=lambda rng, shape: dict(
        zip(("gb_per_s", "latency_ns", "bytes_per_thread", "sms"), shape, strict=True)
    ),
    reference=warps_per_sm,
    shapes=(
        (320, 400, 4, 40),
        (1555, 500, 4, 108),
        (3352, 600, 4, 132),
        (3352, 600, 16, 132),
        (1024, 512, 4, 128),
        (22000, 700, 16, 224),
        (128, 100, 4, 10),
        (360, 450, 8, 28),
    ),
    hints=(
        "Little's law: what is under way = rate × waiting time. The rate is in bytes a nanosecond.",
        "`gb_per_s * latency_ns` bytes must be under way. How many bytes has one warp of 32 threads under"
        " way?",
        "Divide by `32 * bytes_per_thread * sms` and round up: `-(-a // b)` is a / b rounded up.",
    ),
    wrong=(
        Wrong(warps_rounded_down, "off_by_one"),
        Wrong(threads_not_warps, "wrong_value"),
        Wrong(warps_of_the_chip, "wrong_value"),
        Wrong(warps_without_latency, "wrong_value"),
        Wrong(warps_as_float, "wrong_dtype"),
        Wrong(warps_bytes_multiplied, "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "off_by_one", "Rounded down, the memory idles a little: round up.", warps_rounded_down
        ),
        Hypothesis("wrong_value", "This counts threads; a warp has 32 of them.", threads_not_warps),
        Hypothesis(
            "wrong_value", "This is for the whole chip; share it among the SMs.", warps_of_the_chip
        ),
        Hypothesis(
            "wrong_value",
            "The waiting time is missing: in flight = rate × latency.",
            warps_without_latency,
        ),
        Hypothesis(
            "wrong_value",
            "The more bytes a thread has under way, the fewer threads are needed: divide by them.",
            warps_bytes_multiplied,
        ),
    ),
)


# ---- 04.matmul_cost: arithmetic intensity


def matmul_cost(m, k, n, itemsize):
    return 2 * m * k * n, itemsize * (m * k + k * n + m * n)


def matmul_half_the_flops(m, k, n, itemsize):
    return m * k * n, itemsize * (m * k + k * n + m * n)


def matmul_without_result(m, k, n, itemsize):
    return 2 * m * k * n, itemsize * (m * k + k * n)


def matmul_elements(m, k, n, itemsize):
    return 2 * m * k * n, m * k + k * n + m * n


def matmul_every_read(m, k, n, itemsize):
    return 2 * m * k * n, itemsize * (2 * m * k * n + m * n)


def matmul_swapped(m, k, n, itemsize):
    return itemsize * (m * k + k * n + m * n), 2 * m * k * n


def matmul_square(m, k, n, itemsize):
    return 2 * m**3, itemsize * 3 * m**2


MATMUL_COST = Exercise(
    id="meet_the_gpu.matmul_cost",
    title="FLOPs and bytes of a matmul",
    minutes=8,
    kind="function",
    task=(
        "C = A @ B with A of `m` by `k` and B of `k` by `n` numbers of `itemsize` bytes. Return `(flops,"
        " bytes)`:"
        " a multiplication and an addition for each of the `m * n * k` products, and the bytes if A and B"
        " are read"
        " once and C is written once. That is the least that any kernel must move."
    ),
    starter="""
def matmul_cost(m, k, n, itemsize): ...  # return (flops, bytes)
""",
    solution=matmul_cost,
    inputs=lambda rng, shape: dict(zip(("m", "k", "n", "itemsize"), shape, strict=True)),
    reference=matmul_cost,
    shapes=(
        (1, 1, 1, 4),
        (4, 4, 4, 2),
        (64, 32, 16, 4),
        (1, 4096, 4096, 2),
        (128, 128, 128, 4),
        (7, 5, 3, 8),
    ),
    hints=(
        "One element of C is a sum of `k` products: `k` multiplications and, counted the usual way, `k`"
        " additions.",
        "There are `m * n` elements in C. The bytes are those of three matrices.",
        "`2 * m * k * n` FLOPs; `itemsize * (m * k + k * n + m * n)` bytes.",
    ),
    wrong=(
        Wrong(matmul_half_the_flops, "wrong_value"),
        Wrong(matmul_without_result, "wrong_value"),
        Wrong(matmul_elements, "wrong_value"),
        Wrong(matmul_every_read, "wrong_value"),
        Wrong(matmul_swapped, "swapped_axes"),
        Wrong(matmul_square, "only_square"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Each product is a multiplication and an addition: two FLOPs.",
            matmul_half_the_flops,
        ),
        Hypothesis("wrong_value", "C must be written, too.", matmul_without_result),
        Hypothesis(
            "wrong_value", "These are numbers, not bytes: `itemsize` bytes each.", matmul_elements
        ),
        Hypothesis(
            "wrong_value",
            "This is what a kernel without any reuse reads. The least is to read A and B once.",
            matmul_every_read,
        ),
        Hypothesis("swapped_axes", "FLOPs first, then bytes.", matmul_swapped),
        Hypothesis("only_square", "The matrices need not be square.", matmul_square),
    ),
)


# ---- 04.amdahl: speed-up of a program, one thread a number of processors


@cuda.jit
def faster(speedup, processors, parallel):
    i = cuda.grid(1)
    if i < speedup.size:
        speedup[i] = 1 / ((1 - parallel) + parallel / processors[i])


@cuda.jit
def faster_without_guard(speedup, processors, parallel):
    i = cuda.grid(1)
    speedup[i] = 1 / ((1 - parallel) + parallel / processors[i])


@cuda.jit
def faster_time(speedup, processors, parallel):
    i = cuda.grid(1)
    if i < speedup.size:
        speedup[i] = (1 - parallel) + parallel / processors[i]


@cuda.jit
def faster_gustafson(speedup, processors, parallel):
    i = cuda.grid(1)
    if i < speedup.size:
        speedup[i] = (1 - parallel) + parallel * processors[i]


@cuda.jit
def faster_serial_share(speedup, processors, parallel):
    i = cuda.grid(1)
    if i < speedup.size:
        speedup[i] = 1 / (parallel + (1 - parallel) / processors[i])


@cuda.jit
def faster_all_parallel(speedup, processors, parallel):
    i = cuda.grid(1)
    if i < speedup.size:
        speedup[i] = parallel * processors[i]


@cuda.jit
def faster_one_too_few(speedup, processors, parallel):
    i = cuda.grid(1)
    if i < speedup.size - 1:
        speedup[i] = 1 / ((1 - parallel) + parallel / processors[i])


@cuda.jit
def faster_first_warp(speedup, processors, parallel):
    i = cuda.laneid
    if i < speedup.size:
        speedup[i] = 1 / ((1 - parallel) + parallel / processors[i])


def law(speedup, processors, parallel):
    """Amdahl's law in float64."""
    p = float(parallel)
    return 1 / ((1 - p) + p / processors.astype(np.float64))


AMDAHL = Exercise(
    id="meet_the_gpu.amdahl",
    title="Amdahl's law, one thread a machine",
    minutes=10,
    task=(
        "Thread i asks: how many times faster is the whole program on `processors[i]` processors, if the"
        " share"
        " `parallel` of its time can be spread over all of them and the rest cannot? Write the answer, by"
        " Amdahl's"
        " law, into `speedup[i]`."
    ),
    starter="""
@cuda.jit
def faster(speedup, processors, parallel):
    i = cuda.grid(1)
    if i < speedup.size:
        ...  # speedup[i] = old time / new time
""",
    solution=faster,
    inputs=lambda rng, n: {
        "speedup": Out(n),
        "processors": rng.integers(1, 4096, n).astype(np.float32),
        "parallel": np.float32(rng.uniform(0.5, 0.95)),
    },
    reference=law,
    shapes=((1,), (31,), (32,), (33,), (100,)),
    extents=lambda n: (n[0], 1, 1),
    hints=(
        "Let the program take 1 second on one processor. How long does the part take that cannot be spread?"
        " And the"
        " other part, on `processors[i]` processors?",
        "New time: `(1 - parallel) + parallel / processors[i]`.",
        "A speed-up is the old time divided by the new time, and the old time is 1.",
    ),
    wrong=(
        Wrong(faster_without_guard, "missing_guard"),
        Wrong(faster_time, "wrong_value"),
        Wrong(faster_gustafson, "wrong_value"),
        Wrong(faster_serial_share, "wrong_value"),
        Wrong(faster_all_parallel, "wrong_value"),
        Wrong(faster_one_too_few, "off_by_one"),
        Wrong(faster_first_warp, "first_block_only"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "This is the new time. The speed-up is 1 divided by it.",
            lambda **a: 1 / law(**a),
        ),
        Hypothesis(
            "wrong_value",
            "This is Gustafson's law, where the problem grows with the machine. Here the problem stays the"
            " same.",
            lambda speedup, processors, parallel: (1 - parallel) + parallel * processors,
        ),
        Hypothesis(
            "wrong_value",
            "`parallel` is the share that is spread over the processors, not the one that stays.",
            lambda speedup, processors, parallel: 1 / (parallel + (1 - parallel) / processors),
        ),
        Hypothesis(
            "wrong_value",
            "The share that cannot be spread takes as long as before; it must be in the new time.",
            lambda speedup, processors, parallel: parallel * processors,
        ),
    ),
)

EXERCISES = (WARP_AND_LANE, DIVERGENCE, LITTLES_LAW, MATMUL_COST, AMDAHL)

QUIZZES = (
    Quiz(
        id="meet_the_gpu.q_hide",
        question="An SM runs 8 warps. Each issues one instruction, then waits 15 cycles for its data. The"
        " scheduler"
        " can issue one instruction a cycle. In what share of the cycles does it issue?",
        choices={"a": "1 in 16", "b": "8 in 16, that is half", "c": "All of them"},
        answer="b",
        explain_right="Each warp issues once in 16 cycles, so 8 warps fill 8 of 16. Sixteen warps would fill"
        " them all.",
        explain={
            "a": "That is one warp alone. The other seven issue while it waits.",
            "c": "For that the eight warps would have to cover 16 cycles with 8 instructions.",
        },
    ),
    Quiz(
        id="meet_the_gpu.q_warp",
        question="A block of 100 threads runs `if threadIdx.x < 64`. How many of its warps diverge?",
        answer=0,
        unit="warps",
        explain_right="64 is a multiple of 32, so every warp agrees: warps 0 and 1 take the branch, 2 and 3"
        " do not.",
        explain={
            4: "There are 4 warps, but lanes diverge only when they disagree within their own warp.",
            1: "Warp 3 is only partly filled (4 threads), but those agree.",
            2: "Warps 0 and 1 take the branch as a whole, and warps 2 and 3 skip it as a whole.",
            None: "Count the threads 0 to 31, 32 to 63, 64 to 95, 96 to 99: does any group disagree?",
        },
    ),
    Quiz(
        id="meet_the_gpu.q_bottleneck",
        question="A kernel adds two long vectors on a GPU with 1,000 GB/s and 20 TFLOP/s. What would make it"
        " faster?",
        choices={
            "a": "A GPU with twice the TFLOP/s",
            "b": "A GPU with twice the memory bandwidth",
            "c": "Tensor cores",
        },
        answer="b",
        explain_right="12 bytes for one FLOP: 1,000 GB/s feed 83 GFLOP/s, far below what it could compute.",
        explain={
            "a": "It uses under a hundredth of the arithmetic it has; the data does not come fast enough.",
            "c": "They multiply matrices. This is one addition for 12 bytes moved.",
        },
    ),
    Quiz(
        id="meet_the_gpu.q_amdahl",
        question="80 % of a program's time is a kernel. You make it infinitely fast. How many times faster"
        " is the program?",
        answer=5,
        unit="times",
        explain_right="20 % of the time is left: 1 / 0.2 = 5.",
        explain={
            80: "The other 20 % of the time stays as it was.",
            4: "What is left is 0.2 of the old time, and 1 / 0.2 is 5.",
            None: "How much of the old time is left? The speed-up is 1 divided by that share.",
        },
    ),
)
