"""Arrays that remember what a kernel did to them, for runs on the CPU.

A NumPy array stops a kernel at its first access out of bounds, and a real GPU does not even notice. To tell
a missing guard from one that is off by one, the checker must see *all* accesses, so these arrays note each
one, drop writes out of bounds and answer reads out of bounds with poison.
"""

import operator

import numpy as np

from utils.cpu.numba_cuda.arrays import cast
from utils.cpu.numba_cuda.engine import now


class Log:
    """What happened to one array: writing threads, reads before a write, indices out of bounds."""

    def __init__(self, size):
        self.writers = np.zeros(size, np.int32)  # how many threads wrote the element
        self.last_writer = np.full(size, -1, np.int64)
        self.early_reads = np.zeros(size, bool)
        self.outside_writes = []
        self.outside_reads = []

    def wrote(self, elements):
        thread = current_thread()
        self.writers[elements] += self.last_writer[elements] != thread
        self.last_writer[elements] = thread

    def read(self, elements):
        self.early_reads[elements] |= self.writers[elements] == 0


def current_thread():
    """A number for the CUDA thread that is running."""
    return now.rank + 1024 * now.block.linear


class Watched:
    """An array for kernels on the CPU. Indexing works as in a kernel; `log` holds what was done."""

    def __init__(self, array, log=None, flat=None):
        self._array = array
        self.log = Log(array.size) if log is None else log
        self._flat = np.arange(array.size).reshape(array.shape) if flat is None else flat
        self.shape, self.size, self.ndim = array.shape, array.size, array.ndim
        self.dtype, self.strides, self.itemsize = array.dtype, array.strides, array.itemsize
        self.nbytes = array.nbytes

    def __len__(self):
        return self.shape[0]

    @property
    def T(self):
        return Watched(self._array.T, self.log, self._flat.T)

    def _where(self, index):
        """(index as a tuple, True if it names one element, True if it is inside)."""
        index = index if isinstance(index, tuple) else (index,)
        if any(isinstance(i, slice) or i is Ellipsis for i in index):
            return index, False, True
        if len(index) > self.ndim:
            raise IndexError(f"too many indices: {len(index)} for an array with {self.ndim} dimensions")
        try:
            index = tuple(operator.index(i) for i in index)
        except TypeError:
            raise TypeError(f"array indices must be integers, but one is {index!r}") from None
        inside = all(-n <= i < n for i, n in zip(index, self.shape, strict=False))
        return index, len(index) == self.ndim, inside

    def __getitem__(self, index):
        index, single, inside = self._where(index)
        if not inside:
            self.log.outside_reads.append(index)
            return (
                poison_scalar(self.dtype)
                if single
                else Watched(np.full(self.shape[len(index) :], poison_scalar(self.dtype)))
            )
        if not single:
            return Watched(self._array[index], self.log, self._flat[index])
        self.log.read(self._flat[index])
        value = self._array[index]
        # Integers widen as in compiled kernels, where uint8 + uint8 does not wrap around.
        return int(value) if value.dtype.kind in "iu" else value

    def __setitem__(self, index, value):
        index, single, inside = self._where(index)
        if not inside:
            self.log.outside_writes.append(index)
            return
        self.log.wrote(self._flat[index])
        if isinstance(value, Watched):
            value = value._array
        if single:
            value = cast(value, self.dtype)
        self._array[index] = value


def poison_scalar(dtype):
    """What a read out of bounds answers: NaN, or an unlikely integer."""
    dtype = np.dtype(dtype)
    return (
        dtype.type(np.nan)
        if dtype.kind in "fc"
        else dtype.type(np.iinfo(dtype).max - 2) if dtype.kind in "iu" else dtype.type(1)
    )
