"""Arrays that remember what a kernel did to them, for runs on the CPU engine.

The CPU engine stops a kernel at its first access out of bounds, and a GPU does not even notice. To
tell a missing guard from one that is off by one, the checker must see *all* accesses, so these
arrays note each one, drop writes out of bounds and answer reads out of bounds with poison.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from utils.cpu.numba_cuda import KernelIndexError
from utils.cpu.numba_cuda.arrays import View
from utils.cpu.numba_cuda.indices import without_words
from utils.cpu.numba_cuda.state import now


class Log:
    """What happened to one array: writing threads, reads before a write, indices out of bounds."""

    def __init__(self, size: int) -> None:
        # Memoryviews: Python reads and writes one element of them faster than of an array
        self.writers = zeros(size, np.int32)  # how many threads wrote the element
        self.last_writer = none_of(size)
        self.updaters = zeros(size, np.int32)  # the same of atomic operations
        self.last_updater = none_of(size)
        self.early_reads = zeros(size, bool)
        #: the threads that left it: ((x, y, z) of the block, rank in it)
        self.outside_by: set[tuple[tuple[int, int, int], int]] = set()
        self.outside_writes: list[tuple[int, ...]] = []
        self.outside_reads: list[tuple[int, ...]] = []
        self.holds: Callable[[Any], bool] | None = None  # what each stored value must fulfil
        self.broken: list[tuple[int, ...]] = []

    def most_of_one_thread(self) -> int:
        """How many elements the thread wrote that wrote the most."""
        last_writer = np.asarray(self.last_writer)
        _, elements = np.unique(last_writer[last_writer >= 0], return_counts=True)
        return int(elements.max(initial=0))

    def wrote(self, element: int) -> None:
        thread = now.rank + 1024 * now.block.linear
        if self.last_writer[element] != thread:
            self.last_writer[element] = thread
            self.writers[element] += 1

    def wrote_atomically(self, element: int) -> None:
        # Many threads may, where the output is theirs together: that is what atomics are for.
        thread = now.rank + 1024 * now.block.linear
        if self.last_updater[element] != thread:
            self.last_updater[element] = thread
            self.updaters[element] += 1
        self.writers[element] = max(1, self.writers[element])


def zeros(size: int, dtype: type) -> memoryview:
    """A memoryview of so many zeros."""
    return np.zeros(size, dtype).data


def none_of(size: int) -> memoryview:
    """A memoryview of as many threads, none of them yet."""
    return np.full(size, -1, np.int64).data


class Watched(View):
    """An array inside a kernel on the CPU engine; `log` holds what was done, by flat index."""

    __slots__ = ("log", "flat", "places")

    def __init__(
        self,
        data: np.ndarray,
        name: str | None = None,
        log: Log | None = None,
        flat: np.ndarray | None = None,
    ) -> None:
        super().__init__(data, name)
        self.log = Log(data.size) if log is None else log
        self.flat = np.arange(data.size).reshape(data.shape) if flat is None else flat
        self.places: Any = self.flat.data if self.flat.size and self.flat.ndim else self.flat

    def __getitem__(self, index: Any) -> Any:
        if not self.in_range(index):
            try:
                index, whole = self.resolve(index, sys._getframe(1), without_words)
            except KernelIndexError:
                where = integers(index)
                self.log.outside_by.add((now.block.index, now.rank))
                self.log.outside_reads.append(where)
                return self.nothing_there(where)
            if not whole:
                return self.part(index)
        element = self.places[index]
        if not self.log.writers[element]:
            self.log.early_reads[element] = True
        value = self.mem[index]
        launch = now.launch
        if launch.schedule.random:
            launch.give_way()  # others may run between this read and a write that follows
        return value

    def __setitem__(self, index: Any, value: Any) -> None:
        frame = sys._getframe(1)
        try:
            place, whole = self.resolve(index, frame, without_words)
        except KernelIndexError:
            self.log.outside_by.add((now.block.index, now.rank))
            self.log.outside_writes.append(integers(index))
            return
        if whole:
            self.log.wrote(self.places[place])
            self.keep(place, value)
            return
        for element in self.flat[place].flat:
            self.log.wrote(element)
        self.slow_set(index, value, frame)

    def store(self, index: Any, value: Any) -> None:
        """Called with a checked index by atomic operations."""
        self.log.wrote_atomically(self.places[index])
        self.keep(index, value)

    def keep(self, index: Any, value: Any) -> None:
        """Store at a checked index what was noted already."""
        super().store(index, value)
        if self.log.holds and not self.log.holds(self.data[index]):
            self.log.broken.append(integers(index))

    def part(self, index: Any) -> "Watched":
        return Watched(self.data[index], self.name, self.log, self.flat[index])

    def _reshaped(self, method: str, *args: Any) -> "Watched":
        data = getattr(self.data, method)(*args)
        flat = getattr(self.flat, method)(*args)
        return Watched(data, self.name, self.log, flat)

    def nothing_there(self, index: tuple[int, ...]) -> Any:
        """What a read out of bounds gives: `poison` of the shape asked for."""
        rest = self.shape[len(index) :]
        value = poison(self.dtype)
        return Watched(np.full(rest, value), self.name) if rest else value


@functools.cache
def poison(dtype: np.dtype) -> Any:
    """NaN or an unlikely integer."""
    if dtype.kind in "fc":
        value = np.nan
    elif dtype.kind == "b":
        value = True
    elif dtype.kind == "i":
        value = np.iinfo(dtype).min + 2  # a loop up to it ends at once
    else:
        value = np.iinfo(dtype).max - 2
    return np.array(value, dtype)[()]


def integers(index: Any) -> tuple[int, ...]:
    """An index as a tuple of integers; slices, which never lie outside, are left out."""
    index = index if isinstance(index, tuple) else (index,)
    return tuple(int(i) for i in index if not isinstance(i, slice))
