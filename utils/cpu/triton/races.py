"""Which program wrote and read each element, and in which order: races between programs.

Programs of a grid run in any order, so two of them may touch an element, one writing, only if an
order is forced: by an atomic operation of the first, after its access, and one of the second on the
same element, before its own. That is what vector clocks tell (Lamport's happens-before relation;
the method is that of dynamic race detectors such as FastTrack).
"""

from dataclasses import dataclass, field

import numpy as np

NOBODY = -1
#: "alone": atomic among the threads of one program only, scope="cta"
KINDS = ("write", "read", "atomic", "alone")


@dataclass
class Touched:
    """Of each element: the program that last touched it in one way, and its clock then."""

    program: np.ndarray
    clock: np.ndarray

    @classmethod
    def none(cls, count: int):
        return cls(np.full(count, NOBODY, np.int32), np.zeros(count, np.int32))


@dataclass
class History:
    """What happened to one piece of memory during a launch; `grain` bytes an element."""

    first: int
    count: int
    grain: int
    touched: dict[str, Touched] = field(default_factory=dict)
    other_reader: Touched | None = None

    def of(self, kind: str) -> Touched:
        """The last touches of a kind."""
        if kind not in self.touched:
            self.touched[kind] = Touched.none(self.count)
        return self.touched[kind]

    def refine(self, grain: int) -> None:
        """Go over to smaller elements: something was accessed in smaller pieces."""
        factor = self.grain // grain
        every = [*self.touched.values(), *([self.other_reader] if self.other_reader else [])]
        for touched in every:
            touched.program = np.repeat(touched.program, factor)
            touched.clock = np.repeat(touched.clock, factor)
        self.grain = grain
        self.count *= factor

    def elements(self, addresses: np.ndarray, size: int) -> np.ndarray:
        """The elements that accesses of `size` bytes touch, one row an element of an access."""
        if size < self.grain:
            self.refine(size)
        index = (addresses.astype(np.int64) - self.first) // self.grain
        pieces = size // self.grain
        return index if pieces == 1 else (index[:, None] + np.arange(pieces)).ravel()


@dataclass
class Clocks:
    """What the running program knows of the others' clocks."""

    programs: int
    me: int = 0
    clock: int = 1
    known: np.ndarray | None = None  # of every program: up to which clock it lies before us
    released: dict[int, np.ndarray] = field(default_factory=dict)  # address -> what it hands on

    def begin(self, program: int) -> None:
        """Another program starts: it knows of nobody."""
        self.me, self.clock, self.known = program, 1, None

    def state(self) -> tuple:
        """What the running program knows, for `resume`."""
        return self.me, self.clock, self.known

    def resume(self, state: tuple) -> None:
        """A program goes on that has run before."""
        self.me, self.clock, self.known = state

    def synchronize(self, addresses, acquire: bool, release: bool) -> None:
        """An atomic operation on these addresses, which takes up and hands on an order."""
        for address in map(int, addresses):
            if acquire and address in self.released:
                self._learn(self.released[address])
            if release:
                handed = self.known.copy() if self.known is not None else self._nothing()
                handed[self.me] = self.clock
                known = self.released.get(address)
                self.released[address] = handed if known is None else np.maximum(known, handed)
        if release:
            self.clock += 1

    def _nothing(self) -> np.ndarray:
        return np.zeros(self.programs, np.int32)

    def _learn(self, other: np.ndarray) -> None:
        self.known = other.copy() if self.known is None else np.maximum(self.known, other)

    def unordered(self, touched: Touched, index: np.ndarray) -> np.ndarray:
        """Which of these elements another program touched without an order to this one."""
        program = touched.program[index]
        others = (program != NOBODY) & (program != self.me)
        if self.known is None or not others.any():
            return others
        before = touched.clock[index] <= self.known[np.maximum(program, 0)]
        return others & ~before


#: What each way of touching an element may not meet unordered
_CONFLICTS = {
    "read": ("write", "atomic", "alone"),
    "write": ("write", "read", "atomic", "alone"),
    "atomic": ("write", "read", "alone"),
    "alone": ("write", "read", "atomic", "alone"),
}


def conflict(
    history: History,
    clocks: Clocks,
    kind: str,
    index: np.ndarray,
):
    """(element, other program, what it did) of an unordered touch, or None."""
    for other in _CONFLICTS[kind]:
        candidates = [history.touched.get(other)]
        if other == "read":
            candidates.append(history.other_reader)
        for touched in filter(None, candidates):
            bad = clocks.unordered(touched, index)
            if bad.any():
                element = int(index[bad][0])
                return element, int(touched.program[element]), other
    return None


def note(
    history: History,
    clocks: Clocks,
    kind: str,
    index: np.ndarray,
) -> None:
    """Remember that the running program touches these elements."""
    touched = history.of(kind)
    if kind == "read":
        _keep_other_readers(history, clocks, touched, index)
    touched.program[index] = clocks.me
    touched.clock[index] = clocks.clock


def _keep_other_readers(history: History, clocks: Clocks, touched: Touched, index) -> None:
    """Two readers are remembered, so that one of them is not the program that then writes."""
    before = touched.program[index]
    replaced = index[(before != NOBODY) & (before != clocks.me)]
    if replaced.size:
        if history.other_reader is None:
            history.other_reader = Touched.none(history.count)
        history.other_reader.program[replaced] = touched.program[replaced]
        history.other_reader.clock[replaced] = touched.clock[replaced]
