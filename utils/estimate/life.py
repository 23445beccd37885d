"""How long a block lives: the chain of its busiest thread, each step waiting for what it needs.

A warp does its instructions in order. It waits where an operand is not there yet; loads that do not
need one another are under way together, in a loop that only adds up as many as compilers unroll.
What comes out is not a number of cycles but how often each latency is waited for, so that it holds
for any GPU: `Waits`, which the model multiplies by a GPU's latencies.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from utils.tracer import ATOMIC, BARRIER, GRID_BARRIER, LINE, NOT_TAKEN, READ, TAKEN, WRITE

from .model import Amounts
from .operations import Statement

UNROLL = 4  # iterations whose loads are under way together
#: Cycles of each kind of wait while the chain is followed; only which is longest depends on them
TYPICAL = {"memory": 700, "l1": 40, "shared": 30, "atomic": 700}
FLOP = 4  # cycles of what is done with a value that was read
DECIDE = 12  # cycles from a condition to the first instruction behind the jump


@dataclass(frozen=True)
class Access:
    """An event of the thread: kind, place, and of an access space, whether L1 has it, passes."""

    kind: int
    place: tuple
    space: str = ""
    in_l1: bool = False
    ways: int = 1
    array: str = ""


class Clock:
    """A point in time as a sum of waits: cycles, and how often each latency is in them."""

    __slots__ = ("cycles", "parts")

    def __init__(
        self, cycles: float = 0.0, parts: Mapping[str, float] | Iterable[str] = ()
    ) -> None:
        self.cycles = cycles
        self.parts: Amounts = Counter(parts)

    def later(self, cycles: float, what: str = "steps", amount: float | None = None) -> "Clock":
        parts = self.parts.copy()
        parts[what] += cycles if amount is None else amount
        return Clock(self.cycles + cycles, parts)


def latest(*clocks: Clock) -> Clock:
    return max(clocks, key=lambda clock: clock.cycles)


class Thread:
    """The thread so far: its clock, when each name will have its value, loads under way."""

    def __init__(self) -> None:
        self.now = Clock()
        self.ready: dict[str, Clock] = {}
        self.under_way: dict[tuple, deque[Clock]] = {}
        self.stored = Clock()
        self.barriers = 0

    def needs(self, names: Iterable[str]) -> Clock:
        return latest(self.now, *(self.ready[name] for name in names if name in self.ready))

    def run(self, statement: Statement, accesses: Sequence[Access]) -> None:
        """One statement with the accesses that it did."""
        own = statement.sets if statement.adds_up else frozenset()
        begin = self.needs(statement.indices if own else statement.uses)
        loads = [one for one in accesses if one.kind == READ]
        writes = [one for one in accesses if one.kind in (WRITE, ATOMIC)]
        count = sum(statement.classes.values()) + len(accesses)
        begin = begin.later(count)
        waiting = self.under_way.setdefault(statement.place, deque())
        if loads and len(waiting) >= UNROLL:
            begin = latest(begin, waiting.popleft())
        arrived = begin
        for load in loads:
            arrived = latest(arrived, self.load(begin, load))
        if loads and own and not writes:
            waiting.append(arrived)
        result = latest(arrived, *(self.ready[name] for name in own if name in self.ready))
        result = result.later(statement.latency)
        if writes or statement.decides:
            begin = result
        if statement.decides:
            begin = begin.later(DECIDE)
        for write in writes:
            begin = begin.later(write.ways)
            self.stored = begin.later(TYPICAL["shared"], "shared", 1)
            if write.kind == ATOMIC and statement.sets:
                result = latest(result, begin.later(TYPICAL["atomic"], "atomic", 1))
        if writes:
            waiting.clear()
        self.now = begin
        for name in statement.sets:
            self.ready[name] = result

    def load(self, begin: Clock, load: Access) -> Clock:
        if load.space == "shared":
            return begin.later(TYPICAL["shared"], "shared", 1).later(load.ways - 1)
        if load.space in ("local", "constant") or load.in_l1:
            return begin.later(TYPICAL["l1"], "l1", 1)
        return begin.later(TYPICAL["memory"], f"memory {load.array}", 1)

    def barrier(self) -> None:
        self.now = latest(self.now, self.stored).later(1, "barriers", 1)


def life(events: Iterable[Access], statements: Mapping[tuple, Statement]) -> Amounts:
    """How often the busiest thread waits for each latency.

    steps: cycles of instructions and arithmetic. memory NAME, l1, shared, atomic, barriers: times.
    """
    thread = Thread()
    statement: Statement | None = None
    accesses: list[Access] = []

    def flush() -> None:
        nonlocal statement, accesses
        if statement is not None:
            thread.run(statement, accesses)
        statement, accesses = None, []

    for event in events:
        if event.kind == LINE:
            flush()
            statement = statements.get(event.place)
            if statement is not None and statement.repeats:
                statement = None  # its test comes as branches
        elif event.kind in (TAKEN, NOT_TAKEN):
            known = statements.get(event.place)
            if known is not None and known.repeats:
                flush()
                statement = known
        elif event.kind in (READ, WRITE, ATOMIC):
            accesses.append(event)
        elif event.kind in (BARRIER, GRID_BARRIER):
            flush()
            thread.barrier()
    flush()
    end = latest(thread.now, thread.stored if thread.now.parts["barriers"] else thread.now)
    return end.parts


def life_of_accesses(events: Iterable[Access]) -> Amounts:
    """The same of a CUDA C thread, of which only accesses and barriers are known.

    A write waits for all that was read since the one before; reads wait for nothing, but of one
    place no more than UNROLL are under way.
    """
    thread = Thread()
    read = set()
    for event in events:
        if event.kind == READ:
            name = f"{event.place} {event.space}"
            reads = Counter(access=1)
            made = Statement(event.place, reads, FLOP, frozenset(), frozenset([name]), adds_up=True)
            thread.run(made, [event])
            read.add(name)
        elif event.kind in (WRITE, ATOMIC):
            thread.run(Statement(event.place, Counter(access=1), 0, frozenset(read)), [event])
            read.clear()
        elif event.kind in (BARRIER, GRID_BARRIER):
            thread.barrier()
    end = latest(thread.now, thread.stored if thread.now.parts["barriers"] else thread.now)
    return end.parts
