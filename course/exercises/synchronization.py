"""The exercises of the chapter Synchronization. Kernels with a race are rejected for it, even if it
did no harm.
"""

import numpy as np
from numba import cuda

from course.checking.inputs import (
    a_thread_each,
    arguments_of,
    lengths,
    some_length,
    some_numbers,
    uniform,
    whole,
)
from course.checking.model import (
    Always,
    Demand,
    Exercise,
    Hypothesis,
    InOut,
    Launch,
    Out,
    Speed,
    Wrong,
    ceil_div,
)
from course.checking.quiz import Quiz, one_of

MOST_THREADS = 1024  # of a block

# ---- rotate_left: the missing barrier


@cuda.jit
def rotate_left(a):
    t = cuda.threadIdx.x
    value = a[(t + 1) % a.size]
    cuda.syncthreads()
    if t < a.size:
        a[t] = value


ROTATE_LEFT = Exercise(
    id="synchronization.rotate_left",
    title="The missing barrier",
    minutes=5,
    one_block=True,
    task=(
        "One block moves every element of `a` one place to the left, in place; the first becomes"
        " the last. `a` is float32, and the block has at least as many threads as `a` has"
        " elements: up to 1,024. This kernel has a race: cure it."
    ),
    starter="""
@cuda.jit
def rotate_left(a):
    t = cuda.threadIdx.x
    if t < a.size:
        a[t] = a[(t + 1) % a.size]
""",
    solution=rotate_left,
    inputs=lambda rng, n: {"a": InOut(uniform(rng, *n))},
    reference=lambda a: np.roll(a, -1),
    copies=True,
    shapes=lengths(1, 2, 31, 32, 33, 100, 128),
    fresh=some_numbers((34, 128), few=True),
    large=(MOST_THREADS,),
    launches=lambda n: [Launch((1, 1, 1), (MOST_THREADS if n[0] > 128 else 128, 1, 1))],
    extents=a_thread_each,
    race_free=True,
    hints=(
        (
            "Split the line in two: every thread first reads into a variable of its own, and writes"
            " only afterwards."
        ),
        "Between the reading and the writing all threads must meet: `cuda.syncthreads()`.",
        (
            "*All* threads of the block, those beyond the end of `a` as well: the barrier must not"
            " stand in the `if`."
        ),
    ),
    wrong=(
        ("    cuda.syncthreads()\n", "", "race"),
        (
            "    cuda.syncthreads()\n    if t < a.size:\n",
            "    if t < a.size:\n        cuda.syncthreads()\n",
            "barrier",
        ),
        (
            ("    cuda.syncthreads()\n", ""),
            ("a[t] = value\n", "a[t] = value\n    cuda.syncthreads()\n"),
            "race",
        ),
        ("syncthreads", "syncwarp", "race"),
        ("t < a.size", "True", "missing_guard"),
        ("t + 1", "t - 1 + a.size", "wrong_value"),
    ),
)


# ---- count: an addition that nobody can interrupt


@cuda.jit
def count(counts, values):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(counts, values[i], 1)


BINS = 16


def counted_before(rng, bins):
    """What counters hold: some a little, others nearly as much as an int32 can."""
    return whole(rng, 0, 100, bins) << rng.choice([0, 10, 18, 24], bins).astype(np.int32)


def counted(counts, values):
    """What was counted before, and the values."""
    return counts + np.bincount(values, minlength=BINS)


def in_pairs(rng, shape, bins):
    """Values below bins; of a few blocks' threads each two neighbours have the same one: who adds
    for both must not do so over the edge of a block.
    """
    values = sometimes_equal(rng, shape, bins)
    if 33 < shape[0] < 1000:
        values[1::2] = values[: shape[0] // 2 * 2 : 2]
    return values


COUNT = Exercise(
    id="synchronization.count",
    title="Count",
    minutes=5,
    task=(
        "`values` holds numbers from 0 to 15. Count them: `counts[v]` grows by one for each value"
        " `v`, on top of what it holds already. Many threads meet at the same counter."
    ),
    starter="""
@cuda.jit
def count(counts, values):
    i = cuda.grid(1)
    if i < values.size:
        counts[values[i]] += 1  # change this line
""",
    solution=count,
    inputs=lambda rng, n: {
        "counts": InOut(counted_before(rng, BINS)),
        "values": in_pairs(rng, n, BINS),
    },
    reference=counted,
    large=(66_000,),
    shapes=lengths(1, 2, 32, 64, 97, 200),
    fresh=some_length,
    extents=a_thread_each,
    shared_output=True,
    race_free=True,
    other_block=(33, 1, 1),
    hints=(
        (
            "`counts[v] += 1` is three steps: read, add, write. Between the first and the last,"
            " another thread may do the same."
        ),
        (
            "A barrier is of no help: afterwards they would still all write at once. The three"
            " steps must be one."
        ),
        "`cuda.atomic.add(array, index, value)` does them as one.",
    ),
    wrong=(
        ("cuda.atomic.add(counts, values[i], 1)", "counts[values[i]] += 1", "race"),
        (
            "add(counts, values[i], 1)",
            "exch(counts, values[i], counts[values[i]] + 1)",
            "race",
        ),
        (
            (
                "    if i",
                "    before = counts[values[min(i, values.size - 1)]]\n"
                "    cuda.syncthreads()\n"
                "    if i",
            ),
            ("cuda.atomic.add(counts, values[i], 1)", "counts[values[i]] = before + 1"),
            "race",
        ),
        (
            "        cuda.atomic.add(counts, values[i], 1)",
            "        if i % 2 == 0:\n"
            "            both = i + 1 < values.size and values[i + 1] == values[i]\n"
            "            cuda.atomic.add(counts, values[i], 2 if both else 1)\n"
            "        elif values[i - 1] != values[i] or cuda.threadIdx.x == 0:\n"
            "            cuda.atomic.add(counts, values[i], 1)",
            "fixed_block",
        ),
        ("values[i], 1", "values[i], values[i]", "wrong_value"),
        ("i < values.size", "True", "out_of_bounds"),
        (
            "    if",
            "    if i < counts.size:\n        counts[i] = 0\n    cuda.syncthreads()\n    if",
            "race",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Counter i grows, whatever `values[i]` is: the value says which counter.",
            lambda counts, values: counts + (np.arange(BINS) < values.size),
        ),
    ),
)


# ---- privatized: a histogram in shared memory


@cuda.jit
def privatized(counts, values):
    own = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    own[t] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(own, values[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(counts, t, own[t])


def counted_elsewhere(trace):
    """A reason to reject a kernel that never counts in shared memory."""
    if not any(row.space == "shared" for row in trace.contention):
        return (
            "other_means",
            "No atomic addition goes to shared memory: count in `own` first.",
            None,
        )
    if any(row.lanes > 1 for row in trace.contention if row.space == "global"):
        says = "Lanes of a warp meet at one element of `counts`: count in `own`, then merge."
        return "other_means", says, None


def sometimes_equal(rng, shape, bins):
    """Values below bins; all the same where whole blocks of 64 threads have each a value."""
    values = whole(rng, 0, bins, shape)
    if shape[0] % 64 == 0:
        values[:] = values[0]
    return values


PRIVATIZED = Exercise(
    id="synchronization.privatized",
    title="A histogram of one's own",
    minutes=15,
    one_block=True,
    task=(
        "Count again, now values from 0 to 63, in blocks of 64 threads. Each block counts in 64"
        " counters of its own, in shared memory; at the end its threads share the work of adding"
        " them to `counts`. Shared memory does not start at zero."
    ),
    starter="""
@cuda.jit
def privatized(counts, values):
    own = cuda.shared.array(64, np.int32)
    own[cuda.threadIdx.x] = 0  # 64 threads, 64 counters
    ...  # count in `own`, then merge: who must wait for whom?
""",
    solution=privatized,
    inputs=lambda rng, n: {
        "counts": InOut(counted_before(rng, 64)),
        "values": sometimes_equal(rng, n, 64),
    },
    reference=lambda counts, values: counts + np.bincount(values, minlength=64),
    shapes=lengths(1, 63, 64, 65, 128, 200),
    fresh=some_length,
    large=(300,),
    block=(64, 1, 1),
    extents=a_thread_each,
    shared_output=True,
    race_free=True,
    demand=Demand((200,), counted_elsewhere),
    speed=Speed("4 million equal numbers", 4 << 20),
    hints=(
        "There are as many threads as counters: at the end thread t adds `own[t]` to `counts[t]`.",
        (
            "Nobody may count before all counters are cleared, and nobody may read a counter before"
            " all have counted."
        ),
        (
            "That makes two barriers, both outside of every `if`. Both additions are atomic: in"
            " `own` the threads of the block meet, in `counts` the blocks."
        ),
    ),
    wrong=(
        ("= 0\n    cuda.syncthreads()\n", "= 0\n", "race"),
        ("    cuda.syncthreads()\n    cuda.atomic", "    cuda.atomic", "race"),
        ("cuda.atomic.add(counts, t, own[t])", "counts[t] += own[t]", "race"),
        ("cuda.atomic.add(own, values[i], 1)", "own[values[i]] += 1", "race"),
        ("    own[t] = 0\n    cuda.syncthreads()\n", "", "uninitialized"),
        (
            "    cuda.syncthreads()\n    cuda.atomic",
            "        cuda.syncthreads()\n    cuda.atomic",
            "barrier",
        ),
        Wrong(count, "other_means"),
        (
            "    cuda.atomic.add(counts, t, own[t])",
            "    if t == 0:\n        for v in range(64):\n"
            "            cuda.atomic.add(counts, v, own[v])",
            "one_thread",
        ),
        (
            "    cuda.atomic.add(counts",
            "    if i < values.size:\n        cuda.atomic.add(counts",
            "only_multiples",
        ),
    ),
)


# ---- at_most: compare and swap


@cuda.jit
def at_most(taken, room, wishes):
    i = cuda.grid(1)
    if i < wishes.size:
        shelf = wishes[i]
        seen = cuda.atomic.cas(taken, shelf, 0, 0)
        while seen < room:
            before = cuda.atomic.cas(taken, shelf, seen, seen + 1)
            if before == seen:
                break
            seen = before


@cuda.jit
def at_most_looks_then_adds(taken, room, wishes):
    i = cuda.grid(1)
    if i < wishes.size and taken[wishes[i]] < room:
        cuda.atomic.add(taken, wishes[i], 1)


@cuda.jit
def at_most_plain(taken, room, wishes):
    i = cuda.grid(1)
    if i < wishes.size:
        if taken[wishes[i]] < room:
            taken[wishes[i]] += 1


@cuda.jit
def at_most_add_and_take_back(taken, room, wishes):
    i = cuda.grid(1)
    if i < wishes.size:
        if cuda.atomic.add(taken, wishes[i], 1) > room:
            cuda.atomic.sub(taken, wishes[i], 1)


def shelves(rng, n):
    """Four shelves with little room, with none where few come; or, of odd lengths, one for all."""
    crowded = n[0] % 2 == 1
    room = max(200, n[0]) if crowded else 0 if n[0] < 10 else rng.integers(1, 8)
    return {
        "taken": InOut(whole(rng, 0, min(room, 2) + 1, 4)),
        "room": np.int32(room),
        "wishes": whole(rng, 0, 4, 1).repeat(n[0]) if crowded else whole(rng, 0, 4, n),
    }


def shelves_filled(taken, room, wishes):
    """What comes out if the first who comes to a shelf takes all of it."""
    wished = np.bincount(wishes, minlength=4) > 0
    return np.where(wished, np.maximum(taken, room), taken).astype(taken.dtype)


AT_MOST = Exercise(
    id="synchronization.at_most",
    title="Never more than there is room",
    minutes=10,
    task=(
        "Each thread wants a place on the shelf `wishes[i]`: `taken[shelf]` grows by one, but never"
        " beyond `room`, not even for a moment. `cuda.atomic.cas(array, index, expected, new)`"
        " writes `new` only if it finds `expected`, and returns what it found. No thread gives up"
        " while there is room, however many want the same shelf. Look by an atomic operation, too:"
        " a plain read beside those of others is a race."
    ),
    starter="""
@cuda.jit
def at_most(taken, room, wishes):
    i = cuda.grid(1)
    if i < wishes.size and taken[wishes[i]] < room:  # and what if another thread comes in here?
        cuda.atomic.add(taken, wishes[i], 1)
""",
    solution=at_most,
    inputs=shelves,
    reference=lambda taken, room, wishes: np.minimum(
        taken + np.bincount(wishes, minlength=4), room
    ),
    shapes=lengths(1, 8, 31, 64, 97, 161),
    fresh=some_length,
    large=(301,),
    extents=a_thread_each,
    shared_output=True,
    orders=4,
    probe=(64,),  # little room: who counts up from 0 does not count far
    always=Always(
        lambda value, room, wishes: value <= room,
        "A shelf held more than `room` for a moment: whoever looked then saw too many. Change it"
        " only if it is still what you saw.",
    ),
    other_block=(160, 1, 1),
    effort=8,
    traffic=8,
    hints=(
        (
            "Remember what you saw, and change it only if it is still that: `before ="
            " cuda.atomic.cas(taken, shelf, seen, seen + 1)`."
        ),
        (
            "If `before == seen`, the place is yours. If not, somebody was faster; `before` is what"
            " you see now."
        ),
        "Try again `while seen < room`, each time with the new `seen`.",
    ),
    wrong=(
        Wrong(at_most_looks_then_adds, "race"),
        Wrong(at_most_plain, "race"),
        (
            ("while", "if"),
            ("break", "return"),
            ("cuda.atomic.cas(taken, shelf, 0, 0)", "taken[shelf]"),
            "race",
        ),
        ("seen < room", "seen <= room", "wrong_value"),
        ("seen < room", "seen < room or seen == 0", "wrong_value"),
        Wrong(at_most_add_and_take_back, "wrong_value"),
        ("                break\n", "                pass\n", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "A thread that has its place goes on and takes all that are left: leave the loop when"
            " `before == seen`.",
            shelves_filled,
        ),
    ),
)


# ---- warp_sum: shuffles and their mask

WARP_SUM_CU = """
// sums[w] is the sum of the 32 values of a that warp w looks at (fewer at the end of a).
__global__ void warp_sum(int* sums, const int* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? a[i] : 0;
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x % 32 == 0 && i < n)
        sums[i / 32] = value;
}
"""
SHUFFLE = "value += __shfl_down_sync(0xffffffff, value, step);"
SHUFFLE_LOOP = f"""for (int step = 16; step > 0; step /= 2)
        {SHUFFLE}"""
ADD_AT_ONCE = "value = __reduce_add_sync(0xffffffff, value);"


WARP_SUM = Exercise(
    id="synchronization.warp_sum",
    title="A sum without shared memory, in CUDA C",
    minutes=10,
    kind="cuda_c",
    kernel_name="warp_sum",
    path="build/warp_sum.cu",
    task=(
        "Each warp adds its 32 values of `a` with `__shfl_down_sync`, and its lane 0 writes the sum"
        " to `sums[w]`, where w counts the warps through the grid. `n` need not be a multiple of"
        " 32: values beyond the end count as 0, and a warp without any value has no place in"
        " `sums`. No shared memory, no atomics."
    ),
    starter="""
%%writefile build/warp_sum.cu
// sums[w] is the sum of the 32 values of a that warp w looks at (fewer at the end of a).
__global__ void warp_sum(int* sums, const int* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? a[i] : 0;
    // your code: five shuffles in a loop, then lane 0 writes
}
""",
    solution=WARP_SUM_CU,
    inputs=lambda rng, n: {
        "sums": Out((ceil_div(n[0], 32),), np.int32),
        "a": whole(rng, -(1 << 25), 1 << 25, n),  # a float cannot hold every sum
        "n": n[0],
    },
    reference=lambda sums, a, n: np.add.reduceat(a, np.arange(0, n, 32)),
    shapes=lengths(1, 31, 32, 33, 64, 100, 200, 1100),
    large=(66_000,),
    fresh=some_length,
    block=(64, 1, 1),
    elements=1,
    extents=a_thread_each,
    race_free=True,
    other_block=(96, 1, 1),
    needs=("shuffles",),
    without=("shared", "atomics"),
    hints=(
        (
            "`__shfl_down_sync(mask, value, step)` gives lane k the `value` of lane k + step. With"
            " steps of 16, 8, 4, 2 and 1 lane 0 ends up with the sum of all."
        ),
        (
            "All 32 lanes take part, each time, so the mask is `0xffffffff`, and no lane may return"
            " before or step around the shuffle."
        ),
        (
            "Lane 0 is the thread with `threadIdx.x % 32 == 0`, and its warp is `i / 32`. Has it a"
            " value at all?"
        ),
    ),
    wrong=(
        ("0xffffffff", "0x0000ffff", "warp_mask"),
        ("0xffffffff", "__activemask()", "warp_mask"),
        (SHUFFLE, f"if (threadIdx.x % 32 < step) {SHUFFLE}", "warp_mask"),
        (SHUFFLE, f"if (i < n) {SHUFFLE}", "warp_mask"),
        (SHUFFLE_LOOP, ADD_AT_ONCE, "other_means"),
        (
            "    int value = i < n ? a[i] : 0;",
            "    if (i >= n) return;\n    int value = a[i];",
            "warp_mask",
        ),
        ("step = 16", "step = 8", "wrong_value"),
        ("threadIdx.x % 32 == 0 && ", "", "race"),
        (" && i < n", "", "missing_guard"),
    ),
)


# ---- last_block: a fence between blocks

LAST_BLOCK_CU = """
// work[0]: the sum of all n values; work[1]: how many blocks have stored theirs;
// work[2 + b]: the sum of block b.
__global__ void last_block(unsigned* work, const unsigned* a, int n) {
    unsigned sum = 0;
    for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32)
        sum += a[i];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);

    if (threadIdx.x == 0) {
        work[2 + blockIdx.x] = sum;
        __threadfence();
        if (atomicInc(&work[1], gridDim.x - 1) == gridDim.x - 1) {
            __threadfence();
            unsigned all = 0;
            for (int b = 0; b < gridDim.x; ++b)
                all += work[2 + b];
            work[0] = all;
        }
    }
}
"""
ARRIVE = "atomicInc(&work[1], gridDim.x - 1)"
FENCE = """        __threadfence();
        if"""
LAST = f"if ({ARRIVE} == gridDim.x - 1)"
FENCE_BEHIND = f"""        unsigned before = {ARRIVE};
        __threadfence();
        if (before"""


def last_block_inputs(rng, shape):
    """shape: (values, blocks). The total and the sums start as garbage, the counter at 0."""
    n, blocks = shape
    work = rng.integers(1 << 20, 1 << 30, 2 + blocks, dtype=np.uint32)
    work[1] = 0
    beyond = (1 << 32) // n  # as large as the total lets them be
    return {"work": InOut(work), "a": rng.integers(0, beyond, n, dtype=np.uint32), "n": n}


def last_block_results(work, a, n):
    """The total, a counter that is 0 again, and each block's sum."""
    return results_if_dealt(np.arange(n) // 32 % (work.size - 2), work, a)


def results_if_dealt(block_of, work, a):
    """The same, where value i is of block `block_of[i]`."""
    sums = np.bincount(block_of, weights=a, minlength=work.size - 2)
    return np.concatenate([[a.sum()], [0], sums])


def last_block_from_the_end(work, a, n):
    return results_if_dealt(np.arange(n)[::-1] // 32 % (work.size - 2), work, a)


def last_block_in_pieces(work, a, n):
    return results_if_dealt(np.arange(n) // ceil_div(n, work.size - 2), work, a)


def last_block_adds_to_garbage(work, a, n):
    results = last_block_results(work, a, n)
    results[0] = (results[0] + int(work[0])) % 2**32
    return results


OTHERS_SUM = (
    "The total is right, but a block's sum is of other values than those that the starter deals it."
)
LAST_BLOCK = Exercise(
    id="synchronization.last_block",
    title="The last one adds up, in CUDA C",
    minutes=15,
    one_block=True,
    kind="cuda_c",
    kernel_name="last_block",
    path="build/last_block.cu",
    task=(
        "Add all n values in one launch. Each block stores the sum of those that the starter deals"
        " it, 32 at a time, in `work[2 + b]`, and the block that comes last adds those up into"
        " `work[0]`. `atomicInc(&work[1], gridDim.x - 1)` returns how many blocks came before, and"
        " sets the counter back to 0 after the last. No atomic additions."
    ),
    starter="""
%%writefile build/last_block.cu
// work[0]: the sum of all n values; work[1]: how many blocks have stored theirs;
// work[2 + b]: the sum of block b.
__global__ void last_block(unsigned* work, const unsigned* a, int n) {
    unsigned sum = 0;
    for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32)
        sum += a[i];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);

    if (threadIdx.x == 0) {
        // your code: store, make it visible, count yourself; the last block adds up
    }
}
""",
    solution=LAST_BLOCK_CU,
    inputs=last_block_inputs,
    reference=last_block_results,
    shapes=((1, 1), (33, 1), (64, 3), (100, 2), (500, 8), (20_000, 2), (5000, 140)),
    large=(70_000, 300),
    fresh=some_numbers((100, 400), (2, 9)),
    launches=lambda s: [Launch((s[1], 1, 1), (32, 1, 1))],
    extents=lambda s: (32 * s[1], 1, 1),
    shared_output=True,
    race_free=True,
    without=("sums",),
    effort=3,  # a tree in shared memory will do as well as shuffles
    hints=(
        (
            "`work[2 + blockIdx.x] = sum;` comes first. Another block must not see your count"
            " before it can see your sum: `__threadfence()` stands between the two."
        ),
        (
            "Who gets `gridDim.x - 1` back from `atomicInc` is the last. Compare the value that"
            " *your* call returned."
        ),
        (
            "The last block fences once more, so that it reads nothing old, and adds up `gridDim.x`"
            " sums."
        ),
    ),
    wrong=(
        (FENCE, "        if", "race"),
        (FENCE + " (" + ARRIVE, FENCE_BEHIND, "race"),
        ("            __threadfence();\n", "", "race"),
        (LAST, "if (++work[1] == gridDim.x)", "race"),
        (LAST, "if (blockIdx.x == gridDim.x - 1)", "race"),
        (ARRIVE, "atomicAdd(&work[1], 1)", "wrong_value"),
        ("0xffffffff", "__activemask()", "warp_mask"),
        (
            "(&work[1], gridDim.x - 1)",
            "(&work[1], gridDim.x)",
            "wrong_value",
        ),
        ("work[0] = all", "work[0] += all", "reads_output"),
        (
            ("unsigned all = 0", "work[0] = 0"),
            ("all += work[2 + b]", "atomicAdd(work, work[2 + b])"),
            ("            work[0] = all;\n", ""),
            "other_means",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "reads_output",
            "`work[0]` holds anything before the launch: the sums are added to that here.",
            last_block_adds_to_garbage,
        ),
        Hypothesis("wrong_value", OTHERS_SUM, last_block_from_the_end),
        Hypothesis("wrong_value", OTHERS_SUM, last_block_in_pieces),
    ),
)

# ---- overlap: when is the last chunk back


def finished(chunks, copy_in, compute, copy_out):
    stages = copy_in, compute, copy_out
    return sum(stages) + (chunks - 1) * max(stages)


def finished_by_simulation(chunks, copy_in, compute, copy_out):
    """The engines, chunk by chunk: each begins when it is free and the chunk is there."""
    free = [0, 0, 0]
    for _ in range(chunks):
        now = 0
        for engine, takes in enumerate((copy_in, compute, copy_out)):
            now = free[engine] = max(now, free[engine]) + takes
    return now


CHUNKS_ARE_GIVEN = "The three times are those of one chunk already: do not divide them."

OVERLAP = Exercise(
    id="synchronization.overlap",
    title="When is the last chunk back?",
    minutes=8,
    kind="function",
    task=(
        "A job is cut into `chunks` equal chunks, each in a stream of its own. For each chunk the"
        " three engines take `copy_in`, `compute` and `copy_out` microseconds. An engine does one"
        " chunk at a time, in order; the three work at the same time. Return when the last chunk"
        " is back, in microseconds."
    ),
    starter="""
def finished(chunks, copy_in, compute, copy_out):
    # one chunk goes through all three; what does each further chunk add?
    ...
""",
    solution=finished,
    inputs=arguments_of(finished),
    reference=finished_by_simulation,
    shapes=(
        (1, 10, 8, 10),
        (4, 10, 8, 10),
        (2, 3, 20, 4),
        (8, 5, 6, 30),
        (3, 40, 1, 2),
        (100, 7, 7, 7),
    ),
    draws=some_numbers((1, 61), (1, 51), (1, 51), (1, 51)).draws,
    hints=(
        "Draw it for two chunks, as the timeline of the section does. Which engine is never idle?",
        "The first chunk goes through all three stages. From then on the slowest engine decides.",
        "Each further chunk adds the time of the slowest stage: `max(copy_in, compute, copy_out)`.",
    ),
    wrong=(
        (
            "sum(stages) + (chunks - 1) * max(stages)",
            "chunks * sum(stages)",
            "wrong_value",
            "This is one stream: nothing overlaps.",
        ),
        (
            "sum(stages) + (chunks - 1) * max(stages)",
            "chunks * max(stages)",
            "wrong_value",
            "Filling and emptying the three engines is missing: one chunk alone takes all stages.",
        ),
        (
            "max(stages)",
            "copy_out",
            "wrong_value",
            "The slowest engine decides, and that need not be the last one.",
        ),
        (
            "(chunks - 1)",
            "chunks",
            "wrong_value",
            "The first chunk is counted in the sum already.",
        ),
        (
            "sum(stages) + (chunks - 1) * max(stages)",
            "(sum(stages) + (chunks - 1) * max(stages)) / chunks",
            "wrong_value",
            CHUNKS_ARE_GIVEN,
        ),
        (
            "sum(stages) + (chunks - 1) * max(stages)",
            "(sum(stages) + (chunks - 1) * max(stages)) // chunks",
            "wrong_value",
            CHUNKS_ARE_GIVEN,
        ),
        (
            "sum(stages) + (chunks - 1) * max(stages)",
            "sum(stages) // chunks + (chunks - 1) * (max(stages) // chunks)",
            "wrong_value",
            CHUNKS_ARE_GIVEN,
        ),
    ),
)

EXERCISES = (ROTATE_LEFT, COUNT, PRIVATIZED, AT_MOST, WARP_SUM, LAST_BLOCK, OVERLAP)

QUIZZES = (
    one_of(
        "synchronization.q_branch",
        (
            "`if i < n: cuda.syncthreads()`, with blocks of 256 threads and n = 1,000. What is"
            " wrong?"
        ),
        (
            "Nothing: threads without an element have nothing to wait for",
            "The barrier counts threads, not elements: it waits for all that have not ended.",
        ),
        (
            "In the last block some threads never reach the barrier",
            (
                "Block 3 has 232 threads with an element and 24 without. The barrier waits "
                "for all that"
                " have not ended."
            ),
        ),
        (
            "Every block needs a barrier of its own",
            (
                "`syncthreads` is one for each block already; blocks never wait for each other"
                " there."
            ),
        ),
        answer="b",
    ),
    one_of(
        "synchronization.q_atomic",
        "1,000 threads run `x[0] += 1` without atomics; x[0] was 0. Which results are possible?",
        (
            "Only 1,000",
            (
                "Two threads may read the same value, and then both write the same sum: one"
                " addition is lost."
            ),
        ),
        (
            "Only 1",
            (
                "That would take all threads reading before the first writes. It may happen, but"
                " need not."
            ),
        ),
        (
            "Anything from 1 to 1,000",
            (
                "At least one addition survives; any other may be overwritten by a thread that read"
                " before it. (So it is on GPUs. C++ promises not even that: a race is undefined.)"
            ),
        ),
        answer="c",
    ),
    Quiz(
        id="synchronization.q_mask",
        question=(
            "How many times does `value += __shfl_down_sync(...)` run in each lane to add up 32"
            " values?"
        ),
        answer=5,
        unit="times",
        explain_right="Steps of 16, 8, 4, 2 and 1: each halves the number of partial sums.",
        explain={
            31: "That would be one value after the other. Each shuffle moves 32 values at once.",
            32: (
                "Each shuffle moves 32 values at once, and halves the number of sums that are left."
            ),
            None: "32 sums become 16, then 8, and so on: how many halvings until there is one?",
        },
    ),
    one_of(
        "synchronization.q_default",
        (
            "Kernel A runs in stream 1, kernel B in the legacy default stream, kernel C in stream"
            " 2. Can A and C overlap?"
        ),
        (
            "Yes, they are in different streams",
            "True without B. The legacy default stream stands between them like a wall.",
        ),
        (
            "No: B waits for A, and C waits for B",
            (
                "The legacy default stream waits for all work before it in blocking "
                "streams, and work"
                " after it waits for it. Streams made with cudaStreamNonBlocking, or a per-thread"
                " default stream, do not do this."
            ),
        ),
        (
            "Only if they use different memory",
            "The GPU does not look at what the kernels use: only streams and events order them.",
        ),
        answer="b",
    ),
    one_of(
        "synchronization.q_float",
        "A float32 sum with atomicAdd differs in its last digits from run to run. Why?",
        (
            "Some additions get lost",
            (
                "Then whole values would be missing, not last digits. Atomic additions are never"
                " lost."
            ),
        ),
        (
            "The order differs, and rounding depends on it",
            (
                "Each addition rounds. (a + b) + c and a + (b + c) may round differently, "
                "so the order"
                " shows."
            ),
        ),
        (
            "atomicAdd on floats is less exact than +",
            "It rounds like any addition. Only the order of the additions is not fixed.",
        ),
        answer="b",
    ),
)
