"""The exercises of the chapter Reductions and scans."""

import numpy as np
from numba import cuda

from course.checking.inputs import (
    a_thread_a_row,
    lengths,
    some_numbers,
    whole,
)
from course.checking.model import Demand, Exercise, Hypothesis, InOut, Launch, Out, Speed, Wrong
from course.checking.quiz import Quiz, one_of
from utils.tracer import ACCESSES, ATOMIC, FENCE, READ, WRITE

# ---- any_block: a tree for any number of threads


@cuda.jit
def block_sum(total, a):
    tree = cuda.shared.array(1024, np.int32)
    t = cuda.threadIdx.x
    mine = 0
    for i in range(t, a.size, cuda.blockDim.x):
        mine += a[i]
    tree[t] = mine
    left = cuda.blockDim.x
    while left > 1:
        cuda.syncthreads()
        half = (left + 1) // 2
        if t + half < left:
            tree[t] += tree[t + half]
        left = half
    if t == 0:
        total[0] = tree[0]


def one_block(shape):
    """`Exercise.launches` for shapes of (elements, threads)."""
    return [Launch((1, 1, 1), (shape[1], 1, 1))]


def summands(rng, count):
    """Numbers whose sums are beyond what a float counts, and not beyond an int32."""
    low = -600_000 if count > 1500 else -200_000
    high = 600_000 if count > 1500 else 1_200_000
    return whole(rng, low, high, count)


ANY_BLOCK = Exercise(
    id="reductions.any_block",
    title="Any block size",
    minutes=10,
    task=(
        "One block adds up all of `a`, whatever its size. Each thread first adds up a few elements;"
        " then the threads add up these sums in shared memory, in steps, so that no thread adds up"
        " all of them. With 64 threads this kernel is right, with 48 it is wrong. Make it right for"
        " *any* number of threads up to 1,024, without atomics and without shuffles."
    ),
    starter="""
@cuda.jit
def block_sum(total, a):
    tree = cuda.shared.array(1024, np.int32)
    t = cuda.threadIdx.x
    mine = 0
    for i in range(t, a.size, cuda.blockDim.x):
        mine += a[i]
    tree[t] = mine
    step = cuda.blockDim.x // 2
    while step > 0:
        cuda.syncthreads()
        if t < step:
            tree[t] += tree[t + step]
        step //= 2
    if t == 0:
        total[0] = tree[0]
""",
    solution=block_sum,
    inputs=lambda rng, shape: {
        "total": Out((1,), np.int32),
        "a": summands(rng, shape[0]),
    },
    reference=lambda total, a: np.array([a.sum()], np.int32),
    shapes=(
        (64, 64),
        (10, 2),
        (0, 35),
        (1, 1),
        (10, 3),
        (31, 31),
        (100, 33),
        (500, 48),
        (7, 100),
        (1500, 1024),
    ),
    fresh=some_numbers((1, 300), (34, 128)),
    large=(66_000, 33),
    launches=one_block,
    extents=lambda shape: (shape[1], 1, 1),
    is_square=lambda shape: False,
    race_free=True,
    needs=("shared",),
    without=("atomics", "shuffles"),
    probe=(300, 256),
    speed=Speed("65,536 numbers", 1 << 16, lambda count: (count, 1024)),
    hints=(
        "With 48 threads the steps are 24, 12, 6, 3 and then 3 // 2 = 1. Which thread adds the"
        " third of the last three sums?",
        (
            "Keep count of how many numbers are *left*. In each round half of them, rounded up,"
            " stay, and each of the others is added to one that stays."
        ),
        (
            "`half = (left + 1) // 2`; thread t adds `tree[t + half]` if there is one, that is if"
            " `t + half < left`; then `left = half`."
        ),
    ),
    wrong=(
        ("if t == 0:", "if t == 0 and a.size > 0:", "unwritten"),
        ("shared.array(1024", "shared.array(1023", "out_of_bounds"),
        ("(left + 1) // 2", "left // 2", "race"),
        ("t + half < left", "t < half", "uninitialized"),
        ("        cuda.syncthreads()\n", "", "race"),
        ("syncthreads", "syncwarp", "race"),
        (
            "for i in range(t, a.size, cuda.blockDim.x):",
            "for i in range(t, t+1):",
            "out_of_bounds",
        ),
        (
            "        cuda.syncthreads()\n        half = (left + 1) // 2\n",
            "        half = (left + 1) // 2\n        if t < half:\n"
            "            cuda.syncthreads()\n",
            "barrier",
        ),
    ),
)


# ---- scan: Hillis and Steele in one array


@cuda.jit
def scan(a):
    row = cuda.shared.array(128, np.int32)
    t = cuda.threadIdx.x
    row[t] = a[t] if t < a.size else 0
    cuda.syncthreads()
    step = 1
    while step < 128:
        left = row[t - step] if t >= step else 0
        cuda.syncthreads()
        row[t] += left
        cuda.syncthreads()
        step *= 2
    if t < a.size:
        a[t] = row[t]


@cuda.jit
def scan_by_shuffles(a):
    sums = cuda.shared.array(4, np.int32)
    t = cuda.threadIdx.x
    warp, lane = t // 32, t % 32
    total = a[t] if t < a.size else 0
    step = 1
    while step < 32:
        left = cuda.shfl_up_sync(0xFFFFFFFF, total, step)
        total += left if lane >= step else 0
        step *= 2
    if lane == 31:
        sums[warp] = total
    cuda.syncthreads()
    for before in range(warp):
        total += sums[before]
    if t < a.size:
        a[t] = total


def two_rows(trace):
    """A reason to reject a kernel with more than one row of shared memory."""
    rows = {m.root: int(np.prod(m.shape)) for m in trace.events.memories if m.space == "shared"}
    if sum(rows.values()) > 128 * trace.blocks:
        return "other_means", "Keep the one row of 128: this kernel uses more shared memory.", None


def scan_by_rounds(a, first=0, last=64, kept=1):
    """What comes out of Hillis and Steele's scan of 128 places with a mistake.

    first: how many threads from `step` on do not add. last: the last step. kept: how often a thread
    counts the sum that it had.
    """
    row = np.zeros(128, np.int64)
    row[: a.size] = a
    step = 1
    while step <= last:
        left = np.zeros_like(row)
        left[step + first :] = row[first : 128 - step]
        row = kept * row + left
        step *= 2
    return row[: a.size].astype(np.int32)


SCAN = Exercise(
    id="reductions.scan",
    title="Repair a scan",
    minutes=5,
    one_block=True,
    task=(
        "One block of 128 threads replaces `a` (up to 128 elements) by its running sums. This"
        " kernel does it in the way of Hillis and Steele, but in *one* row of shared memory instead"
        " of two, and has races. Cure them, and keep the one row. Do not use shuffles."
    ),
    starter="""
@cuda.jit
def scan(a):
    row = cuda.shared.array(128, np.int32)
    t = cuda.threadIdx.x
    row[t] = a[t] if t < a.size else 0
    step = 1
    while step < 128:
        cuda.syncthreads()
        if t >= step:
            row[t] += row[t - step]
        step *= 2
    if t < a.size:
        a[t] = row[t]
""",
    solution=scan,
    inputs=lambda rng, n: {"a": InOut(whole(rng, -(1 << 20), 1 << 23, n))},
    reference=lambda a: np.cumsum(a, dtype=np.int32),
    shapes=lengths(1, 2, 31, 32, 33, 100, 128),
    fresh=some_numbers((34, 128), few=True),
    launches=lambda n: [Launch((1, 1, 1), (128, 1, 1))],
    extents=lambda n: (128, 1, 1),
    race_free=True,
    demand=Demand((128,), two_rows),
    without=("shuffles",),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "In each round thread `step` adds nothing, although element 0 is `step` places to its"
            " left: `t >= step`.",
            lambda a: scan_by_rounds(a, first=1),
        ),
        Hypothesis(
            "wrong_value",
            "Each element holds the sum of 64 elements at most: the last step is 64.",
            lambda a: scan_by_rounds(a, last=32),
        ),
        Hypothesis(
            "wrong_value",
            "A thread replaces its sum by what it read, and must add it instead.",
            lambda a: scan_by_rounds(a, kept=0),
        ),
    ),
    hints=(
        "While thread 5 reads `row[4]`, thread 4 may already have written its new sum there.",
        "Split the addition: first all threads read what they need into a variable, then all"
        " write.",
        "It takes two barriers per round: one between reading and writing, one before the next"
        " round reads.",
    ),
    wrong=(
        ("cuda.syncthreads()\n        row[t]", "row[t]", "race"),
        ("cuda.syncthreads()\n        step *= 2", "step *= 2", "race"),
        ("else 0\n    cuda.syncthreads()\n", "else 0\n", "race"),
        ("t >= step else 0", "t > step else 0", "wrong_value"),
        ("step < 128", "step < 64", "wrong_value"),
        ("row[t] += left", "row[t] = left", "wrong_value"),
        Wrong(scan_by_shuffles, "other_means"),
        (
            "        left = row[t - step] if t >= step else 0\n        cuda.syncthreads()\n"
            "        row[t] += left\n",
            "        if t >= step:\n            left = row[t - step]\n"
            "            cuda.syncthreads()\n            row[t] += left\n",
            "barrier",
        ),
    ),
)


# ---- look_back: a tile's prefix from what the tiles before it have told

FLAG, SUM, PREFIX, DRAWN = 0, 1, 2, 3  # rows of `tiles`


@cuda.jit
def look_back(tiles, sums):
    FLAG, SUM, PREFIX, DRAWN = 0, 1, 2, 3  # rows of `tiles`
    tile = cuda.atomic.add(tiles, (DRAWN, 0), 1)
    own = sums[tile]
    tiles[SUM, tile] = own
    cuda.threadfence()
    cuda.atomic.exch(tiles, (FLAG, tile), 1)

    before = 0
    t = tile - 1
    while t >= 0:
        flag = cuda.atomic.add(tiles, (FLAG, t), 0)
        while flag == 0:
            flag = cuda.atomic.add(tiles, (FLAG, t), 0)
        cuda.threadfence()
        if flag == 2:
            before += tiles[PREFIX, t]
            break
        before += tiles[SUM, t]
        t -= 1

    tiles[PREFIX, tile] = before + own
    cuda.threadfence()
    if tile % 4 == 0:
        cuda.atomic.exch(tiles, (FLAG, tile), 2)


UNTOLD = 1 << 20  # numbers that stand where nothing was published are far from all sums


def tiles_so_far(rng, shape):
    """shape: (tiles of the launch, tiles of other blocks). The others have told sum or prefix.

    What they have not told is some number, and so are their entries in `sums`.
    """
    count, others = shape
    total = count + others
    sums = whole(rng, -99, 40_000, total)
    tiles = whole(rng, UNTOLD, 2 * UNTOLD, (4, total))
    tiles[FLAG] = 0
    tiles[DRAWN] = 0
    tiles[DRAWN, 0] = others
    tells_prefix = rng.random(others) < 0.3
    tells_prefix[:1] = True
    tells_prefix[others // 2 + 1 :] = False  # so that there is something to add up
    tiles[FLAG, :others] = np.where(tells_prefix, 2, 1)
    prefixes = np.cumsum(sums[:others], dtype=np.int32)
    tiles[SUM, :others] = np.where(tells_prefix, tiles[SUM, :others], sums[:others])
    tiles[PREFIX, :others] = np.where(tells_prefix, prefixes, tiles[PREFIX, :others])
    sums[:others] = UNTOLD
    return {"tiles": InOut(tiles), "sums": sums}


def all_told(tiles, sums):
    """All tiles once the launch is over."""
    tiles = tiles.copy()
    others = int(tiles[DRAWN, 0])
    before = 0
    for t in range(tiles.shape[1]):
        if t >= others:
            tiles[SUM, t] = sums[t]
            tiles[PREFIX, t] = before + sums[t]
            tiles[FLAG, t] = 1 if t % 4 else 2
        before = tiles[PREFIX, t] if tiles[FLAG, t] == 2 else before + tiles[SUM, t]
    tiles[DRAWN, 0] = tiles.shape[1]
    return tiles


def without_a_stop(tiles, sums):
    """What comes out if looking back goes on behind a prefix."""
    return _told_by(tiles, sums, lambda row, t, rest: row[PREFIX, t] + rest)


def sums_for_prefixes(tiles, sums):
    """What comes out if the sum is taken where a prefix was told."""
    return _told_by(tiles, sums, lambda row, t, rest: row[SUM, t])


def _told_by(tiles, sums, at_prefix):
    """All tiles if each counts, where another told its prefix, what `at_prefix` gives for it.

    Blocks run one after the other.
    """
    tiles = tiles.copy()
    before = 0
    for t in range(tiles.shape[1]):
        if tiles[FLAG, t] == 0:
            tiles[FLAG, t] = 1 if t % 4 else 2
            tiles[SUM, t], tiles[PREFIX, t] = sums[t], before + sums[t]
        told = tiles[FLAG, t] == 2
        before = at_prefix(tiles, t, before) if told else before + tiles[SUM, t]
    tiles[DRAWN, 0] = tiles.shape[1]
    return tiles


def without_tile_0(tiles, sums):
    """What comes out if looking back ends before tile 0."""
    return _told_by(tiles, sums, lambda row, t, rest: row[PREFIX, t] if t else 0)


def _published(tiles, sums, prefixes):
    """All tiles if those of the launch publish these prefixes, given for all tiles."""
    tiles = tiles.copy()
    mine = np.arange(int(tiles[DRAWN, 0]), tiles.shape[1])
    tiles[FLAG, mine] = np.where(mine % 4, 1, 2)
    tiles[SUM, mine], tiles[PREFIX, mine] = sums[mine], prefixes[mine]
    tiles[DRAWN, 0] = tiles.shape[1]
    return tiles


def nothing_before(tiles, sums):
    """What comes out if nothing of the tiles before is added."""
    return _published(tiles, sums, sums)


def sums_throughout(tiles, sums):
    """What comes out if each tile's sum is added, whatever its flag says."""
    others = int(tiles[DRAWN, 0])
    return _published(tiles, sums, np.cumsum([*tiles[SUM, :others], *sums[others:]]))


def reads_of_others(trace):
    """A reason to reject a kernel whose blocks read one another's entries of `sums`."""
    events = trace.events
    readers = {}
    for i in events.accesses("global"):
        if events.memories[events.memory[i]].name == "sums":
            readers.setdefault(int(events.offset[i]), set()).add(int(events.block[i]))
    if any(len(blocks) > 1 for blocks in readers.values()):
        says = "A tile may read its own entry of `sums` alone; about others it learns from `tiles`."
        return "other_means", says, None
    return out_of_order(events)


READ_TOO_EARLY = (
    "What a flag announces is read here with no `cuda.threadfence()` after the flag: it may be"
    " older than the flag, and hold what was there before."
)
TOLD_TOO_EARLY = (
    "A flag is set here with no `cuda.threadfence()` after what it announces: another block may see"
    " the flag first. A fence of the block alone is none: other blocks read."
)


def out_of_order(events):
    """A reason to reject a kernel with no fence between a flag and what it announces."""
    looked = set()  # threads that have read a flag, and have not come to a fence since
    told = set()  # (thread, tile) of what was stored, with no fence since
    columns = events.kind, events.thread, events.site, events.memory, events.offset
    for kind, thread, site, memory, offset in zip(*columns, strict=True):
        if kind == FENCE and "threadfence_block" not in events.sites[site].code:
            looked.discard(thread)
            told = {one for one in told if one[0] != thread}
        place = events.memories[memory].index(offset)
        if kind not in ACCESSES or events.memories[memory].name != "tiles" or len(place or ()) != 2:
            continue
        row, tile = place
        if kind == WRITE:
            told.add((thread, tile))
        elif kind == READ and thread in looked:
            return "race", READ_TOO_EARLY, None
        elif kind == ATOMIC and row == FLAG:
            if (thread, tile) in told:
                return "race", TOLD_TOO_EARLY, None
            looked.add(thread)
    return None


LOOK_BACK = Exercise(
    id="reductions.look_back",
    title="Look back",
    minutes=15,
    one_block=True,
    task=(
        "Each block is one thread and has one tile. `tiles[FLAG, t]` says what tile t has"
        " published: 0 nothing yet; 1 its sum, in `tiles[SUM, t]`; 2 its prefix, the sum of all"
        " tiles up to and including itself, in `tiles[PREFIX, t]`. (Some tiles are done before your"
        " launch begins. Of those with a prefix only the prefix counts: their `tiles[SUM, t]` and"
        " `sums[t]` may hold anything.) The starter publishes the sum at once, and every fourth"
        " tile its prefix at the end. In between, find the sum of all tiles before yours: go back"
        " tile by tile, wait where nothing is published, add sums, and stop at the first prefix."
        " `cuda.atomic.add(tiles, (FLAG, t), 0)` reads a flag; a `cuda.threadfence()` must follow"
        " before you read what the flag announces."
    ),
    starter="""
@cuda.jit
def look_back(tiles, sums):
    FLAG, SUM, PREFIX, DRAWN = 0, 1, 2, 3  # rows of `tiles`
    tile = cuda.atomic.add(tiles, (DRAWN, 0), 1)
    own = sums[tile]
    tiles[SUM, tile] = own
    cuda.threadfence()  # whoever sees the flag sees the sum
    cuda.atomic.exch(tiles, (FLAG, tile), 1)

    before = 0  # your code: the sum of all tiles before mine

    tiles[PREFIX, tile] = before + own
    cuda.threadfence()
    if tile % 4 == 0:  # so that the others have to look back
        cuda.atomic.exch(tiles, (FLAG, tile), 2)
""",
    solution=look_back,
    inputs=tiles_so_far,
    reference=all_told,
    shapes=((3, 4), (1, 0), (1, 1), (2, 0), (5, 0), (4, 9), (12, 3), (6, 40), (2, 100)),
    fresh=some_numbers((1, 12), (1, 50)),
    large=((64, 200), (1, 66_000)),
    launches=lambda shape: [Launch((shape[0], 1, 1), (1, 1, 1))],
    extents=lambda shape: (shape[0], 1, 1),
    is_square=lambda shape: False,
    shared_output=True,
    race_free=True,
    effort=4,  # who waits asks often
    traffic=20,
    demand=Demand((6, 3), reads_of_others),
    hints=(
        "You need one loop, from `t = tile - 1` down to 0. Inside it, read the flag, and wait while"
        " it is 0.",
        (
            "Once the flag is not 0, you need a `cuda.threadfence()`: what you read after it is not"
            " older than the flag. Then add `tiles[PREFIX, t]` and stop, or `tiles[SUM, t]` and go"
            " on."
        ),
        (
            "`flag = cuda.atomic.add(tiles, (FLAG, t), 0)`, then `while flag == 0:` with the same"
            " line, then the fence, then `if flag == 2:` with `break`, else the sum and `t -= 1`."
        ),
    ),
    wrong=(
        (
            "    cuda.threadfence()\n    cuda.atomic.exch(tiles, (FLAG, tile), 1)",
            "    cuda.atomic.exch(tiles, (FLAG, tile), 1)",
            "race",
        ),
        ("            break\n", "", "wrong_value"),
        ("tiles[PREFIX, t]\n", "tiles[SUM, t]\n", "wrong_value"),
        ("while flag == 0:", "while flag != 2:", "timeout"),
        (
            "        if flag == 2:\n            before += tiles[PREFIX, t]\n            break\n",
            "",
            "wrong_value",
        ),
        ("t = tile - 1", "t = tile", "wrong_value"),
        ("while t >= 0:", "while t > 0:", "wrong_value"),
        ("while flag == 0:", "while flag < 0:", "race"),
        ("        cuda.threadfence()\n        if flag", "        if flag", "race"),
        (
            "own\n    cuda.threadfence()\n    cuda.atomic.exch(",
            "own\n    cuda.threadfence_block()\n    cuda.atomic.exch(",
            "race",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Looking back goes on past a prefix. A prefix holds all that lies before it: stop"
            " there.",
            without_a_stop,
        ),
        Hypothesis(
            "wrong_value",
            "A tile that has published its prefix (flag 2) may never have published its sum: take"
            " `tiles[PREFIX, t]`.",
            sums_for_prefixes,
        ),
        Hypothesis(
            "wrong_value",
            "Tile 0 is left out: looking back ends only after it.",
            without_tile_0,
        ),
        Hypothesis(
            "wrong_value",
            "Each prefix is the tile's own sum: nothing of the tiles before it is in `before`.",
            nothing_before,
        ),
        Hypothesis(
            "wrong_value",
            "The tiles before are added up by `sums`. Of a tile that was done before your launch"
            " began, `sums` holds nothing that counts: learn of it from `tiles`.",
            lambda tiles, sums: _published(tiles, sums, np.cumsum(sums)),
        ),
        Hypothesis(
            "wrong_value",
            "Each tile's sum is added, also where the flag says 2. Such a tile was done before your"
            " launch began, and only its prefix still means something.",
            sums_throughout,
        ),
    ),
)


# ---- split: what goes to the left, what to the right


@cuda.jit
def split(out, keys, places, bit):
    i = cuda.grid(1)
    if i < keys.size:
        ones = places[keys.size - 1]
        if keys[i] >> bit & 1:
            out[keys.size - ones + places[i] - 1] = keys[i]
        else:
            out[i - places[i]] = keys[i]


def split_inputs(rng, shape):
    """shape: (keys, bit). places: the inclusive sum of the keys' bits; they are of both signs.

    Of 7 all have bit 0, of 31 none.
    """
    keys = whole(rng, -(1 << 31), 1 << 31, shape[0])
    keys[2::9] = np.resize([-(1 << 31), -1, 0, (1 << 31) - 1], keys[2::9].shape)
    if shape == (7, 0):
        keys |= 1
    if shape == (31, 0):
        keys &= ~1
    places = np.cumsum(keys >> shape[1] & 1, dtype=np.int32)
    return {"out": Out((shape[0],), np.int32), "keys": keys, "places": places, "bit": shape[1]}


SPLIT = Exercise(
    id="reductions.split",
    title="One bit of a radix sort",
    minutes=10,
    task=(
        "Write all keys whose bit number `bit` is 0 to the front of `out`, and behind them all"
        " whose bit is 1, both in the order in which they stand in `keys`. `places` is given: the"
        " inclusive sum of the bits, so `places[i]` counts the ones up to and including element i."
        " (Done for bit 0, 1, 2 ... in turn, this sorts.) Keys are int32; bit 31 is their sign."
    ),
    starter="""
@cuda.jit
def split(out, keys, places, bit):
    i = cuda.grid(1)
    if i < keys.size:
        ones = places[keys.size - 1]  # how many there are
        if keys[i] >> bit & 1:
            ...  # behind all zeros: how many ones stand before me?
        else:
            ...  # how many zeros stand before me?
""",
    solution=split,
    inputs=split_inputs,
    reference=lambda out, keys, places, bit: keys[np.argsort(keys >> bit & 1, kind="stable")],
    speed=Speed("4 million keys", 4 << 20, lambda count: (count, 0), block=(256, 1, 1)),
    large=(66_000, 1),
    shapes=(
        (1, 0),
        (2, 1),
        (7, 0),
        (22, 1),
        (31, 0),
        (32, 7),
        (33, 3),
        (100, 2),
        (200, 5),
        (64, 31),
    ),
    fresh=some_numbers((34, 250), (0, 32)),
    extents=a_thread_a_row,
    race_free=True,
    other_block=(96, 1, 1),
    hints=(
        "There are i elements before element i. How many of them are ones, if it is a zero itself?",
        "A zero goes to `i - places[i]`.",
        (
            "There are `keys.size - ones` zeros, so the first one goes there. Before a one there"
            " are `places[i] - 1` others, since the inclusive sum counts the one itself."
        ),
    ),
    wrong=(
        ("i < keys.size", "i < keys.size and places[-1] > 0", "unwritten"),
        ("places[i] - 1]", "places[i]]", "off_by_one"),
        ("out[i - places[i]]", "out[i - places[i] - 1]", "off_by_one"),
        ("keys.size - ones + places", "places", "race"),
        ("i < keys.size", "True", "missing_guard"),
        ("if keys[i] >> bit & 1:", "if not keys[i] >> bit & 1:", "race"),
    ),
)


EXERCISES = (ANY_BLOCK, SCAN, LOOK_BACK, SPLIT)


QUIZZES = (
    Quiz(
        id="reductions.q_steps",
        question="A tree adds up 1,024 values. After how many rounds of additions is one left?",
        answer=10,
        unit="rounds",
        explain_right="1,024 is 2 to the 10th, and each round halves what is left.",
        explain={
            1023: "That is how many *additions* there are. Those of one round are made at once.",
            512: "That is how many additions the first round has. How many rounds are there?",
            None: "Each round halves the number of values: 1,024, 512, 256 ...",
        },
    ),
    one_of(
        "reductions.q_bits",
        "Which sum of floats gives the same bits in every run?",
        (
            "Every block adds its sum to the result by atomicAdd",
            "Blocks end in another order each time, and each addition rounds.",
        ),
        (
            "Every block writes its sum; the last block adds them up in order",
            (
                "Nothing in it depends on which block ends first: the grid alone decides what is "
                "added to what."
            ),
        ),
        (
            "Neither: floats are never exact",
            "A rounded result is the same each time if the order of the additions is.",
        ),
        answer="b",
    ),
    one_of(
        "reductions.q_bytes",
        (
            "How many bytes must an inclusive sum of n floats move at least, and how many does"
            " reduce-then-scan move?"
        ),
        (
            "8 n and 8 n",
            "Its first pass reads all elements for the sums, and its second reads them again.",
        ),
        (
            "8 n and 12 n",
            (
                "Each element is read once and written once: 8 n. Reduce-then-scan reads everything"
                " twice."
            ),
        ),
        ("4 n and 8 n", "The result has n floats as well: they must be written."),
        answer="b",
    ),
    one_of(
        "reductions.q_deadlock",
        (
            "A tile looks back at the tiles before it, which may not have published anything yet."
            " Why does it not wait for ever?"
        ),
        (
            "The GPU starts blocks in the order of blockIdx",
            "It mostly does, but nothing guarantees it: that is what the counter is for.",
        ),
        (
            "Numbers are drawn by blocks that already run, so those before it run or are done",
            "A block with a lower number drew it earlier. It runs or is done, and publishes its sum"
            " without waiting.",
        ),
        (
            "After some time the hardware ends a block that waits",
            "The hardware does not: a kernel that waits for ever hangs.",
        ),
        answer="b",
    ),
)
