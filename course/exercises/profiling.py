"""The exercises of the chapter Profiling."""

import re

import numpy as np

from course.checking.inputs import (
    a_thread_each,
    arguments_of,
    lengths,
    some_numbers,
    some_zeros,
)
from course.checking.model import Exercise, Hypothesis, Launch, Out, cover
from course.checking.quiz import one_of

# ---- honest_timer: time an asynchronous queue


class Queue:
    """A device whose clock only this exercise turns: `launch` returns at once, `wait` until all
    work is done.

    The first launch of a piece of work also compiles it. Times are in microseconds.
    """

    def __init__(self, work_us, launch_us, compile_us):
        self.work_us, self.launch_us, self.compile_us = work_us, launch_us, compile_us
        self.now = self.done = 0
        self.compiled, self.launches = False, 0

    def launch(self):
        """Hand the work over. Costs the host `launch_us`, the first time `compile_us` more."""
        self.now += self.launch_us + (0 if self.compiled else self.compile_us)
        self.compiled = True
        self.launches += 1
        self.done = max(self.done, self.now) + self.work_us

    def wait(self):
        """Until the queue is empty."""
        self.now = max(self.now, self.done)

    def clock(self):
        """The host's clock in microseconds."""
        return self.now

    def __repr__(self):
        times = f"{self.work_us}, launch_us={self.launch_us}, compile_us={self.compile_us}"
        return f"Queue(work_us={times})"


def time_it(queue, repeats):
    queue.launch()
    queue.wait()
    start = queue.clock()
    for _ in range(repeats):
        queue.launch()
    queue.wait()
    return (queue.clock() - start) // repeats


def as_many_launches(arguments, expected):
    """Whether the queue was given one launch to warm up, and `repeats` to time."""
    launches, repeats = arguments["queue"].launches, arguments["repeats"]
    if launches != repeats + 1:
        return f"It launched {launches} times: one to warm up and {repeats} to time are enough."
    return None


TIMER = Exercise(
    id="profiling.honest_timer",
    title="An honest timer",
    minutes=10,
    kind="function",
    task=(
        "`queue.launch()` hands work to a device and returns at once; `queue.wait()` returns when"
        " all work is done; `queue.clock()` is the host's clock in microseconds. The first launch"
        " also compiles. Return the whole microseconds (`//`) of one launch: warm up with one"
        " launch and wait for it, then launch `repeats` times **in a row** and wait once, so that"
        " the host's work for one launch hides behind the device's for another."
    ),
    starter="""
def time_it(queue, repeats):
    start = queue.clock()
    for _ in range(repeats):
        queue.launch()
    return (queue.clock() - start) // repeats  # honest?
""",
    solution=time_it,
    inputs=lambda rng, shape: {"queue": Queue(*shape[:3]), "repeats": shape[3]},
    reference=time_it,
    after=as_many_launches,
    shapes=(
        (100, 8, 40_000, 10),
        (500, 5, 30_000, 4),
        (64, 6, 25_000, 8),
        (2, 8, 20_000, 16),
        (1000, 10, 50_000, 1),
    ),
    hints=(
        "What does the clock show right after `queue.launch()`? Nothing has been computed yet.",
        (
            "Three things are missing: a launch before the clock starts, a wait so that it is"
            " finished, and a wait before the clock is read again."
        ),
        "Launch and wait; read the clock; launch `repeats` times; wait; read the clock; divide.",
    ),
    wrong=(
        (
            "    queue.wait()\n    return",
            "    return",
            "wrong_value",
            "The clock is read before the work is done: this is what the launches cost the host.",
        ),
        (
            "    queue.launch()\n    queue.wait()\n    start",
            "    start",
            "wrong_value",
            "The first launch is in the time, and it compiles: warm up before the clock starts.",
        ),
        (
            "    queue.wait()\n    start",
            "    start",
            "wrong_value",
            "The warm-up may still be running when the clock starts: wait for it, too.",
        ),
        (
            "(queue.clock() - start) // repeats",
            "queue.clock() - start",
            "wrong_value",
            "This is the time of all launches; one is asked for.",
        ),
        (
            "range(repeats)",
            "range(repeats - 1)",
            "wrong_value",
            "One launch too few is timed, and the time divided by all: the warm-up is not in it.",
        ),
        (
            "        queue.launch()\n",
            "        queue.launch()\n        queue.wait()\n",
            "wrong_value",
            "This is what one launch takes alone, while the other waits. Launch `repeats` times"
            " in a row, without a wait between, and wait once.",
        ),
    ),
)


# ---- speed_limit: which of the three limits


def speed_limit(seconds, nbytes, flops, bandwidth, peak):
    memory = nbytes / bandwidth
    compute = flops / peak
    if max(memory, compute) < seconds / 2:
        return 3
    return 1 if memory >= compute else 2


def some_kernels(some):
    """Kernels of any kind whose two limits differ by more than rounding does: a strategy."""
    kernels = some.tuples(
        some.floats(1e-6, 1e-2),
        some.floats(1e6, 1e10),
        some.floats(1e6, 1e12),
        some.floats(1e11, 1e13),
        some.floats(1e12, 1e15),
    )

    def is_clear(kernel):
        _, nbytes, flops, bandwidth, peak = kernel
        memory, compute = nbytes / bandwidth, flops / peak
        return abs(memory - compute) > 1e-6 * max(memory, compute)

    return kernels.filter(is_clear)


LIMIT = Exercise(
    id="profiling.speed_limit",
    title="Which limit?",
    minutes=5,
    kind="function",
    names=True,
    task=(
        "A kernel took `seconds`, moved `nbytes` and did `flops`, on a GPU that copies `bandwidth`"
        " bytes and computes `peak` FLOPs per second. Return 1 (memory) or 2 (arithmetic),"
        " whichever alone would have taken longer, or 3 (latency) when even that one would have"
        " taken less than half of the measured time. A kernel may move nothing, or compute"
        " nothing; no two limits are alike."
    ),
    starter="""
def speed_limit(seconds, nbytes, flops, bandwidth, peak):
    # return 1 (memory), 2 (arithmetic) or 3 (latency)
    ...
""",
    solution=speed_limit,
    inputs=arguments_of(speed_limit),
    reference=speed_limit,
    shapes=(
        (0.002, 1e9, 1e9, 1e12, 1e13),  # exactly half
        (0.004, 2e9, 1e9, 1e12, 1e13),  # and again
        (1.0e-3, 3.0e9, 0.25e9, 4.0e12, 5.0e13),
        (4.0e-3, 2.0e8, 1.7e11, 4.0e12, 5.0e13),
        (5.0e-6, 4.0e3, 1.0e3, 4.0e12, 5.0e13),
        (1.0e-3, 1.0e9, 1.6e10, 1.0e12, 2.0e13),
        (1.0e-3, 1.0e9, 2.2e10, 1.0e12, 2.0e13),
        (1.0e-3, 0.3e9, 0.6e10, 1.0e12, 2.0e13),
        (1.0e-3, 0.4e9, 0.9e10, 1.0e12, 2.0e13),
        (2.0e-2, 1.0e8, 1.0e12, 3.0e11, 8.0e13),
        (1.0e-3, 0.0, 4.0e10, 4.0e12, 5.0e13),
        (1.0e-3, 0.0, 1.0e10, 4.0e12, 5.0e13),
        (1.0e-3, 3.0e9, 0.0, 4.0e12, 5.0e13),
    ),
    draws=some_kernels,
    hints=(
        "How long would the bytes take alone? `nbytes / bandwidth`. And the FLOPs?",
        (
            "The longer of the two is the least time the kernel could have taken. Compare it with"
            " `seconds`."
        ),
        "If `max(memory, compute) < seconds / 2`, neither explains the time.",
    ),
    wrong=(
        (
            "memory >= compute",
            "memory < compute",
            "wrong_value",
            "Memory and compute are exchanged: the limit is the one that takes longer.",
        ),
        (
            "< seconds / 2",
            "< 0",
            "wrong_value",
            "If neither explains half of the measured time, the kernel is waiting: latency.",
        ),
        (
            "memory >= compute",
            "nbytes >= flops",
            "wrong_value",
            "Bytes and FLOPs are not comparable; their times are.",
        ),
        (
            "max(memory, compute)",
            "memory + compute",
            "wrong_value",
            "Memory and arithmetic work at the same time: compare the longer one, not the sum.",
        ),
        (
            "max(memory, compute)",
            "memory",
            "wrong_value",
            "A kernel whose arithmetic explains the time is not waiting.",
        ),
        (
            "max(memory, compute) < seconds / 2",
            "min(memory, compute) < seconds / 2",
            "wrong_value",
            "This is latency where *either* is below half of the time. If the longer one explains"
            " it, that one is the limit.",
        ),
        (
            "< seconds / 2",
            "< seconds",
            "wrong_value",
            "Here it is latency as soon as the limit is not reached in full. A kernel that gets"
            " half of the way is held back by that limit.",
        ),
        (
            "< seconds / 2",
            "<= seconds / 2",
            "wrong_value",
            "Exactly half of the time is not *less than* half of it.",
        ),
    ),
)


# ---- read_ptx: how many bytes does a thread load


def bytes_loaded(ptx):
    total = 0
    for line in ptx.splitlines():
        match = re.search(r"\bld(\.volatile)?\.global\S*", line)
        if match:
            parts = match.group().split(".")
            size = int(re.sub(r"\D", "", parts[-1])) // 8
            if "v2" in parts:
                size *= 2
            if "v4" in parts:
                size *= 4
            total += size
    return total


LOADS = (
    "ld.global.f32 %f{n}, [%rd{n}];",
    "ld.global.nc.f32 %f{n}, [%rd{n}];",
    "ld.global.f64 %fd{n}, [%rd{n}];",
    "ld.global.u8 %rs{n}, [%rd{n}];",
    "ld.global.v4.f32 {{%f{n}, %f9{n}, %f8{n}, %f7{n}}}, [%rd{n}];",
    "ld.global.nc.v2.f32 {{%f{n}, %f9{n}}}, [%rd{n}];",
    "@%p1 ld.global.b32 %r{n}, [%rd{n}];",
    "ld.global.ca.f32 %f{n}, [%rd{n}];",
    "ld.global.L1::no_allocate.v2.f32 {{%f{n}, %f9{n}}}, [%rd{n}];",
    "ld.global.s16 %rs{n}, [%rd{n}];",
    "ld.global.v2.b64 {{%rd1{n}, %rd2{n}}}, [%rd{n}];",
    "ld.global.f32 %v4, [%v2];",  # registers' names, as good as any
    "ld.volatile.global.v2.f32 {{%f{n}, %f9{n}}}, [%rd{n}];",
    # and numbers of registers and distances from an address, which say nothing of a size
    "ld.global.f32 %f64, [%rd64+8];",
    "ld.global.u8 %rs32, [%rd16+64];",
    "ld.global.nc.s16 %rs{n}, [%rd32+-64];",
    "ld.global.v2.u8 {{%rs16, %rs64}}, [%rd{n}+16];",
    "@%p64 ld.global.f64 %fd8, [%rd16+32];",
    "@!%p2 ld.global.u32 %r{n}, [%rd{n}];",
)
OTHERS = (
    "ld.param.u64 %rd{n}, [kernel_param_{n}];",
    "ld.shared.f32 %f{n}, [%r{n}];",
    "ld.volatile.shared.f32 %f{n}, [%r{n}];",
    "add.f32 %f{n}, %f1, %f2;",
    "st.global.f32 [%rd{n}], %f1;",
    "mad.lo.s32 %r{n}, %r1, %r2, %r3;",
    "cvta.to.global.u64 %rd{n}, %rd1;",
    "",
    "$L__BB0_{n}:",
)


def some_ptx(rng, shape):
    """PTX of a made-up straight kernel; shape: how many different global loads, of which kind the
    first is, how many other lines. With many other lines there are loads that come twice.
    """
    loads, first, others = shape
    lines = [LOADS[(first + k) % len(LOADS)].format(n=k + 1) for k in range(loads)]
    lines += lines[: max(0, others - len(OTHERS) // 2)]
    lines += [OTHERS[k % len(OTHERS)].format(n=k + 20) for k in range(others)]
    rng.shuffle(lines)
    return {"ptx": "\n".join("\t" + line for line in [*lines, "ret;"])}


PTX = Exercise(
    id="profiling.read_ptx",
    title="Read PTX",
    minutes=10,
    kind="function",
    task=(
        "Return how many bytes one thread loads from global memory if it runs each line of this"
        " PTX once. The type is the last part of the instruction: `ld.global.f32` loads 4 bytes,"
        " `.f64` 8, `.u8` one; `.v2` and `.v4` load two or four of them. Other words may stand"
        " before the type, such as `.nc` or `.ca`, and say nothing of a size. A line may begin"
        " with a predicate such as `@%p1`; count it. For a `volatile` pointer it is"
        " `ld.volatile.global.f32`: count it, too. Loads of parameters and from shared memory do"
        " not count. There are labels and empty lines, but no comments."
    ),
    starter="""
def bytes_loaded(ptx):
    total = 0
    for line in ptx.splitlines():
        if "ld.global" in line:
            total += 4  # always?
    return total
""",
    solution=bytes_loaded,
    inputs=some_ptx,
    reference=bytes_loaded,
    shapes=(
        (1, 0, 0),
        (2, 0, 6),
        (1, 4, 3),
        (2, 4, 6),
        (1, 6, 6),
        (9, 0, 6),
        (3, 2, 2),
        (2, 3, 1),
        (0, 0, 7),
        (2, 12, 7),
        (5, 13, 6),
        (6, 0, 9),
    ),
    draws=some_numbers((0, 10), (0, len(LOADS)), (0, len(OTHERS) + 1)).draws,
    hints=(
        (
            '`import re` and `re.search(r"ld\\.(volatile\\.)?global\\S*", line)` finds the whole'
            " instruction, such as `ld.global.nc.v2.f32`."
        ),
        '`instruction.split(".")[-1]` is the type, `f32`. Its digits are bits: divide by 8.',
        "Multiply by 2 if `v2` is among the parts, by 4 if `v4` is.",
    ),
    wrong=(
        (
            "ld(\\.volatile)?\\.global",
            "ld\\.",
            "wrong_value",
            "Parameters and shared memory are counted, too: only `ld.global` goes to global"
            " memory.",
        ),
        (
            ("size *= 2", "pass"),
            ("size *= 4", "pass"),
            "wrong_value",
            "`.v2` and `.v4` load two and four values at once.",
        ),
        (
            "total += size",
            "total += 4",
            "wrong_value",
            "Not every load is four bytes: the type is the last part of the instruction.",
        ),
        ("in ptx.splitlines()", "in set(ptx.splitlines())", "wrong_value"),
        (
            "        match =",
            '        if not line.strip() or ":" in line.split()[0]:\n            break\n'
            "        match =",
            "wrong_value",
        ),
        (
            "if match:",
            'if match and "@" not in line:',
            "wrong_value",
            "A line with a predicate (`@%p1`) is a load like the others.",
        ),
        (
            "(\\.volatile)?",
            "",
            "wrong_value",
            "`ld.volatile.global` loads from global memory like the others.",
        ),
        (
            r'global\S*", line',
            r'global(\.v\d)?\.[a-z]+\d+", line',
            "wrong_value",
            "Between `global` and the type other words may stand, such as `.nc` and `.ca`: these"
            " lines load, too.",
        ),
        (
            "return total",
            "return 8 * total",
            "wrong_value",
            "These are bits; eight of them are a byte.",
        ),
    ),
)


# ---- clean: repair a kernel until the checker is quiet

CLEAN_CU = """
// Each block turns its own 64 elements around: the first becomes the last.
// n is a multiple of nothing: the last block turns only the elements that there are.
__global__ void turn(float* out, const float* a, int n) {
    __shared__ float tile[64];
    int first = blockIdx.x * 64;
    int count = n - first < 64 ? n - first : 64;
    int i = threadIdx.x;
    if (i < count)
        tile[i] = a[first + i];
    __syncthreads();
    if (i < count)
        out[first + i] = tile[count - 1 - i];
}
"""


def turned(out, a, n):
    return np.concatenate([a[k : k + 64][::-1] for k in range(0, len(a), 64)])


def more_and_many_more(shape):
    """Blocks of 64: enough, one more, and so many more that `n - first` fits into no byte."""
    enough, more = cover(a_thread_each(shape), (64, 1, 1))
    many = Launch((enough.grid[0] + 4, 1, 1), enough.block, "four blocks more than needed")
    return [enough, more, many]


CLEAN = Exercise(
    id="profiling.clean",
    title="Until the checker is quiet",
    minutes=15,
    one_block=True,
    kind="cuda_c",
    kernel_name="turn",
    path="build/turn.cu",
    task=(
        "Blocks of 64 threads turn 64 elements around each. This kernel has two of the four kinds"
        " of bugs in it: it leaves its arrays, and it races. Repair it without adding the other"
        " two: shared memory that nobody wrote (think of the last block), and a barrier that some"
        " threads skip."
    ),
    starter="""
%%writefile build/turn.cu
// Each block turns its own 64 elements around: the first becomes the last.
// n is a multiple of nothing: the last block turns only the elements that there are.
__global__ void turn(float* out, const float* a, int n) {
    __shared__ float tile[64];
    int first = blockIdx.x * 64;
    int i = threadIdx.x;
    tile[i] = a[first + i];
    out[first + i] = tile[63 - i];
}
""",
    solution=CLEAN_CU,
    inputs=lambda rng, s: {
        "out": Out(s),
        "a": some_zeros(rng, *s),
        "n": s[0],
    },
    reference=turned,
    shapes=lengths(64, 65, 100, 256, 1, 191),
    large=(66_000,),
    fresh=some_numbers((65, 300)),
    block=(64, 1, 1),
    launches=more_and_many_more,
    extents=a_thread_each,
    race_free=True,
    without=("partial",),
    probe=(255,),
    hints=(
        (
            "Which threads have no element in the last block? Give it a `count`: `n - first < 64 ?"
            " n - first : 64`."
        ),
        "A thread reads what another has written: between the two belongs a `__syncthreads()`.",
        (
            "The barrier must be reached by all 64 threads, so it stands outside every `if`: guard"
            " the load and the store each with `if (i < count)`, and read `tile[count - 1 - i]`."
        ),
    ),
    wrong=(
        ("    if (i < count)\n        out", "    out", "missing_guard"),
        ("tile[count - 1 - i]", "tile[63 - i]", "uninitialized"),
        ("tile[count - 1 - i]", "tile[count - i]", "out_of_bounds"),
        ("    __syncthreads();\n", "", "race"),
        ("tile[count - 1 - i]", "tile[i]", "wrong_value"),
        ("int count", "signed char count", "missing_guard"),
        (
            ("a[first + i];\n    __syncthreads();\n", "a[first + i];\n"),
            ("tile[i] = a[first + i];", "{ tile[i] = a[first + i]; __syncthreads(); }"),
            "barrier",
        ),
    ),
    hypotheses=(
        Hypothesis("wrong_value", "Nothing is turned around: this is a copy.", lambda out, a, n: a),
        Hypothesis(
            "wrong_value",
            "The whole array is turned around, not each block's 64.",
            lambda out, a, n: a[::-1],
        ),
    ),
)

EXERCISES = (TIMER, LIMIT, PTX, CLEAN)

QUIZZES = (
    one_of(
        "profiling.q_first",
        "A training step is too slow. What do you run first?",
        (
            "Nsight Compute, on every kernel",
            (
                "It says everything about a kernel, and nothing about how much of the step that"
                " kernel is."
            ),
        ),
        (
            "A timeline of the whole step: torch.profiler or Nsight Systems",
            (
                "First see where the time goes, and whether it goes to the GPU at all. "
                "Counters of one"
                " kernel come later."
            ),
        ),
        (
            "The kernel that looks slow in the source, rewritten",
            "If it takes 3 % of the step, even an infinitely fast one gains 3 %.",
        ),
        answer="b",
    ),
    one_of(
        "profiling.q_latency",
        (
            "Nsight Compute: memory throughput 4 %, SM throughput 6 %, achieved occupancy 12 %."
            " What limits this kernel?"
        ),
        ("Memory bandwidth", "Then the memory throughput would be near 100 %."),
        ("Arithmetic", "Then the SM throughput would be near 100 %."),
        (
            "Latency: too little is under way",
            (
                "Neither roof is near. Warps wait, and too few others can take over: more "
                "threads, or"
                " more work in each."
            ),
        ),
        answer="c",
    ),
    one_of(
        "profiling.q_utilization",
        "nvidia-smi shows a GPU utilization of 100 %. What do you know?",
        (
            "The GPU's arithmetic units are all busy",
            "A kernel of one thread on one of the SMs also counts as 100 %.",
        ),
        (
            "Some kernel was running all the time, perhaps of a single thread",
            (
                "It is the share of time in which at least one kernel was running, not the "
                "share of the"
                " GPU that it used."
            ),
        ),
        (
            "The memory bandwidth is used up",
            "That number does not look at the bandwidth. Nsight Compute's counters do.",
        ),
        answer="b",
    ),
)
