"""What to change next in a kernel: changes that a chapter teaches, each as what a launch would ask.

A change is a function of a launch's Counts that returns other Counts: with fewer passes of shared
memory, in larger blocks, with float32 in place of float64. The model then says what that would
bring. Changes are tried one on top of the other, the best first, since what a change brings depends
on those before it: a term that does not decide hides behind one that does.

These are predictions of a kernel that nobody has written. What is left out of them: instructions
that a change adds, registers that it takes. `course.kernels.machine.changes` holds them against
recorded pairs of kernels.
"""

import dataclasses
import functools
import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from utils.files import ASSETS
from utils.occupancy import ceil_div
from utils.quantities import format_ms

from .gpus import Gpu, with_article
from .model import SECTOR, WARP, WORDS, Counts, arithmetic, memory, room_for, terms, together

#: What changes were said to bring beside what they brought, by `course.kernels.machine.changes`
CHANGED = ASSETS / "recorded" / "changes.json"
WORTH_SAYING = 0.95  # a change is named if the time would be less than so much of it
LINE = 128
FULL_BLOCK = 256  # threads
EACH = 4  # numbers of a thread that takes several: 16 bytes of float32
NUMBER = 4  # bytes of one
NARROW = NUMBER * WARP  # bytes of a request of a warp, of one number for each lane
OPERATIONS = 8  # for each number that moves: so many have a kernel that uses its numbers again
USES = 0.5  # accesses for each operation, from which on they are what a product of matrices does
BARRIERS = 2  # of a block whose warps add up by shuffles
EDGES = 4  # barriers of a tree beside two for each of its rounds
SHUFFLES = 5  # from 32 values to one
SIDE = 2  # a thread with SIDE x SIDE results of a product reads each number for SIDE of them


@dataclass(frozen=True)
class Step:
    """A change on top of those before it: its words, the time then, and what decides then."""

    words: str
    seconds: float
    limit: str


@dataclass(frozen=True)
class Waterfall:
    """What to change next, one on top of the other.

    name: of the GPU. seconds, limit: as the kernel is. steps: the changes. least: seconds of its
    bytes and its arithmetic alone.
    """

    name: str
    seconds: float
    limit: str
    steps: tuple[Step, ...]
    least: float

    def how_far_off(self) -> str:
        """How far off what changes bring was on this GPU, where pairs of kernels are recorded."""
        found = judged().get(self.name)
        if found is None:
            return "on this GPU no change was ever timed"
        return f"nine in ten changes within a factor of {found['p90_factor']:.1f}"

    def __repr__(self) -> str:
        rows = [("as it is", self.seconds, self.limit)]
        rows += [(step.words, step.seconds, step.limit) for step in self.steps]
        last = "its bytes and its arithmetic alone"
        width = max(len(words) for words in (last, *(words for words, *_ in rows)))
        lines = [
            f"{words:{width}}  about {format_ms(1e3 * s):>8}, limited by {WORDS[limit]}"
            for words, s, limit in rows
        ]
        lines.append(f"{last:{width}}  about {format_ms(1e3 * self.least):>8}")
        where = with_article(self.name)
        head = (
            f"What to change next, estimated for {where} and not measured ({self.how_far_off()}):"
        )
        return "\n".join([head, *lines])


@functools.cache
def judged() -> dict:
    """GPU -> how far off changes were; empty where nothing is recorded."""
    if not CHANGED.exists():
        return {}
    gpus: dict = json.loads(CHANGED.read_text(encoding="utf-8"))["gpus"]
    return gpus


def waterfall(counts: Counts, gpu: Gpu, most: int = 3) -> Waterfall:
    """The changes, `most` of them, that bring most, one on top of the other."""
    now = terms(counts, gpu)
    steps: list[Step] = []
    left = dict(CHANGES)
    before, reached = now.time, counts
    while len(steps) < most:
        changed = {words: change(reached, gpu) for words, change in left.items()}
        tried = {words: new for words, new in changed.items() if new is not None}
        times = {words: terms(new, gpu) for words, new in tried.items()}
        best = min(times, key=lambda words: times[words].time, default=None)
        if best is None or times[best].time > WORTH_SAYING * before:
            break
        steps.append(Step(best, times[best].time, times[best].limit))
        before, reached = times[best].time, tried[best]
        del left[best]
    return Waterfall(gpu.name, now.time, now.limit, tuple(steps), min(before, least(counts, gpu)))


def alone(counts: Counts, gpu: Gpu) -> dict[str, float]:
    """Each change by itself -> the seconds that would be left; only what is worth saying."""
    now = terms(counts, gpu).time
    found = {}
    for words, change in CHANGES.items():
        new = change(counts, gpu)
        if new is not None:
            seconds = terms(new, gpu).time
            if seconds < WORTH_SAYING * now:
                found[words] = seconds
    return dict(sorted(found.items(), key=lambda item: item[1]))


def least(counts: Counts, gpu: Gpu) -> float:
    """Seconds of a launch that moves these bytes and does this arithmetic, and nothing else."""
    kept = ("fp32", "fp64", "special")
    only = with_amounts(counts, **{name: 0 for name in counts.amounts if name not in kept})
    _, needed = arithmetic(only, gpu)
    return gpu.launch + together([memory(counts, gpu), needed], gpu.exponent)


# ---- what a launch is like


def with_amounts(counts: Counts, **amounts: float) -> Counts:
    """Counts with other amounts of some things."""
    return dataclasses.replace(counts, amounts=Counter({**counts.amounts, **amounts}))


def per_warp(counts: Counts, amount: float) -> float:
    """Of an amount of the whole launch, what each warp has."""
    return amount / (counts.blocks * ceil_div(counts.threads, WARP))


def works_alone(counts: Counts) -> bool:
    """Whether no thread needs another one of its block: then blocks may have any size."""
    a = counts.amounts
    return not a["barriers"] and not a["shared_passes"] and not counts.shared_bytes


def operations(counts: Counts) -> float:
    """Operations on floats for each number that moves from or to memory."""
    a = counts.amounts
    moved = sum(counts.moved.values()) + sum(size for _, size in counts.gathered)
    floats: float = a["fp32"] + a["fp64"]
    return floats * WARP * NUMBER / max(1, moved)


def is_product(counts: Counts) -> bool:
    """Whether numbers are used again and again, and read for each use."""
    a = counts.amounts
    reads = a["read_requests"] + a["shared_requests"]
    return operations(counts) >= OPERATIONS and reads >= USES * (a["fp32"] + a["fp64"])


# ---- the changes: of Counts and a Gpu; None where there is nothing to change


def without_conflicts(counts: Counts, gpu: Gpu) -> Counts | None:
    if counts.amounts["shared_passes"] <= counts.amounts["shared_fewest"]:
        return None
    return with_amounts(counts, shared_passes=counts.amounts["shared_fewest"])


def side_by_side(counts: Counts, gpu: Gpu) -> Counts | None:
    """Lanes of a warp ask for neighbouring bytes: no more lines and sectors than these fill."""
    a = counts.amounts
    most = {}
    for what in ("read", "write"):
        most[f"{what}_sectors"] = a[f"{what}_fewest"]
        most[f"{what}_lines"] = max(a[f"{what}_requests"], a[f"{what}_fewest"] * SECTOR / LINE)
    most |= {name: a["read_fewest"] for name in a if name.startswith("l2_read_")}
    fewer = {name: amount for name, amount in most.items() if a[name] > amount}
    if not fewer:
        return None
    new = with_amounts(counts, **fewer)
    new.amounts["whole_written"] = new.amounts["write_sectors"]
    moved = {what: min(size, a[f"{what}_fewest"] * SECTOR) for what, size in counts.moved.items()}
    return dataclasses.replace(new, moved=moved)


def larger_blocks(counts: Counts, gpu: Gpu) -> Counts | None:
    """Threads that do not need one another, in blocks of FULL_BLOCK."""
    if counts.threads >= FULL_BLOCK or not works_alone(counts):
        return None
    blocks = ceil_div(counts.blocks * counts.threads, FULL_BLOCK)
    if blocks < gpu.sms:
        return None
    return dataclasses.replace(counts, blocks=blocks, threads=FULL_BLOCK)


def several_each(counts: Counts, gpu: Gpu) -> Counts | None:
    """Each thread takes four numbers that lie side by side, by one access of 16 bytes."""
    a = counts.amounts
    requests = a["read_requests"] + a["write_requests"]
    sectors = a["read_fewest"] + a["write_fewest"]
    in_order = sectors * SECTOR <= NARROW * requests and side_by_side(counts, gpu) is None
    blocks = ceil_div(counts.blocks, EACH)
    if not works_alone(counts) or is_product(counts) or not in_order:
        return None
    if a["atomic_lanes"] or blocks < gpu.sms:
        return None
    names = ("access", "integer", "multiply", "jump", "read_requests", "write_requests")
    new = with_amounts(counts, **{name: a[name] / EACH for name in names})
    floats = per_warp(counts, a["fp32"] + a["fp64"])
    waits = counts.waits.copy()
    waits["steps"] += (EACH - 1) * floats
    return dataclasses.replace(new, blocks=blocks, waits=waits)


def all_places_taken(counts: Counts, gpu: Gpu) -> Counts | None:
    """A loop over the data is dealt to as many blocks as there is room for."""
    turns = sum(n for what, n in counts.waits.items() if what.startswith("memory "))
    times = min(room_for(counts, gpu).blocks * gpu.sms / counts.blocks, turns)
    if times <= 1 or counts.amounts["barriers"]:
        return None
    waits = Counter({what: n / times for what, n in counts.waits.items()})
    return dataclasses.replace(counts, blocks=math.ceil(counts.blocks * times), waits=waits)


def in_float32(counts: Counts, gpu: Gpu) -> Counts | None:
    a = counts.amounts
    if not a["fp64"]:
        return None
    return with_amounts(counts, fp32=a["fp32"] + a["fp64"], fp64=0)


def added_in_blocks_first(counts: Counts, gpu: Gpu) -> Counts | None:
    """Blocks add up in shared memory, and each adds to an element of global memory once."""
    fewer = {
        name: (min(adds, counts.blocks), elements, dtype)
        for name, (adds, elements, dtype) in counts.hottest.items()
    }
    if all(adds <= counts.blocks for adds, *_ in counts.hottest.values()):
        return None
    a = counts.amounts
    shared = {f"shared_atomics_{dtype}": 0 for *_, dtype in counts.hottest.values()}
    shared = {name: a[name] + a["atomic_requests"] / len(shared) for name in shared}
    last = sum(ceil_div(elements * NUMBER, SECTOR) for _, elements, _ in counts.hottest.values())
    sectors = min(a["atomic_sectors"], counts.blocks * last)
    waits = counts.waits.copy()
    waits["shared"] += waits.pop("atomic", 0)
    new = with_amounts(counts, atomic_sectors=sectors, atomic_lines=sectors, **shared)
    return dataclasses.replace(new, hottest=fewer, waits=waits)


def with_shuffles(counts: Counts, gpu: Gpu) -> Counts | None:
    """A block's sum or scan by shuffles within warps: two barriers, two passes of each warp."""
    a = counts.amounts
    times = counts.waits["barriers"]
    rounds = 2 * math.log2(counts.threads) + EDGES
    if times <= BARRIERS or times > rounds or is_product(counts):
        return None
    warps = counts.blocks * ceil_div(counts.threads, WARP)
    waits = counts.waits.copy()
    waits["barriers"] = BARRIERS
    waits["shared"] = min(waits["shared"], BARRIERS)
    passes = min(a["shared_passes"], BARRIERS * warps)
    return dataclasses.replace(
        with_amounts(
            counts,
            barriers=BARRIERS * warps,
            shared_passes=passes,
            shared_fewest=passes,
            shared_requests=passes,
            shuffle=a["shuffle"] + SHUFFLES * warps,
        ),
        waits=waits,
    )


def in_tiles(counts: Counts, gpu: Gpu) -> Counts | None:
    """What a block reads is read once, into shared memory, and used from there."""
    a = counts.amounts
    once = counts.once / SECTOR
    if not is_product(counts) or a["l2_read_0"] <= 2 * once:
        return None
    fewer = {name: min(a[name], once) for name in a if name.startswith("l2_read_")}
    requests = min(a["read_requests"], counts.once / LINE)
    moved = a["read_requests"] - requests
    return with_amounts(
        counts,
        **fewer,
        read_requests=requests,
        read_lines=min(a["read_lines"], requests),
        read_sectors=min(a["read_sectors"], once),
        read_fewest=min(a["read_fewest"], once),
        shared_passes=a["shared_passes"] + moved,
        shared_fewest=a["shared_fewest"] + moved,
        shared_requests=a["shared_requests"] + moved,
    )


def several_results(counts: Counts, gpu: Gpu) -> Counts | None:
    """A thread computes 2 x 2 results of a product: it reads each number for two of them."""
    blocks = ceil_div(counts.blocks, SIDE * SIDE)
    if not is_product(counts) or blocks < gpu.sms:
        return None
    a = counts.amounts
    names = [name for name in a if name.startswith(("l2_read_", "read_", "shared_"))]
    halved = {name: a[name] / SIDE for name in [*names, "access", "integer"]}
    quartered = {name: a[name] / (SIDE * SIDE) for name in ("jump", "barriers")}
    waits = counts.waits.copy()
    waits["steps"] *= SIDE
    return dataclasses.replace(
        with_amounts(counts, **halved, **quartered), blocks=blocks, waits=waits
    )


#: How a sentence names a change -> the change
CHANGES: dict[str, Callable[[Counts, Gpu], Counts | None]] = {
    "without its bank conflicts": without_conflicts,
    "with its global accesses side by side": side_by_side,
    "in blocks of 256 threads": larger_blocks,
    "with four numbers for each thread, 16 bytes at once": several_each,
    "with as many blocks as there is room for": all_places_taken,
    "with float32 in place of float64": in_float32,
    "with sums in each block first, and one addition of each": added_in_blocks_first,
    "with shuffles, and two barriers": with_shuffles,
    "with tiles in shared memory": in_tiles,
    "with two by two results for each thread": several_results,
}
