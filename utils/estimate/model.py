"""From what a launch asks for to a time: the longest of a few resources, with a start.

Each resource alone would need `amount / rate` seconds. Were they perfectly overlapped, the longest
would be the time; they are not, and near-equal ones disturb one another. So the terms are joined by
a power mean, (sum of t^p)^(1/p), whose exponent p comes from microbenchmarks that balance two
resources on purpose (`machine/overlap/...`), not from any kernel that is judged.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from utils.occupancy import Occupancy, ceil_div, limits, occupancy

from .gpus import Gpu

#: A Counter of how much of each thing; parts of things, too, and types have Counters of ints alone
Amounts: TypeAlias = Any
#: (bytes, seconds) at each of some sizes
Curve = Sequence[tuple[float, float]]
WARP = 32
SECTOR = 32
L1_LEAST = 16 << 10
GAP = 1e-6  # seconds from one launch of a sequence to the next
MOST_WAVES = 4  # up to so many rounds of blocks the last, unfilled one counts as a whole
#: Resource -> how a sentence names it
WORDS = {
    "memory": "the memory's bandwidth",
    "l2": "the L2 cache's bandwidth",
    "l1": "the L1 cache and shared memory",
    "issue": "the number of instructions",
    "fp32": "the fp32 units",
    "fp64": "the fp64 units",
    "multiply": "the integer multipliers",
    "integer": "the integer units",
    "special": "the special units",
    "tensor": "the tensor cores",
    "convert": "conversions between types",
    "shuffle": "shuffles",
    "barriers": "barriers",
    "atomics": "atomics",
    "blocks": "the start of blocks",
    "latency": "latency: too little under way at once",
}


@dataclass(frozen=True)
class Counts:
    """What a whole launch asks for.

    amounts: of all blocks. waits: of one block. moved: "read" and "write" -> bytes that
    memory moves at least. near: array -> share of its requests that find it in L2, because others
    brought it there. gathered: (bytes asked for, size) of arrays whose indices come from memory:
    nobody knows where they point, so what does not fit in L2 comes from memory each time. hottest:
    array -> (additions to the most wanted element, elements, "int" or "float"). reached: array and
    "read" or "write" -> the share of the array that all blocks together touch. once: bytes that are
    read if each block reads each of its sectors once.
    """

    blocks: int
    threads: int
    amounts: Amounts
    waits: Amounts
    moved: dict[str, float]
    near: dict[str, float]
    gathered: tuple[tuple[float, int], ...]
    hottest: dict[str, tuple[float, int, str]]
    shared_bytes: int
    registers: int
    reached: dict[tuple[str, str], float] = field(default_factory=dict)
    once: float = 0.0


@dataclass(frozen=True)
class Terms:
    """seconds: resource -> seconds that it alone would need. start: of the launch."""

    seconds: dict[str, float]
    start: float
    exponent: float
    notes: dict = field(default_factory=dict)

    @property
    def time(self) -> float:
        """Seconds of the launch."""
        return self.start + together(self.seconds.values(), self.exponent)

    @property
    def limit(self) -> str:
        """The resource that takes longest."""
        return max(self.seconds, key=self.seconds.__getitem__)

    def without(self, resource: str, seconds: float) -> float:
        """The time if a resource needed so many seconds only."""
        changed = {**self.seconds, resource: seconds}
        return self.start + together(changed.values(), self.exponent)


def seconds_of(launches: list[Terms]) -> float:
    """The time of launches one after the other: only the first waits for its start alone."""
    total = sum(one.time for one in launches)
    return total - (len(launches) - 1) * (launches[0].start - GAP)


def together(terms: Iterable[float], exponent: float) -> float:
    """The power mean's sum of several times."""
    terms = [term for term in terms if term > 0]
    if not terms:
        return 0.0
    most = max(terms)
    return most * math.pow(sum((term / most) ** exponent for term in terms), 1 / exponent)


def terms(counts: Counts, gpu: Gpu) -> Terms:
    """The terms of a launch on a GPU."""
    fits = room_for(counts, gpu)
    busy = min(1.0, counts.blocks / gpu.sms)  # the share of the SMs that have a block
    resident = max(1, min(fits.blocks, ceil_div(counts.blocks, gpu.sms)))
    seconds = {
        "memory": memory(counts, gpu),
        "l2": l2(counts, gpu, resident),
        "l1": l1(counts, gpu) / busy,
        "barriers": counts.amounts["barriers"] / barrier_rate(counts, gpu) / busy,
        "atomics": atomics(counts, gpu),
        "blocks": counts.blocks / gpu.rates[f"blocks_{size_class(counts.threads)}"],
        "latency": latency(counts, gpu, resident),
    }
    unit, needed = arithmetic(counts, gpu)
    seconds[unit] = needed / busy
    if counts.amounts["tensor"]:
        seconds["tensor"] = counts.amounts["tensor"] / gpu.rates["tensor"] / busy
    return Terms(seconds, gpu.launch, gpu.exponent, {"occupancy": fits, "resident": resident})


def room_for(counts: Counts, gpu: Gpu) -> Occupancy:
    """How many of its blocks fit on an SM at once: an `Occupancy`."""
    most = limits(gpu.compute_capability).shared_block
    shared = min(counts.shared_bytes, most)
    return occupancy(gpu.compute_capability, counts.threads, counts.registers, shared)


def size_class(threads: int) -> int:
    """The number of threads of a microbenchmark's block that is nearest to this one."""
    return min((32, 64, 128, 256, 512, 1024), key=lambda size: abs(math.log(size / threads)))


def memory(counts: Counts, gpu: Gpu) -> float:
    """Every byte once, at the speed of large reads and writes, their beginning included."""
    read, written = counts.moved["read"], counts.moved["write"]
    for asked, size in counts.gathered:
        read += min(asked, size) if size <= gpu.l2_bytes else asked * (1 - gpu.l2_bytes / size)
    total = read + written
    if not total:
        return 0.0
    share = read / total
    return share * along(gpu.reads, total) + (1 - share) * along(gpu.writes, total)


def along(points: Curve, size: float) -> float:
    """The seconds of `size` bytes on a curve, straight between the points."""
    before = points[0]
    for point in points[1:]:
        if size <= point[0]:
            break
        before = point
    else:
        return before[1] + slope(points[-2:]) * (size - before[0])
    share = (size - before[0]) / (point[0] - before[0])
    return before[1] + share * (point[1] - before[1])


def slope(points: Curve) -> float:
    """Seconds per byte between two points."""
    (size, seconds), (larger, longer) = points
    return (longer - seconds) / (larger - size)


def l2(counts: Counts, gpu: Gpu, resident: int) -> float:
    """Sectors that L1 does not have, and all that are written."""
    a = counts.amounts
    read = a[f"l2_read_{distance(counts, gpu, resident)}"]
    written = a["write_sectors"]
    scattered: float = max(0, written - a["whole_written"])
    moved: float = (read + a["whole_written"]) * SECTOR
    return moved / gpu.rates["l2_read"] + scattered / gpu.rates["l2_part_write"]


def distance(counts: Counts, gpu: Gpu, resident: int) -> int:
    """The largest of the counted distances that the L1 left to a block can bridge."""
    sm = limits(gpu.compute_capability).shared
    left = max(L1_LEAST, sm - resident * counts.shared_bytes)
    room = left / resident / SECTOR
    known = [int(name.rpartition("_")[2]) for name in counts.amounts if name.startswith("l2_read_")]
    return max([one for one in known if one <= room], default=0)


def l1(counts: Counts, gpu: Gpu) -> float:
    """Lines of global requests and passes of shared ones: one of them a cycle."""
    a = counts.amounts
    lines = a["read_lines"] + a["write_lines"] + a["atomic_lines"]
    seconds: float = lines / gpu.rates["line"] + a["shared_passes"] / gpu.rates["pass"]
    for dtype in ("int", "float"):
        seconds += a[f"shared_atomics_{dtype}"] / gpu.rates[f"shared_{dtype}"]
        seconds += a[f"shared_atomics_{dtype}_more"] / gpu.rates[f"shared_more_{dtype}"]
    return seconds


def arithmetic(counts: Counts, gpu: Gpu) -> tuple[str, float]:
    """(the unit that needs longest, its seconds): issue slots, or the pipe of one class."""
    a = counts.amounts
    classes = ("fp32", "fp64", "multiply", "integer", "special", "convert", "shuffle")
    total = sum(a[name] for name in (*classes, "access", "jump")) + a["shared_atomics_int"]
    needed = {"issue": total / gpu.rates["issue"]}
    for name in classes:
        needed[name] = a[name] / gpu.rates[name]
    unit = max(needed, key=needed.__getitem__)
    return unit, needed[unit]


def barrier_rate(counts: Counts, gpu: Gpu) -> float:
    """Arrivals of warps at barriers per second, of all SMs, each full of blocks of this size."""
    size = size_class(counts.threads)
    warps = limits(gpu.compute_capability).warps
    blocks = min(warps * WARP // size, limits(gpu.compute_capability).blocks)
    arrivals = blocks * ceil_div(size, WARP)
    return gpu.sms * arrivals / gpu.cycles[f"barrier_{size}_full"] * gpu.clock


def atomics(counts: Counts, gpu: Gpu) -> float:
    """Additions to one element come one after the other; others as sectors of L2 allow."""
    operations = counts.amounts["atomic_sectors"]  # what one request asks of one sector
    longest = 0.0
    for adds, elements, dtype in counts.hottest.values():
        longest = max(longest, adds / gpu.rates[f"one_{dtype}"])
        points = [
            (32.0, gpu.rates[f"line_{dtype}"]),
            (1024.0, gpu.rates[f"lines_{dtype}"]),
            (float(1 << 22), gpu.rates[f"each_{dtype}"]),
        ]
        if elements > 1:
            longest = max(longest, operations / rate_between(points, elements))
    return longest


def rate_between(points: Sequence[tuple[float, float]], elements: float) -> float:
    """A rate between measured ones, straight on logarithmic axes, flat beyond them."""
    if elements <= points[0][0]:
        return points[0][1]
    for (one, rate), (other, faster) in zip(points, points[1:], strict=False):
        if elements <= other:
            share = math.log(elements / one) / math.log(other / one)
            return rate * math.pow(faster / rate, share)
    return points[-1][1]


def latency(counts: Counts, gpu: Gpu, resident: int) -> float:
    """Rounds of blocks, each as long as a block lives (Little's law, turned round)."""
    seconds = life_seconds(counts, gpu) + gpu.turn
    slots = resident * gpu.sms
    rounds = counts.blocks / slots
    if rounds < MOST_WAVES:
        rounds = math.ceil(rounds)
    return seconds * rounds


def life_seconds(counts: Counts, gpu: Gpu) -> float:
    """How long one block lives where nobody else is in its way."""
    cycles = 0.0
    alone = gpu.cycles[f"barrier_{size_class(counts.threads)}_alone"]
    for what, times in counts.waits.items():
        if what == "steps":
            cycles += times
        elif what == "barriers":
            cycles += times * alone
        elif what.startswith("memory "):
            near = counts.near.get(what.partition(" ")[2], 0.0)
            cycles += times * (near * gpu.cycles["l2"] + (1 - near) * gpu.cycles["memory"])
        else:
            cycles += times * gpu.cycles[what]
    return cycles / gpu.clock
