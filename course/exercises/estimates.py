"""The exercises of the chapter Say it before you run it."""

from functools import partial

import numpy as np
from numba import cuda

from course.checking.inputs import (
    a_thread_each,
    arguments_of,
    lengths,
    normal,
    some_length,
    some_numbers,
    uniform,
)
from course.checking.model import Demand, Exercise, Hypothesis, Launch, Out, Speed, Wrong
from course.checking.quiz import one_of
from course.exercises.memory import wasteful

# ---- longest: two terms and a start


def time_ns(elements, threads, memory_ns, block_ps, launch_ns):
    blocks = -(-elements // threads)
    return launch_ns + max(memory_ns, blocks * block_ps // 1000)


LONGEST = Exercise(
    id="estimates.longest",
    title="The longer of two",
    minutes=7,
    kind="function",
    task=(
        "A launch has a thread for each of `elements` elements, in blocks of `threads` threads. Its"
        " memory alone would need `memory_ns` nanoseconds. The GPU starts a block every `block_ps`"
        " picoseconds; the start of all blocks takes whole nanoseconds, rounded down. Memory and"
        " the start of blocks go on at the same time. Return the launch's time in nanoseconds:"
        " `launch_ns` for the launch itself, and then the longer of the two."
    ),
    starter="""
def time_ns(elements, threads, memory_ns, block_ps, launch_ns):
    return launch_ns + memory_ns  # the start of the blocks is missing
""",
    solution=time_ns,
    inputs=arguments_of(time_ns),
    reference=lambda elements, threads, memory_ns, block_ps, launch_ns: (
        launch_ns + max(memory_ns, -(-elements // threads) * block_ps // 1000)
    ),
    shapes=(
        (1 << 25, 256, 95_000, 602, 3200),
        (1 << 25, 8, 95_000, 602, 3200),
        (1000, 256, 10, 602, 3200),
        (33, 32, 0, 1000, 0),
        (96, 32, 0, 2000, 5),
        (64, 32, 1, 1000, 2),
        (3, 1, 0, 602, 0),
        (1, 1024, 1, 602, 1),
        (1 << 40, 64, 95_000, 602, 3200),
        ((1 << 61) + 1, 2, 1, 1000, 0),
    ),
    fresh=some_numbers((1, 1 << 22), (1, 1025), (0, 9000), (300, 2000), (0, 5000)),
    hints=(
        "How many blocks are there? The last one may have fewer elements than threads.",
        "`blocks = -(-elements // threads)` rounds up. All of them start in `blocks * block_ps`"
        " picoseconds.",
        "A thousand picoseconds are a nanosecond: `blocks * block_ps // 1000`. Of this and"
        " `memory_ns` the longer counts, and the launch comes on top.",
    ),
    wrong=(
        (
            "max(memory_ns, blocks * block_ps // 1000)",
            "memory_ns + blocks * block_ps // 1000",
            "wrong_value",
            "The two go on at the same time: the longer one counts, not their sum.",
        ),
        (
            "-(-elements // threads)",
            "elements // threads",
            "wrong_value",
            "A block that has too few elements has to start, too: round the blocks up.",
        ),
        (
            "launch_ns + max",
            "max",
            "wrong_value",
            "The launch itself takes its time, whatever comes after it.",
        ),
        (
            "blocks * block_ps // 1000",
            "elements * block_ps // 1000",
            "wrong_value",
            "It is blocks that are started, not threads.",
        ),
        (
            "blocks * block_ps // 1000",
            "blocks * block_ps",
            "wrong_value",
            "Picoseconds are not nanoseconds: a thousand of them are one.",
        ),
        (
            "max(memory_ns, blocks * block_ps // 1000)",
            "min(memory_ns, blocks * block_ps // 1000)",
            "wrong_value",
            "A launch ends with what takes longest, not with what is over first.",
        ),
        (
            "launch_ns + max(memory_ns, blocks * block_ps // 1000)",
            "max(launch_ns, memory_ns, blocks * block_ps // 1000)",
            "wrong_value",
            "No block runs before the launch is there: it comes on top.",
        ),
        (
            "launch_ns + max(memory_ns, ",
            "max(memory_ns, launch_ns + ",
            "wrong_value",
            "Memory moves nothing before the launch is there either: it comes on top of both.",
        ),
        (
            "launch_ns + max(memory_ns, ",
            "max(launch_ns + memory_ns, ",
            "wrong_value",
            "Blocks do not start before the launch is there either: it comes on top of both.",
        ),
        (
            "blocks * block_ps // 1000",
            "blocks * (block_ps // 1000)",
            "wrong_value",
            "One block's time is rounded down before it is multiplied: round that of all blocks.",
        ),
        (
            "blocks * block_ps // 1000",
            "round(blocks * block_ps / 1000)",
            "wrong_value",
            "This rounds to the nearest whole number. Round down, as `//` does.",
        ),
        (
            "-(-elements // threads)",
            "elements // threads + 1",
            "wrong_value",
            "Where the elements fill their blocks exactly, no further block starts.",
        ),
    ),
)


# ---- chains: a microbenchmark of arithmetic


@cuda.jit
def chains(out, a, factor, rounds):
    i = cuda.grid(1)
    if i < out.size:
        x0 = a[i]
        x1 = a[i] + np.float32(1)
        x2 = a[i] + np.float32(2)
        x3 = a[i] + np.float32(3)
        for _ in range(rounds):
            x0 = x0 * factor + np.float32(1)
            x1 = x1 * factor + np.float32(1)
            x2 = x2 * factor + np.float32(1)
            x3 = x3 * factor + np.float32(1)
        out[i] = x0 + x1 + x2 + x3


def chain_inputs(rng, shape):
    """Numbers, a factor that keeps them small, and how often it is applied."""
    factor = np.float32(rng.uniform(-0.9, 0.9))
    rounds = int(rng.integers(0, 7))
    return {"out": Out(shape), "a": normal(rng, *shape), "factor": factor, "rounds": rounds}


def four_chains(out, a, factor, rounds, starts=(0, 1, 2, 3), less=0):
    """The sum of four chains, in float64."""
    total = np.zeros(a.shape)
    for start in starts:
        x = a.astype(np.float64) + start
        for _ in range(rounds - less):
            x = x * factor + 1
        total += x
    return total


def each_from_the_one_before(out, a, factor, rounds):
    """Four chains of which each takes its step from the one before it."""
    x = [a.astype(np.float64) + start for start in range(4)]
    for _ in range(rounds):
        for chain in range(4):
            x[chain] = x[max(0, chain - 1)] * factor + 1
    return sum(x)


def one_after_another(out, a, factor, rounds):
    """One chain, four times as long, and three that nothing happens to."""
    long = four_chains(out, a, factor, 4 * rounds, (0,))
    return long + 3 * a.astype(np.float64) + 6


CHAINS = Exercise(
    id="estimates.chains",
    title="Four chains in a thread",
    minutes=8,
    task=(
        "A thread that computes `x = x * factor + 1` again and again waits each time for its own"
        " last result: that measures how long one multiply-add takes. To measure how many of them"
        " an SM computes in a second, give each thread **four** such chains, which do not wait for"
        " one another. They begin at `a[i]`, `a[i] + 1`, `a[i] + 2` and `a[i] + 3`, each takes"
        " `rounds` steps, and `out[i]` becomes the sum of the four. (A chain whose result nobody"
        " stores is one that the compiler leaves out. The check sees the numbers; that no chain"
        " waits for another, you have to see.)"
    ),
    starter="""
@cuda.jit
def chains(out, a, factor, rounds):
    i = cuda.grid(1)
    if i < out.size:
        x = a[i]
        for _ in range(rounds):
            x = x * factor + np.float32(1)  # one chain: it waits for itself
        out[i] = x
""",
    solution=chains,
    inputs=chain_inputs,
    reference=four_chains,
    rtol=1e-4,
    specials="finite",
    powers=(),
    shapes=lengths(1, 31, 32, 33, 100, 256),
    fresh=some_length,
    extents=a_thread_each,
    other_block=(96, 1, 1),
    hints=(
        "Four variables instead of one, each with its own start. The loop's body has four lines.",
        "`x1 = a[i] + np.float32(1)` is the second chain's start, and"
        " `x1 = x1 * factor + np.float32(1)` its step: no other chain occurs in it.",
        "After the loop: `out[i] = x0 + x1 + x2 + x3`.",
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "This is one chain alone: four are asked for, and the sum of all four.",
            lambda out, a, factor, rounds: four_chains(out, a, factor, rounds, (0,)),
        ),
        Hypothesis(
            "wrong_value",
            "All four chains begin at the same number: the compiler would compute one of them.",
            lambda out, a, factor, rounds: four_chains(out, a, factor, rounds, (0,) * 4),
        ),
        Hypothesis(
            "wrong_value",
            "The first chain takes all steps, and the others stay where they begin.",
            one_after_another,
        ),
        Hypothesis(
            "wrong_value",
            "This is one chain that takes four times the steps, and it waits for itself. Four of"
            " `rounds` steps each are asked for.",
            lambda out, a, factor, rounds: four_chains(out, a, factor, 4 * rounds, (0,)),
        ),
        Hypothesis(
            "wrong_value",
            "A chain takes its step from the one before it, and waits for that: each goes on from"
            " its own last result.",
            each_from_the_one_before,
        ),
        *(
            Hypothesis(
                "wrong_value",
                f"The chain that begins at `a[i] + {missing}` is missing in the sum.",
                partial(four_chains, starts=tuple({0, 1, 2, 3} - {missing})),
            )
            for missing in range(4)
        ),
        Hypothesis(
            "wrong_value",
            "The chains are a step too short: they take `rounds` steps.",
            partial(four_chains, less=1),
        ),
        Hypothesis(
            "wrong_value",
            "The chains are a step too long: they take `rounds` steps.",
            partial(four_chains, less=-1),
        ),
    ),
    wrong=(
        ("x0 + x1 + x2 + x3", "x0", "wrong_value"),
        (
            ("x1 = a[i] + np.float32(1)", "x1 = a[i]"),
            ("x2 = a[i] + np.float32(2)", "x2 = a[i]"),
            ("x3 = a[i] + np.float32(3)", "x3 = a[i]"),
            "wrong_value",
        ),
        (
            ("x1 = x1 * factor", "x1 = x0 * factor"),
            ("x2 = x2 * factor", "x2 = x1 * factor"),
            ("x3 = x3 * factor", "x3 = x2 * factor"),
            "wrong_value",
        ),
        (
            ("x1 = x1 * factor", "x0 = x0 * factor"),
            ("x2 = x2 * factor", "x0 = x0 * factor"),
            ("x3 = x3 * factor", "x0 = x0 * factor"),
            "wrong_value",
        ),
        ("if i < out.size:", "if i <= out.size:", "off_by_one"),
        ("range(rounds)", "range(1, rounds)", "wrong_value"),
    ),
)


# ---- rounds: latency, and how many blocks are there at once


def latency_ns(blocks, threads, sms, life_ns):
    resident = min(32, 2048 // threads)
    rounds = -(-blocks // (sms * resident))
    return rounds * life_ns


def some_launch(rng):
    """Blocks, threads in whole warps, SMs, nanoseconds."""
    warps = int(rng.integers(1, 33))
    blocks, sms, life = (int(rng.integers(1, most)) for most in (100_000, 200, 5000))
    return blocks, 32 * warps, sms, life


def some_launches(some):
    """Hypothesis's strategy of the same."""
    warps = some.integers(1, 32).map(lambda count: 32 * count)
    rest = some.integers(1, 200), some.integers(1, 5000)
    return some.tuples(some.integers(1, 100_000), warps, *rest)


ROUNDS = Exercise(
    id="estimates.rounds",
    title="How many rounds of blocks?",
    minutes=8,
    kind="function",
    task=(
        "Each block lives for `life_ns` nanoseconds, most of which it waits. An SM has room for"
        " 2,048 threads and for 32 blocks, and it starts the next block when one has ended. A GPU"
        " has `sms` SMs. In how many nanoseconds have all `blocks` blocks of `threads` threads (a"
        " multiple of 32) come to their end, if nothing but this waiting counts? (Blocks live"
        " equally long, so they come in rounds, and a last round with a few blocks takes as long as"
        " a full one.)"
    ),
    starter="""
def latency_ns(blocks, threads, sms, life_ns):
    return blocks * life_ns  # as if there were room for one block at a time
""",
    solution=latency_ns,
    inputs=arguments_of(latency_ns),
    reference=lambda blocks, threads, sms, life_ns: (
        life_ns * -(-blocks // (sms * min(32, 2048 // threads)))
    ),
    shapes=(
        (64, 256, 132, 800_000),
        (131_072, 256, 132, 2000),
        (131_072, 32, 132, 2000),
        (132 * 8, 256, 132, 100),
        (132 * 8 + 1, 256, 132, 100),
        (1, 1024, 1, 7),
        (100, 96, 3, 11),
        (1000, 768, 2, 13),
        (5000, 32, 7, 9),
        (77, 768, 5, 4),
        ((1 << 61) + 1, 1024, 1, 3),
    ),
    fresh=some_launch,
    draws=some_launches,
    hints=(
        "First the room: how many blocks of `threads` threads does one SM hold? Both limits count.",
        "`resident = min(32, 2048 // threads)`, and on all SMs together `sms * resident`.",
        "The rounds are `blocks` through this number, rounded up. Each takes `life_ns`.",
    ),
    wrong=(
        (
            "min(32, 2048 // threads)",
            "2048 // threads",
            "wrong_value",
            "However small blocks are, an SM holds 32 of them at most.",
        ),
        (
            "min(32, 2048 // threads)",
            "32",
            "wrong_value",
            "An SM has room for 2,048 threads: 32 large blocks do not fit.",
        ),
        (
            "-(-blocks // (sms * resident))",
            "blocks // (sms * resident)",
            "wrong_value",
            "The last round is a whole one, however few blocks it has: round up.",
        ),
        (
            "sms * resident",
            "resident",
            "wrong_value",
            "All SMs hold blocks at the same time.",
        ),
        (
            "sms * resident",
            "sms",
            "wrong_value",
            "An SM holds several blocks at once.",
        ),
        (
            "-(-blocks // (sms * resident))",
            "(blocks // (sms * resident) + 1)",
            "wrong_value",
            "Where the blocks fill their rounds exactly, no further round begins.",
        ),
        (
            "2048 // threads",
            "-(-2048 // threads)",
            "wrong_value",
            "A block that does not fit as a whole has no room: round down.",
        ),
        (
            "rounds * life_ns",
            "blocks * life_ns // (sms * resident)",
            "wrong_value",
            "A last round with a few blocks takes as long as a full one: count whole rounds.",
        ),
        (
            "sms * resident",
            "min(32 * sms, 2048 * sms // threads)",
            "wrong_value",
            "What is left over on several SMs makes no room for a block: each SM rounds down.",
        ),
    ),
)


# ---- rows: a goal for who has no GPU


@cuda.jit
def row_sums(out, x):
    parts = cuda.shared.array(64, np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    mine = np.float32(0)
    for c in range(t, x.shape[1], 64):
        mine += x[row, c]
    parts[t] = mine
    cuda.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            parts[t] += parts[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[row] = parts[0]


@cuda.jit
def row_sums_atomically(out, x):
    parts = cuda.shared.array(64, np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    parts[t] = 0
    cuda.syncthreads()
    mine = np.float32(0)
    for c in range(t, x.shape[1], 64):
        mine += x[row, c]
    cuda.atomic.add(parts, 0, mine)  # 64 threads queue
    cuda.syncthreads()
    if t == 0:
        out[row] = parts[0]


ROW_THREADS = 64

ROWS = Exercise(
    id="estimates.rows",
    title="Faster, without a clock",
    minutes=12,
    one_block=True,
    task=(
        "A block of 64 threads adds up one row of `x` and writes the sum to `out[row]`. It is"
        " right, and slower than it has to be: an estimate says why. Change the kernel until the"
        " estimate is about a third of what it was. The launch stays as it is."
    ),
    starter="""
@cuda.jit
def row_sums(out, x):
    parts = cuda.shared.array(64, np.float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    share = (x.shape[1] + 63) // 64  # columns for each thread
    mine = np.float32(0)
    for c in range(t * share, min((t + 1) * share, x.shape[1])):
        mine += x[row, c]
    parts[t] = mine
    cuda.syncthreads()
    if t == 0:
        total = np.float32(0)
        for k in range(64):
            total += parts[k]
        out[row] = total
""",
    solution=row_sums,
    inputs=lambda rng, shape: {"out": Out(shape[:1]), "x": uniform(rng, *shape)},
    reference=lambda out, x: x.astype(np.float64).sum(1),
    rtol=1e-4,
    shapes=((1, 64), (2, 1), (3, 33), (2, 65), (1, 300), (4, 200)),
    fresh=some_numbers((1, 4), (1, 300)),
    block=(ROW_THREADS, 1, 1),
    extents=lambda shape: (shape[0] * ROW_THREADS, 1, 1),
    launches=lambda shape: [Launch((shape[0], 1, 1), (ROW_THREADS, 1, 1))],
    demand=Demand((2, 256), wasteful, ragged=(2, 192)),
    speed=Speed("4096 rows of 4096", 4096, lambda rows: (rows, 4096), goal=1.25),
    race_free=True,
    effort=4,  # thread 0 may add the 64 parts: the estimate hardly sees it
    hints=(
        "Ask the estimate what takes longest. Which elements does a warp read in one step, and how"
        " far are they apart?",
        "Neighbouring threads should read neighbouring columns: thread t begins at column t, and"
        " goes on in steps of 64.",
        "`for c in range(t, x.shape[1], 64)`. What thread 0 does with the 64 parts may stay.",
    ),
    wrong=(
        (
            "range(t, x.shape[1], 64)",
            "range(t * ((x.shape[1] + 63) // 64),"
            " min((t + 1) * ((x.shape[1] + 63) // 64), x.shape[1]))",
            "uncoalesced",
        ),
        ("range(t, x.shape[1], 64)", "range(t, x.shape[1], 32)", "wrong_value"),
        ("range(t, x.shape[1], 64)", "range(x.shape[1])", "wrong_value"),
        (
            "    parts[t] = mine\n    cuda.syncthreads()",
            "    parts[t] = mine",
            "race",
        ),
        Wrong(row_sums_atomically, "over_goal"),
        ("step = 32", "step = 16", "wrong_value"),
        ("if t < step:", "if t <= step:", "race"),
    ),
)


# ---- smooth: three things at once, for a gaming card


@cuda.jit
def smooth(out, a):
    x, y = cuda.grid(2)
    height, width = a.shape
    if y < height and x < width:
        left, right = max(x - 1, 0), min(x + 1, width - 1)
        out[y, x] = (a[y, left] + a[y, x] + a[y, right]) / np.float32(3.1)


def smoothed(out, a, left=1, right=1, divisor=3.1):
    """Each element and its neighbours in the row, divided; beyond the edges a row goes on."""
    around = np.pad(a.astype(np.float64), ((0, 0), (1, 1)), mode="edge")
    parts = left * around[:, :-2] + around[:, 1:-1] + right * around[:, 2:]
    return parts / divisor


SMOOTH = Exercise(
    id="estimates.smooth",
    title="Faster on a card that you do not have",
    minutes=6,
    one_block=True,
    task=(
        "`smooth` adds each element of `a` and its two neighbours in the row, divides by 3.1, and"
        " writes the result to `out`; beyond an edge the edge's element counts again. It is right."
        " Change the kernel until its estimate for an RTX 4090 is at most a quarter longer than"
        " ours. The launch stays as it is: blocks of 32 by 8 threads, enough of them whichever axis"
        " is which."
    ),
    starter="""
@cuda.jit
def smooth(out, a):
    y, x = cuda.grid(2)  # neighbouring threads: neighbouring rows
    height, width = a.shape
    if y < height and x < width:
        left, right = max(x - 1, 0), min(x + 1, width - 1)
        out[y, x] = (a[y, left] + a[y, x] + a[y, right]) / 3.1
""",
    solution=smooth,
    inputs=lambda rng, shape: {"out": Out(shape), "a": uniform(rng, *shape)},
    reference=smoothed,
    shapes=((1, 1), (8, 32), (9, 33), (40, 5), (3, 70)),
    fresh=some_numbers((1, 40), (1, 70)),
    large=((1, 300), (300, 1)),
    block=(32, 8, 1),
    extents=lambda shape: (max(shape), max(shape), 1),
    speed=Speed(
        "a matrix of 4096 × 4096", 4096, lambda side: (side, side), goal=1.25, gpu="RTX 4090"
    ),
    hints=(
        "Ask `waterfall` for an RTX 4090. What does it name first, and what next?",
        "`3.1` is a float64, so the division is one, too. Which axis should neighbouring threads"
        " take?",
        "`x, y = cuda.grid(2)`, and `/ np.float32(3.1)`.",
    ),
    wrong=(
        ("x, y = cuda.grid(2)", "y, x = cuda.grid(2)", "over_goal"),
        ("np.float32(3.1)", "3.1", "over_goal"),
        ("x < width:", "x < width - 1:", "off_by_one"),
        ("min(x + 1, width - 1)", "x + 1", "off_by_one"),
        ("max(x - 1, 0)", "x - 1", "off_by_one"),
        ("np.float32(3.1)", "np.float32(3)", "wrong_value"),
        ("np.float32(3.1)", "np.float32(2)", "wrong_value"),
        ("a[y, left] + a[y, x] + a[y, right]", "a[y, left] + a[y, right]", "wrong_value"),
    ),
)


# ---- opcodes: reading machine code


def how_many(listing, opcode):
    counted = 0
    for line in listing.splitlines():
        words = line.split()
        if words and words[0].startswith("@"):
            words = words[1:]
        if words and words[0].split(".")[0] == opcode:
            counted += 1
    return counted


def count_whole_words(listing, opcode):
    lines = [line.split() for line in listing.splitlines()]
    return sum(opcode in words[:2] for words in lines)


def count_beginnings(listing, opcode):
    lines = [[word for word in line.split() if word[0] != "@"] for line in listing.splitlines()]
    return sum(words[0].startswith(opcode) for words in lines if words)


def count_unguarded(listing, opcode):
    lines = [line.split() for line in listing.splitlines() if line]
    return sum(words[0].split(".")[0] == opcode for words in lines)


def count_anywhere(listing, opcode):
    return listing.count(opcode)


INSTRUCTIONS = (
    "FFMA R9, R2, R9, 0.5",
    "FFMA.FTZ R3, R4, R5, R6",
    "FADD R9, R4, R3",
    "IMAD R9, R9, UR4, R0",
    "IMAD.WIDE R2, R9, 0x4, R2",
    "ISETP.GE.AND P0, PT, R9, UR4, PT",
    "LDG.E R3, desc[UR4][R2.64]",
    "LDG.E.128 R4, desc[UR4][R2.64]",
    "LDGSTS.E.BYPASS.128 [R7], desc[UR8][R4.64]",
    "STG.E desc[UR4][R6.64], R9",
    "LDC.64 R2, c[0x0][0x218]",
    "ULDC.64 UR4, c[0x0][0x208]",
    "FADD.FTZ R3, R3, R4",
    "BAR.SYNC.DEFER_BLOCKING 0x0",
    "BRA `(.L_x_4)",
    "EXIT",
)
GUARDS = "", "", "@P0 ", "@!P0 ", "@P1 "


def listing_of(rng, shape):
    """Random lines of machine code, some of them guarded, some empty; and an opcode."""
    rng = np.random.default_rng(shape)
    lines = []
    for _ in range(shape[0]):
        line = GUARDS[rng.integers(len(GUARDS))] + INSTRUCTIONS[rng.integers(len(INSTRUCTIONS))]
        lines.append("" if rng.random() < 1 / 8 else line)
    opcode = INSTRUCTIONS[rng.integers(len(INSTRUCTIONS))].split()[0].split(".")[0]
    return {"listing": "\n".join(lines), "opcode": opcode}


OPCODES = Exercise(
    id="estimates.opcodes",
    title="Count the instructions",
    minutes=7,
    kind="function",
    task=(
        "`listing` is machine code as text, an instruction on each line, and some lines are empty."
        " Return how many of them have the opcode `opcode`, such as `LDG`. An opcode ends at its"
        " first dot (`LDG.E` and `LDG.E.128` are both `LDG`), and a guard such as `@!P0` before it"
        " is not part of it; a guarded instruction counts like any other."
    ),
    starter="""
def how_many(listing, opcode):
    counted = 0
    for line in listing.splitlines():
        if line.startswith(opcode):  # a guard may stand before it, or more letters behind it
            counted += 1
    return counted
""",
    solution=how_many,
    inputs=listing_of,
    reference=how_many,
    shapes=((0, 0), *((6, number) for number in range(24)), (60, 5), (90, 7)),
    fresh=some_numbers((1, 9), (0, 1 << 20)),
    hints=(
        "`line.split()` gives a line's words; an empty line has none.",
        'Where the first word begins with "@", the opcode is the second word.',
        '`word.split(".")[0]` is the part before the first dot.',
    ),
    wrong=(
        Wrong(
            count_whole_words,
            "wrong_value",
            "What follows the first dot are modifiers: `LDG.E` and `LDG.E.128` are both `LDG`.",
        ),
        Wrong(
            count_beginnings,
            "wrong_value",
            "`LDGSTS` begins like `LDG` and is another opcode: compare the whole of it.",
        ),
        Wrong(count_unguarded, "wrong_value", "Instructions with a guard before them are missing."),
        Wrong(
            count_anywhere,
            "wrong_value",
            "`LDC` also stands in `ULDC`, and `BRA` in other words: compare a whole opcode.",
        ),
    ),
)


EXERCISES = (LONGEST, CHAINS, ROUNDS, ROWS, SMOOTH, OPCODES)

QUIZZES = (
    one_of(
        "estimates.q_help",
        "An estimate's terms: latency 0.82 ms, memory 0.10 ms, instructions 0.07 ms. What helps?",
        (
            "Moving fewer bytes",
            "Memory alone would need an eighth of the time: it is not what the kernel waits for.",
        ),
        (
            "More blocks, or more loads under way in each thread",
            "The threads that are there wait too long for each load: more of them hide the wait.",
        ),
        (
            "Fewer instructions",
            "They need a twelfth of the time, and most of it they are hidden behind waiting.",
        ),
        answer="b",
    ),
    one_of(
        "estimates.q_close",
        "Two kernels are estimated at 0.100 and 0.108 ms. Which of them is faster?",
        (
            "The first, by 8 %",
            "Single estimates are off by more than that, upwards and downwards.",
        ),
        (
            "Nobody can tell without a clock",
            "The difference is smaller than the model's error. An estimate finds factors; a few"
            " percent take a measurement.",
        ),
        (
            "They are equally fast",
            "They may be, or one may take half as long again: the model cannot tell them apart.",
        ),
        answer="b",
    ),
    one_of(
        "estimates.q_listing",
        "A loop's body holds 16 FFMA, one IADD3, one ISETP and one branch. The source has one"
        " multiply-add for each turn. What has the compiler done?",
        (
            "It computes each turn 16 times",
            "Then the result would be another: it may not do that.",
        ),
        (
            "It unrolled the loop: one branch for 16 turns of the source",
            "Counter, comparison and branch now cost a sixteenth.",
        ),
        (
            "It runs 16 threads in one",
            "Which threads there are is settled by the launch, never by the compiler.",
        ),
        answer="b",
    ),
)
