"""Arrays that remember what a kernel did to them, for runs on the CPU engine.

The CPU engine stops a kernel at its first access out of bounds, and a GPU does not even notice. To
tell a missing guard from one that is off by one, the checker must see *all* accesses, so these
arrays note each one, drop writes out of bounds and answer reads out of bounds with poison.
"""

import functools
import sys

import numpy as np

from utils.cpu.numba_cuda import KernelIndexError
from utils.cpu.numba_cuda.arrays import View
from utils.cpu.numba_cuda.indices import without_words
from utils.cpu.numba_cuda.state import now


class Log:
    """What happened to one array: writing threads, reads before a write, indices out of bounds."""

    def __init__(self, size):
        # Memoryviews: Python reads and writes one element of them faster than of an array
        self.writers = zeros(size, np.int32)  # how many threads wrote the element
        self.last_writer = none_of(size)
        self.updaters = zeros(size, np.int32)  # the same of atomic operations
        self.last_updater = none_of(size)
        self.early_reads = zeros(size, bool)
        self.outside_by = set()  # the threads that left it: ((x, y, z) of the block, rank in it)
        self.outside_writes = []
        self.outside_reads = []
        self.holds = None  # what each stored value must fulfil
        self.broken = []

    def most_of_one_thread(self):
        """How many elements the thread wrote that wrote the most."""
        last_writer = np.asarray(self.last_writer)
        _, elements = np.unique(last_writer[last_writer >= 0], return_counts=True)
        return int(elements.max(initial=0))

    def wrote(self, element):
        thread = now.rank + 1024 * now.block.linear
        if self.last_writer[element] != thread:
            self.last_writer[element] = thread
            self.writers[element] += 1

    def wrote_atomically(self, element):
        # Many threads may, where the output is theirs together: that is what atomics are for.
        thread = now.rank + 1024 * now.block.linear
        if self.last_updater[element] != thread:
            self.last_updater[element] = thread
            self.updaters[element] += 1
        self.writers[element] = max(1, self.writers[element])


def zeros(size, dtype):
    """A memoryview of so many zeros."""
    return memoryview(np.zeros(size, dtype))


def none_of(size):
    """A memoryview of as many threads, none of them yet."""
    return memoryview(np.full(size, -1, np.int64))


class Watched(View):
    """An array inside a kernel on the CPU engine; `log` holds what was done, by flat index."""

    __slots__ = ("log", "flat", "places")

    def __init__(self, data, name=None, log=None, flat=None):
        super().__init__(data, name)
        self.log = Log(data.size) if log is None else log
        self.flat = np.arange(data.size).reshape(data.shape) if flat is None else flat
        self.places = memoryview(self.flat) if self.flat.size and self.flat.ndim else self.flat

    def __getitem__(self, index):
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

    def __setitem__(self, index, value):
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

    def store(self, index, value):
        """Called with a checked index by atomic operations."""
        self.log.wrote_atomically(self.places[index])
        self.keep(index, value)

    def keep(self, index, value):
        """Store at a checked index what was noted already."""
        super().store(index, value)
        if self.log.holds and not self.log.holds(self.data[index]):
            self.log.broken.append(integers(index))

    def part(self, index):
        return Watched(self.data[index], self.name, self.log, self.flat[index])

    def _reshaped(self, method, *args):
        data = getattr(self.data, method)(*args)
        flat = getattr(self.flat, method)(*args)
        return Watched(data, self.name, self.log, flat)

    def nothing_there(self, index):
        """What a read out of bounds gives: `poison` of the shape asked for."""
        rest = self.shape[len(index) :]
        value = poison(self.dtype)
        return Watched(np.full(rest, value), self.name) if rest else value


@functools.cache
def poison(dtype):
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


def integers(index):
    """An index as a tuple of integers; slices, which never lie outside, are left out."""
    index = index if isinstance(index, tuple) else (index,)
    return tuple(int(i) for i in index if not isinstance(i, slice))
