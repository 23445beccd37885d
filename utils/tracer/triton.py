"""Recording a Triton kernel: the loads, stores and atomic operations of its interpreter as events.

A program has a tile of elements where a block has threads. The tile's elements are dealt to so many
lanes in turns, those side by side in its last axis to neighbouring lanes: element k of a tile is
lane k modulo the block's size, so a larger tile takes several steps. Triton's compiler may deal
them in another way; which sectors all of them touch does not depend on that. One operation of a
program is over before its next begins, so only programs race.
"""

import ctypes
import inspect
import math

import numpy as np

from ..cpu.triton.launches import LAUNCH
from ..cpu.triton.mistakes import KernelMistake, here
from ..engine import gpu
from .record import (
    ATOMIC,
    READ,
    WRITE,
    Memory,
    Outside,
    Recording,
    Site,
    TooManyEvents,
    TraceError,
    counted,
)

KINDS = {"read": READ, "write": WRITE, "atomic": ATOMIC, "alone": ATOMIC}


def is_triton(kernel):
    """Whether it is a kernel of `triton.jit`."""
    return type(kernel).__module__.startswith("triton.")


def record_triton(kernel, grid, block, args, named, *, max_threads, limit):
    """Run a Triton kernel once, on copies, in its interpreter.

    block: the lanes to which a program's elements are dealt; named: the launch's named arguments.
    """
    if gpu():
        raise TraceError(
            f"{kernel.__name__} is a Triton kernel, which can be traced on machines without a GPU "
            "only: there its interpreter runs it"
        )
    grid, block = counted(grid, block, max_threads)
    copies = [arg.clone() if hasattr(arg, "clone") else arg for arg in args]
    names = kernel.arg_names
    tensors = {
        name: value for name, value in zip(names, copies, strict=False) if hasattr(value, "clone")
    }
    recorder = Recorder(tensors, grid, math.prod(block), limit)
    error = None
    LAUNCH.recorder = recorder
    try:
        kernel[grid](*copies, **named)
    except KernelMistake as caught:
        error = caught
    finally:
        LAUNCH.recorder = None
    is_race = error is not None and error.kind == "race"
    results = {name: tensor.numpy() for name, tensor in tensors.items() if has_numpy(tensor)}
    source = source_of(kernel.fn)
    return Recording(
        kernel.__name__, None, grid, block, recorder, results, error, source, "program", is_race
    )


def source_of(function):
    """(file, line, text) of each line of the kernel."""
    lines, first = inspect.getsourcelines(function)
    file = function.__code__.co_filename
    every = [(file, first + n, line.rstrip()) for n, line in enumerate(lines)]
    return [each for each in every if each[2].strip() and not each[2].lstrip().startswith("@")]


def has_numpy(tensor):
    """Whether NumPy has the tensor's type; of bfloat16 it has not."""
    try:
        tensor.numpy()
    except TypeError:
        return False
    return True


class Recorder:
    """What `counts.Events` reads, written down while the interpreter runs."""

    def __init__(self, tensors, grid, threads, limit):
        self.tensors = tensors
        self.grid = grid
        self.threads = threads
        self.limit = limit
        self.table = []  # arrays [events, 7]
        self.count = 0
        self.sites, self._numbers = [], {}
        self.memories, self._known = [], {}
        self.outside = []
        self.stages = []  # for each event, the operations of its program before it
        self._done = {}

    @property
    def events(self):
        """All events as bytes."""
        return np.concatenate(self.table).tobytes() if self.table else b""

    def note(self, kind, pointers, mask, size):
        """An operation of the running program on the elements of a tile that `mask` lets through.

        size: bytes of an element.
        """
        lanes = np.flatnonzero(mask.ravel())
        addresses = np.ascontiguousarray(pointers.data).ravel()[lanes].astype(np.int64)
        if self.count + len(lanes) > self.limit:
            raise TooManyEvents(
                f"the trace was stopped after {self.limit:,} events",
                "Trace a smaller launch, or give limit=.",
            )
        rows = np.empty((len(lanes), 7), np.int64)
        rows[:, 0] = KINDS[kind]
        rows[:, 1] = self._program() * self.threads + lanes % self.threads
        rows[:, 2] = self._sites(lanes // self.threads)
        for memory in {self._memory(address) for address in addresses.tolist()}:
            mine = np.array([self._memory(address) == memory for address in addresses.tolist()])
            first, array = self._known[memory]
            rows[mine, 3] = memory
            rows[mine, 4] = addresses[mine] - first - self.memories[memory].start
            self._note_outside(kind, rows, mine, memory)
            values = values_at(first, array, addresses[mine], size) if kind != "write" else np.nan
            rows[mine, 6] = np.full(mine.sum(), values, np.float64).view(np.int64)
        rows[:, 5] = size
        self.table.append(rows)
        self.count += len(lanes)
        stage = self._done.get(LAUNCH.program, 0)
        self._done[LAUNCH.program] = stage + 1
        self.stages += [stage] * len(lanes)

    def note_values(self, values, mask):
        """What the operation that was noted last writes."""
        rows = self.table[-1]
        given = np.broadcast_to(values.data, mask.shape)[mask].ravel()
        if given.dtype.kind in "biuf" and len(given) == len(rows) and rows[0, 0] == WRITE:
            rows[:, 6] = given.astype(np.float64).view(np.int64)

    def _program(self):
        x, y, z = LAUNCH.program
        return (z * self.grid[1] + y) * self.grid[0] + x

    def _sites(self, passes):
        """The number of the running line, as a place of its own for each pass over the lanes."""
        place = here()
        found = {}
        for each in np.unique(passes).tolist():
            key = place.file, place.line, place.code * 4096 + each
            if key not in self._numbers:
                self._numbers[key] = len(self.sites)
                self.sites.append(Site(*key))
            found[each] = self._numbers[key]
        return [found[each] for each in passes.tolist()]

    def _memory(self, address):
        """The number of the tensor at, or nearest to, an address."""
        memories = LAUNCH.memories
        nearest = min(
            memories, key=lambda each: max(each.first - address, address - each.end + 1, 0)
        )
        number = memories.index(nearest)
        while len(self.memories) < len(memories):
            one = memories[len(self.memories)]
            tensor = self.tensors[one.name]
            dtype = tensor.numpy().dtype if has_numpy(tensor) else np.dtype(f"u{one.size}")
            strides = tuple(stride * one.size for stride in tensor.stride())
            start = tensor.storage_offset() * one.size
            self._known[len(self.memories)] = one.first, tensor
            self.memories.append(
                Memory(
                    one.name,
                    "global",
                    tuple(tensor.shape),
                    strides,
                    dtype,
                    len(self.memories),
                    start,
                )
            )
        return number

    def _note_outside(self, kind, rows, mine, number):
        memory = self.memories[number]
        for place in np.flatnonzero(mine).tolist():
            offset = int(rows[place, 4])
            if memory.index(offset) is None or offset < 0:
                self.outside.append(
                    Outside(
                        self.count + place,
                        KINDS[kind],
                        int(rows[place, 1]),
                        int(rows[place, 2]),
                        number,
                        (offset // memory.dtype.itemsize,),
                    )
                )


def values_at(first, tensor, addresses, size):
    """What lies at some addresses of a tensor's memory now, as floats; nan for what is unknown."""
    storage = tensor.untyped_storage()
    inside = (addresses >= first) & (addresses + size <= first + storage.nbytes())
    values = np.full(len(addresses), np.nan)
    if not has_numpy(tensor) or tensor.numpy().dtype.kind not in "biuf" or not inside.any():
        return values
    memory = (ctypes.c_char * storage.nbytes()).from_address(first)
    flat = np.frombuffer(memory, tensor.numpy().dtype)
    values[inside] = flat[(addresses[inside] - first) // size]
    return values
