"""The exercises of the chapter Meet the GPU."""

import numpy as np
from numba import cuda

from course.checking.inputs import a_thread_each, arguments_of, lengths, some_numbers
from course.checking.model import Exercise, Hypothesis, Out, Wrong
from course.checking.quiz import Quiz, one_of

# ---- warp_and_lane: which warp, which lane


def warp_and_lane(x, y, block_x):
    rank = y * block_x + x
    return rank // 32, rank % 32


WARP_AND_LANE = Exercise(
    id="meet_the_gpu.warp_and_lane",
    title="Which warp, which lane?",
    minutes=4,
    kind="function",
    task=(
        "A block has rows of `block_x` threads. Return `(warp, lane)` of the thread at column `x`"
        " of row `y`. Warps have 32 lanes, and threads are counted along x first, then row by row."
    ),
    starter="""
def warp_and_lane(x, y, block_x): ...  # return (warp, lane)
""",
    solution=warp_and_lane,
    inputs=arguments_of(warp_and_lane),
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
    draws=lambda some: some.integers(1, 1024).flatmap(
        lambda block_x: some.tuples(
            some.integers(0, block_x - 1),
            some.integers(0, 1024 // block_x - 1),  # no block has more threads
            some.just(block_x),
        )
    ),
    hints=(
        "First give the thread one number, its rank in the block: how many threads come before it?",
        (
            "Before row `y` there are `y` whole rows of `block_x` threads, and in its own row `x`"
            " more."
        ),
        "`rank = y * block_x + x`; the warp is `rank // 32`. And the lane?",
    ),
    wrong=(
        (
            "y * block_x + x",
            "x",
            "wrong_value",
            "The rows before this one are not counted.",
        ),
        (
            "y * block_x + x",
            "y * (-(-block_x // 32) * 32) + x",
            "wrong_value",
            "A row does not begin a new warp: a warp goes on from one row into the next.",
        ),
        (
            "rank // 32, rank % 32",
            "rank % 32, rank // 32",
            "swapped_axes",
            "Warp and lane are exchanged: the warp comes first.",
        ),
        (
            "rank // 32, rank % 32",
            "y, x",
            "wrong_value",
            "A row is not a warp: rows may be shorter or longer than 32 threads.",
        ),
        (
            "y * block_x + x",
            "x * block_x + y",
            "swapped_axes",
            "Threads are counted along x first: a row has `block_x` of them.",
        ),
        ("//", "/", "wrong_dtype"),
        (
            "// 32, rank % 32",
            "// 16, rank % 16",
            "wrong_value",
            "A warp has 32 lanes.",
        ),
    ),
)


# ---- divergence: what a branch costs


def issued(threads, split, then_cost, else_cost):
    total = 0
    for first in range(0, threads, 32):
        end = min(first + 32, threads)
        if first < split:
            total += then_cost
        if end > split:
            total += else_cost
    return total


def dearer_side(threads, split, then_cost, else_cost):
    total = 0
    for first in range(0, threads, 32):
        end = min(first + 32, threads)
        total += max(then_cost * (first < split), else_cost * (end > split))
    return total


def sides_apart(threads, split, then_cost, else_cost):
    split = min(split, threads)
    return -(-split // 32) * then_cost + -(-(threads - split) // 32) * else_cost


DIVERGENCE = Exercise(
    id="meet_the_gpu.divergence",
    title="What does a branch cost?",
    minutes=8,
    kind="function",
    task=(
        "In a block of `threads` threads those with `i < split` run `then_cost` instructions and"
        " the others `else_cost`. Return how many instructions the block's warps issue in all. A"
        " warp issues a side if at least one of its lanes takes it; the last warp may have fewer"
        " than 32 threads."
    ),
    starter="""
def issued(threads, split, then_cost, else_cost):
    # go through the warps: which sides do the lanes of each take?
    ...
""",
    solution=issued,
    inputs=arguments_of(issued),
    reference=issued,
    shapes=(
        (32, 16, 10, 20),
        (64, 32, 10, 20),
        (64, 33, 7, 5),
        (64, 31, 7, 5),
        (256, 0, 3, 4),
        (256, 256, 3, 4),
        (70, 64, 6, 9),
        (80, 75, 2, 5),
        (40, 40, 11, 3),
        (70, 70, 4, 9),
        (96, 40, 1, 8),
        (128, 96, 13, 2),
        (40, 64, 5, 3),
        (40, 20, 6, 9),
        (80, 20, 7, 4),
    ),
    draws=lambda some: some.integers(1, 200).flatmap(
        lambda threads: some.tuples(
            some.just(threads),
            some.integers(0, threads),
            some.integers(1, 99),
            some.integers(1, 99),
        )
    ),
    hints=(
        (
            "Warps start at the threads 0, 32, 64 …: `for first in range(0, threads, 32)`. The last"
            " thread of one is `min(first + 32, threads) - 1`."
        ),
        (
            "If a warp's first thread has `i < split`, the warp issues the `then` side. If its last"
            " thread does not, it issues the `else` side. Both may be true."
        ),
        (
            "With `end = min(first + 32, threads)`: add `then_cost` if `first < split`, and"
            " `else_cost` if `end > split`."
        ),
    ),
    wrong=(
        (
            "return total",
            "return (threads + 31) // 32 * (then_cost + else_cost)",
            "wrong_value",
            "Every warp is counted with both sides. A warp whose lanes all agree issues only one.",
        ),
        (
            "return total",
            "return min(split, threads) * then_cost + max(threads - split, 0) * else_cost",
            "wrong_value",
            "This counts threads. A warp issues an instruction once for all its lanes.",
        ),
        (
            "if end > split",
            "else",
            "wrong_value",
            "A warp whose lanes disagree issues both sides, one after the other.",
        ),
        (
            "range(0, threads",
            "range(0, threads // 32 * 32",
            "only_multiples",
            "The last warp, which is not full, is left out.",
        ),
        (
            "min(first + 32, threads)",
            "first + 32",
            "only_multiples",
            "The last warp may end before lane 31: threads that do not exist take no side.",
        ),
        (
            "first < split",
            "first <= split",
            "off_by_one",
            "Thread `split` itself does not take the `then` side.",
        ),
        (
            "end > split",
            "end >= split",
            "off_by_one",
            "The last thread of a warp is `end - 1`: with `end == split` none is on the `else`"
            " side.",
        ),
        Wrong(
            sides_apart,
            "wrong_value",
            "The `else` side does not begin a new warp: it begins inside the warp of thread"
            " `split`.",
        ),
        Wrong(
            dearer_side, "wrong_value", "The sides run one after the other, so their costs add up."
        ),
    ),
)


# ---- littles_law: how many warps keep the memory busy


def warps_per_sm(gb_per_s, latency_ns, bytes_per_thread, sms):
    in_flight = gb_per_s * latency_ns
    return -(-in_flight // (32 * bytes_per_thread * sms))  # rounded up


def in_seconds(gb_per_s, latency_ns, bytes_per_thread, sms):
    in_flight = gb_per_s * 1e9 * latency_ns * 1e-9
    return int(np.ceil(in_flight / bytes_per_thread / 32 / sms))


LITTLES_LAW = Exercise(
    id="meet_the_gpu.littles_law",
    title="How many warps keep the memory busy?",
    minutes=8,
    kind="function",
    task=(
        "The memory delivers `gb_per_s` GB/s, and a load takes `latency_ns` nanoseconds. Each"
        " thread has `bytes_per_thread` bytes on their way at any time. Return how many warps each"
        " of the `sms` SMs needs so that the memory is never idle: a whole number, rounded up. (1"
        " GB/s is 1 byte per nanosecond.)"
    ),
    starter="""
def warps_per_sm(gb_per_s, latency_ns, bytes_per_thread, sms):
    # bytes in flight -> threads -> warps -> warps of one SM
    ...
""",
    solution=warps_per_sm,
    inputs=arguments_of(warps_per_sm),
    reference=warps_per_sm,
    shapes=(
        (320, 400, 4, 40),
        (1280, 400, 4, 80),
        (43, 3, 4, 1),
        (41, 25, 16, 2),
        (1555, 500, 4, 108),
        (3352, 600, 4, 132),
        (3352, 600, 16, 132),
        (1024, 512, 4, 128),
        (22000, 700, 16, 224),
        (20, 4, 4, 2),
        (128, 100, 4, 10),
        (360, 450, 8, 28),
    ),
    draws=lambda some: some.tuples(
        some.integers(50, 30_000),
        some.integers(50, 1_000),
        some.sampled_from((1, 2, 4, 8, 16)),
        some.integers(1, 256),
    ),
    hints=(
        "Little's law: what is under way = rate × waiting time. The rate: bytes per nanosecond.",
        (
            "`gb_per_s * latency_ns` bytes must be under way. How many bytes has one warp of 32"
            " threads under way?"
        ),
        "Divide by `32 * bytes_per_thread * sms` and round up: `-(-a // b)` is a / b rounded up.",
    ),
    wrong=(
        (
            "-(-in_flight // (32 * bytes_per_thread * sms))",
            "in_flight // (32 * bytes_per_thread * sms)",
            "off_by_one",
            "Rounded down, the memory idles a little: round up.",
        ),
        (
            "32 * bytes",
            "bytes",
            "wrong_value",
            "This counts threads; a warp has 32 of them.",
        ),
        (
            " * sms",
            "",
            "wrong_value",
            "This is for the whole chip; share it among the SMs.",
        ),
        (
            " * latency_ns",
            "",
            "wrong_value",
            "The waiting time is missing: in flight = rate × latency.",
        ),
        (
            "-(-in_flight // (32 * bytes_per_thread * sms))",
            "in_flight / (32 * bytes_per_thread * sms)",
            "wrong_dtype",
            "A whole number is needed, rounded up: `math.ceil(a / b)`, or `-(-a // b)`.",
        ),
        (
            "-in_flight // (32 * bytes_per_thread",
            "-in_flight * bytes_per_thread // (32",
            "wrong_value",
            "The more bytes a thread has under way, the fewer threads are needed: divide by them.",
        ),
        (
            "-(-in_flight // (32 * bytes_per_thread * sms))",
            "in_flight // (32 * bytes_per_thread * sms) + 1",
            "off_by_one",
            "Where it divides evenly, this is one too many.",
        ),
        (
            "-(-in_flight // (32 * bytes_per_thread * sms))",
            "round(in_flight / (32 * bytes_per_thread * sms))",
            "wrong_value",
            "The nearest whole number may be too few: round up.",
        ),
        (
            "-(-in_flight // (32 * bytes_per_thread * sms))",
            "-(-in_flight // (32 * bytes_per_thread)) // sms",
            "wrong_value",
            "The warps of all SMs are rounded up here, and each SM's share of them is rounded"
            " down. Round up once, at the end.",
        ),
        (
            "-(-in_flight // (32 * bytes_per_thread * sms))",
            "min(64, -(-in_flight // (32 * bytes_per_thread * sms)))",
            "wrong_value",
            "More than an SM has room for is an answer, too: then each thread must have more"
            " under way.",
        ),
        (
            "32 * bytes_per_thread",
            "32 * 4",
            "wrong_value",
            "A thread has `bytes_per_thread` bytes under way, not always 4.",
        ),
        Wrong(
            in_seconds,
            "off_by_one",
            "1e9 and 1e-9 are floats, and a float that lies just above a whole number is rounded"
            " up. `gb_per_s * latency_ns` are whole bytes already.",
        ),
    ),
)


# ---- matmul_cost: arithmetic intensity


def matmul_cost(m, k, n, itemsize):
    flops = 2 * m * k * n
    elements = m * k + k * n + m * n
    return flops, itemsize * elements


MATMUL_COST = Exercise(
    id="meet_the_gpu.matmul_cost",
    title="FLOPs and bytes of a matmul",
    minutes=5,
    kind="function",
    task=(
        "C = A @ B with A of `m` by `k` and B of `k` by `n` numbers of `itemsize` bytes. Return"
        " `(flops, bytes)`: a multiplication and an addition for each of the `m * n * k` products,"
        " and the bytes if A and B are read once and C is written once. That is the least that any"
        " kernel must move."
    ),
    starter="""
def matmul_cost(m, k, n, itemsize): ...  # return (flops, bytes)
""",
    solution=matmul_cost,
    inputs=arguments_of(matmul_cost),
    reference=matmul_cost,
    shapes=(
        (1, 1, 1, 4),
        (4, 4, 4, 2),
        (64, 32, 16, 4),
        (1, 4096, 4096, 2),
        (40_000, 30_000, 50_000, 8),
        (128, 128, 128, 4),
        (7, 5, 3, 8),
        (400_001, 300_007, 500_009, 2),  # a float has not as many digits
        (2**33 + 1, 3, 5, 2),
        (3, 2**33 + 1, 5, 2),
        (3, 5, 2**33 + 1, 2),
    ),
    draws=lambda some: some.tuples(
        some.integers(1, 9_999),
        some.integers(1, 9_999),
        some.integers(1, 9_999),
        some.sampled_from((1, 2, 4, 8)),
    ),
    hints=(
        (
            "One element of C is a sum of `k` products: `k` multiplications and, counted the usual"
            " way, `k` additions."
        ),
        "There are `m * n` elements in C. The bytes are those of three matrices.",
        "`2 * m * k * n` FLOPs; `itemsize * (m * k + k * n + m * n)` bytes.",
    ),
    wrong=(
        (
            "2 * m",
            "m",
            "wrong_value",
            "Each product is a multiplication and an addition: two FLOPs.",
        ),
        (
            " + m * n",
            "",
            "wrong_value",
            "C must be written, too.",
        ),
        (
            "+ m * n",
            "+ 2 * m * n",
            "wrong_value",
            "C is written once. Nothing of it has to be read before.",
        ),
        (
            "itemsize * elements",
            "elements",
            "wrong_value",
            "These are numbers, not bytes: `itemsize` bytes each.",
        ),
        (
            "itemsize * elements",
            "4 * elements",
            "wrong_value",
            "A number has `itemsize` bytes, not always 4.",
        ),
        (
            "2 * m * k * n",
            "m * n * (2 * k - 1)",
            "off_by_one",
            "The first product of each sum is added to zero: the usual way counts `k` additions.",
        ),
        (
            "m * k + k * n",
            "2 * m * k * n",
            "wrong_value",
            "This is what a kernel without any reuse reads. The least is to read A and B once.",
        ),
        (
            "flops, itemsize * elements",
            "itemsize * elements, flops",
            "swapped_axes",
            "FLOPs first, then bytes.",
        ),
        (
            ("2 * m * k * n", "2 * m**3"),
            ("m * k + k * n + m * n", "3 * m**2"),
            "only_square",
            "The matrices need not be square.",
        ),
    ),
)


# ---- multiply_adds: out of a data sheet into an SM


def multiply_adds(gflops, sms, mhz):
    return round(1000 * gflops / (2 * sms * mhz))


def listed_peak(sms, mhz, each):
    """(gflops, sms, mhz), of SMs that do `each` multiply-adds per cycle, as a data sheet rounds."""
    return round(2 * sms * each * mhz / 1000), sms, mhz


MULTIPLY_ADDS = Exercise(
    id="meet_the_gpu.multiply_adds",
    title="What is inside an SM?",
    minutes=5,
    kind="function",
    task=(
        "A data sheet names a peak of `gflops` GFLOP/s, the number of `sms`, and a clock of `mhz`"
        " MHz. Return how many multiply-adds one SM does per cycle, rounded to the nearest whole"
        " number, because data sheets are rounded, too. (19,500 GFLOP/s on 108 SMs at 1,410 MHz:"
        " 64.)"
    ),
    starter="""
def multiply_adds(gflops, sms, mhz): ...  # FLOPs a second -> a cycle -> of one SM
""",
    solution=multiply_adds,
    inputs=arguments_of(multiply_adds),
    reference=multiply_adds,
    shapes=(
        (19_500, 108, 1410),
        (312_000, 108, 1410),
        (8_100, 40, 1590),
        (66_900, 132, 1980),
        (82_600, 128, 2520),
        (15_700, 80, 1530),
        (989_400, 132, 1830),
        (360, 16, 1350),
        (11_000_000_000, 132, 1980),
    ),
    fresh=lambda rng: listed_peak(
        int(rng.integers(1, 200)), int(rng.integers(900, 3000)), int(rng.integers(16, 4096))
    ),
    draws=lambda some: some.builds(
        listed_peak, some.integers(1, 200), some.integers(900, 3000), some.integers(8, 4096)
    ),
    hints=(
        "A GFLOP/s is 10⁹ FLOPs per second, and a MHz is 10⁶ cycles per second.",
        "Divide the FLOPs per cycle by the SMs, and by the FLOPs of a multiply-add.",
        "`1000 * gflops / mhz` are the FLOPs of a cycle. `round` takes the nearest whole number.",
    ),
    wrong=(
        (
            "2 * sms",
            "sms",
            "wrong_value",
            "These are FLOPs: a multiply-add counts as two of them.",
        ),
        (
            "round(1000 * gflops / (2 * sms * mhz))",
            "1000 * gflops // (2 * sms * mhz)",
            "off_by_one",
            "Rounded down, 63.7 becomes 63: take the nearest whole number.",
        ),
        (
            "round(1000 * gflops / (2 * sms * mhz))",
            "-(-1000 * gflops // (2 * sms * mhz))",
            "off_by_one",
            "Rounded up, 64.03 becomes 65: take the nearest whole number.",
        ),
        (
            "2 * sms * mhz",
            "2 * mhz",
            "wrong_value",
            "This is what all SMs do together: share it among them.",
        ),
        (
            "1000 * gflops",
            "gflops",
            "wrong_value",
            "GFLOP/s and MHz are 10⁹ and 10⁶: between them lies a factor of 1,000.",
        ),
        (
            "round(1000 * gflops / (2 * sms * mhz))",
            "1000 * gflops / (2 * sms * mhz)",
            "wrong_dtype",
            "A whole number is needed: `round` takes the nearest one.",
        ),
    ),
)


# ---- amdahl: how much must be parallel, one thread per wish


@cuda.jit
def needed(share, processors, wanted):
    i = cuda.grid(1)
    if i < share.size:
        share[i] = (1 - 1 / wanted[i]) / (1 - 1 / processors[i])


def law(share, processors, wanted):
    """Amdahl's law in float64, solved for the share."""
    return (1 - 1 / wanted.astype(np.float64)) / (1 - 1 / processors.astype(np.float64))


def some_wishes(rng, n):
    """Machines of 2 to a million processors, and speed-ups that they can just give, or nearly."""
    processors = np.round(2 ** rng.uniform(1, 20, n))
    return {
        "share": Out(n),
        "processors": processors.astype(np.float32),
        "wanted": (processors ** rng.uniform(0.6, 0.99, n)).astype(np.float32),
    }


AMDAHL = Exercise(
    id="meet_the_gpu.amdahl",
    title="How much must be parallel?",
    minutes=8,
    task=(
        "Now the law the other way round. On `processors[i]` processors the whole program must"
        " become `wanted[i]` times faster. What share of its time must be work that can be spread"
        " over all of them? Thread i writes that share, a number from 0 to 1, into `share[i]`."
        " There are two processors or more, and no more is wanted than they can give."
    ),
    starter="""
@cuda.jit
def needed(share, processors, wanted):
    i = cuda.grid(1)
    if i < share.size:
        ...  # share[i] = p, from Amdahl's law
""",
    solution=needed,
    inputs=some_wishes,
    reference=law,
    large=(66_000,),
    specials="finite",  # these are counts and factors
    shapes=lengths(1, 31, 32, 33, 100),
    elements=1,
    extents=a_thread_each,
    probe=(200,),
    other_block=(96, 1, 1),
    fresh=some_numbers((1, 200)),
    hints=(
        "Let the old time be 1. What is the new time, said by what is wanted? And said by the law?",
        "`1 / wanted[i]` is equal to `(1 - p) + p / processors[i]`. Solve it for p.",
        "`1 - 1 / wanted[i]` is equal to `p * (1 - 1 / processors[i])`.",
    ),
    wrong=(
        ("i < share.size", "True", "missing_guard"),
        (" / (1 - 1 / processors[i])", "", "wrong_value"),
        (
            "(1 - 1 / wanted[i]) / (1 - 1 / processors[i])",
            "(wanted[i] - 1) / (processors[i] - 1)",
            "wrong_value",
        ),
        (
            "(1 - 1 / wanted[i]) / (1 - 1 / processors[i])",
            "wanted[i] / processors[i]",
            "wrong_value",
        ),
        (
            "(1 - 1 / wanted[i]) / (1 - 1 / processors[i])",
            "1 - (1 - 1 / wanted[i]) / (1 - 1 / processors[i])",
            "wrong_value",
        ),
        ("share.size", "share.size - 1", "off_by_one"),
        ("cuda.grid(1)", "cuda.laneid", "duplicate_work"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "That would do with endlessly many processors. These leave `p / processors[i]` of the"
            " time, which is not nothing.",
            lambda share, processors, wanted: 1 - 1 / wanted,
        ),
        Hypothesis(
            "wrong_value",
            "This is Gustafson's law turned round, where the problem grows with the machine. Here"
            " the problem stays the same.",
            lambda share, processors, wanted: (wanted - 1) / (processors - 1),
        ),
        Hypothesis(
            "wrong_value",
            "This says how near the wish comes to a perfect speed-up. What stays serial costs far"
            " more than that.",
            lambda share, processors, wanted: wanted / processors,
        ),
        Hypothesis(
            "wrong_value",
            "This is the share that may stay serial.",
            lambda **a: 1 - law(**a),
        ),
        Hypothesis(
            "wrong_value",
            "`//` cuts off what is behind the point: divide by `/`.",
            lambda **a: np.floor(law(**a)),
        ),
        Hypothesis(
            "wrong_value",
            "`i` is the number of the machine; it has `processors[i]` processors.",
            lambda share, processors, wanted: law(share, np.arange(2, processors.size + 2), wanted),
        ),
    ),
)

EXERCISES = (WARP_AND_LANE, DIVERGENCE, LITTLES_LAW, MATMUL_COST, MULTIPLY_ADDS, AMDAHL)

QUIZZES = (
    one_of(
        "meet_the_gpu.q_hide",
        (
            "A scheduler has 8 warps. Each issues one instruction, then waits 15 cycles for its"
            " data. The scheduler issues at most one instruction per cycle. In what share of the"
            " cycles does it issue?"
        ),
        ("1 in 16", "That is one warp alone. The other seven issue while it waits."),
        (
            "8 in 16, that is half",
            (
                "Each warp issues once in 16 cycles, so 8 warps fill 8 of 16. Sixteen warps "
                "would fill"
                " them all."
            ),
        ),
        (
            "All of them",
            "For that the eight warps would have to cover 16 cycles with 8 instructions.",
        ),
        answer="b",
    ),
    Quiz(
        id="meet_the_gpu.q_warp",
        question=(
            "A block of 100 threads runs `if threadIdx.x < 64`. How many of its warps diverge?"
        ),
        answer=0,
        unit="warps",
        explain_right=(
            "64 is a multiple of 32, so every warp agrees: warps 0 and 1 take the branch, 2 and 3"
            " do not."
        ),
        explain={
            4: (
                "There are 4 warps, but lanes diverge only when they disagree within their own"
                " warp."
            ),
            1: "Warp 3 is only partly filled (4 threads), but those agree.",
            2: "Warps 0 and 1 take the branch as a whole, and warps 2 and 3 skip it as a whole.",
            None: (
                "Count the threads 0 to 31, 32 to 63, 64 to 95, 96 to 99: does any group disagree?"
            ),
        },
    ),
    one_of(
        "meet_the_gpu.q_bottleneck",
        (
            "A kernel adds two long vectors on a GPU with 1,000 GB/s and 20 TFLOP/s. What would"
            " make it faster?"
        ),
        (
            "A GPU with twice the TFLOP/s",
            (
                "It uses under a hundredth of the arithmetic it has; the data does not come fast"
                " enough."
            ),
        ),
        (
            "A GPU with twice the memory bandwidth",
            "12 bytes for one FLOP: 1,000 GB/s feed 83 GFLOP/s, far below what it could compute.",
        ),
        ("Tensor cores", "They multiply matrices. This is one addition for 12 bytes moved."),
        answer="b",
    ),
    Quiz(
        id="meet_the_gpu.q_amdahl",
        question=(
            "95 % of a program's time is a kernel. You make it infinitely fast. How many times"
            " faster is the program?"
        ),
        answer=20,
        unit="times",
        explain_right="5 % of the time is left: 1 / 0.05 = 20.",
        explain={
            95: "The other 5 % of the time stays as it was.",
            19: "What is left is 0.05 of the old time, and 1 / 0.05 is 20.",
            None: "How much of the old time is left? The speed-up is 1 divided by that share.",
        },
    ),
)
