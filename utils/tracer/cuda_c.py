"""Recording a CUDA C kernel: what the CPU runtime's watched build noted, as events of the tracer.

It sees accesses, barriers, fences and meetings of lanes, but no statements and no branches.
"""

import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ..cuda_c import Kernel, LaunchError
from ..engine import gpu
from .record import (
    ACCESSES,
    FLIGHTS,
    READ,
    Memory,
    Recording,
    Site,
    TooManyEvents,
    TraceError,
    counted,
)

SHARED = re.compile(r"__shared__\s+(?:__align__\(\d+\)\s*)?([\w ]+?)\s+(\w+)\s*((?:\[\w+\]\s*)+);")
TYPES = {
    "float": np.float32,
    "double": np.float64,
    "int": np.int32,
    "unsigned": np.uint32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "char": np.int8,
    "unsigned char": np.uint8,
}
WORD = 4
ANY = "shared memory"


def is_cuda_c(kernel):
    """Whether it is a kernel of `cuda_c.load`."""
    return isinstance(kernel, Kernel)


def record_cuda_c(kernel, grid, block, args, shared_bytes, *, max_threads, limit):
    """Run a CUDA C kernel once, on copies, watched; the arguments are those of `record`."""
    if gpu():
        raise TraceError(
            f"{kernel.signature.name} is a CUDA C kernel, which can be traced on machines without "
            "a GPU only. %nvcc FILE.cu --check --run finds its races and wrong indices anywhere"
        )
    grid, block = counted(grid, block, max_threads)
    copies = [copied(arg) for arg in args]
    watched = kernel.watched()
    error = None
    try:
        events, buffers = watched.record(grid, block, shared_bytes, copies, limit + 1)
    except LaunchError as caught:
        error = caught
        events, buffers = watched.last_record()
    if len(events) > limit:
        raise TooManyEvents(
            f"the trace was stopped after {limit:,} events",
            "Trace a smaller launch, or give limit=.",
        )
    source = source_of(kernel)
    names = [parameter.name for parameter in kernel.signature.parameters]
    arrays = dict(zip(names, copies, strict=False))
    arrays = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    recorder = as_recorder(watched, events, buffers, arrays, source, math.prod(block))
    name = kernel.signature.name
    return Recording(name, None, grid, block, recorder, arrays, error, source)


def copied(arg):
    """An argument that the kernel may change; numbers as they are."""
    if hasattr(arg, "copy_to_host"):
        return arg.copy_to_host()
    if hasattr(arg, "detach"):
        return arg.detach().cpu().numpy().copy()
    return arg.copy() if isinstance(arg, np.ndarray) and arg.ndim else arg


def source_of(kernel):
    """(file, line, text) of each line of the kernel."""
    path = Path(kernel.path)
    lines = path.read_text().splitlines()
    head = re.compile(rf"\b{re.escape(kernel.signature.name)}\s*\(")
    first = next(n for n, line in enumerate(lines) if head.search(line))
    depth, last, began = 0, first, False
    for last in range(first, len(lines)):
        depth += lines[last].count("{") - lines[last].count("}")
        began = began or "{" in lines[last]
        if began and depth <= 0:
            break
    return [(str(path), n + 1, lines[n]) for n in range(first, last + 1) if lines[n].strip()]


def as_recorder(watched, table, buffers, arrays, source, threads):
    """What `counts.Events` reads, of the runtime's table of events."""
    filename, first, _ = source[0]
    kind, thread, code, line, shared, address, size, bits = table.T.copy()
    sites, site = sites_of(watched, kind, thread, code, line, filename, first)
    memories = []
    memory = np.zeros(len(table), np.int64)
    offset = address.copy()
    is_access = np.isin(kind, (*ACCESSES, *FLIGHTS))
    value = np.full(len(table), np.nan)
    for start, length, name in buffers:
        mine = is_access & (shared == 0) & (address >= start) & (address < start + max(length, 1))
        array = arrays[name]
        memories.append(
            Memory(name, "global", array.shape, array.strides, array.dtype, len(memories), 0)
        )
        memory[mine] = len(memories) - 1
        offset[mine] -= start
        value[mine] = values_of(bits[mine], size[mine], array.dtype)
    known = ~is_access | (shared != 0)
    for start, length, _ in buffers:  # else a device variable, or another block's shared memory
        known |= (address >= start) & (address < start + length)
    for block in np.unique(thread[shared != 0] // threads).tolist():
        mine = is_access & (shared != 0) & (thread // threads == block)
        declared = shared_of(source, int(address[mine].min()), address[mine], size[mine])
        memories.append(Memory(*declared[:5], len(memories), declared[5]))
        memory[mine] = len(memories) - 1
        offset[mine] -= declared[5]
        if declared[0] != ANY:
            value[mine] = values_of(bits[mine], size[mine], declared[4])
    value[kind != READ] = np.nan
    columns = kind, thread, site, memory, offset, size, value.view(np.int64)
    events = np.stack(columns, axis=1)[known].tobytes()
    return SimpleNamespace(events=events, sites=sites, memories=memories, outside=[], stages=None)


def sites_of(watched, kind, thread, code, line, filename, first):
    """(places, the number of each event's): what has none has that of the event before it."""
    lines = {int(one): watched.line_of(int(one)) for one in np.unique(code) if one}
    sites, numbers, last = [], {}, {}
    site = np.zeros(len(kind), np.int64)
    for n in range(len(kind)):
        at = int(line[n]) or lines.get(int(code[n]), 0)
        key = (at, int(code[n])) if at else last.get(int(thread[n]), (first, 0))
        last[int(thread[n])] = key
        if key not in numbers:
            numbers[key] = len(sites)
            sites.append(Site(filename, *key))
        site[n] = numbers[key]
    return sites, site


def shared_of(source, first, address, size):
    """(name, space, shape, strides, dtype, start) of a block's shared memory.

    Where the kernel declares one array it has its name and shape; else it is so many words.
    """
    found = [SHARED.search(text) for _, _, text in source if "__shared__" in text]
    if len(found) == 1 and found[0] and found[0][1] in TYPES:
        sizes = re.findall(r"\[(\w+)\]", found[0][3])
        dtype = np.dtype(TYPES[found[0][1]])
        if all(one.isdigit() for one in sizes):
            shape = tuple(map(int, sizes))
            strides = np.empty(shape, dtype).strides
            return found[0][2], "shared", shape, strides, dtype, first
    words = -(-int((address + size).max() - first) // WORD)
    return ANY, "shared", (words,), (WORD,), np.dtype(np.uint32), first


def values_of(bits, size, dtype):
    """What was read, as floats; nan where it was no single number."""
    if dtype.itemsize > 8 or dtype.kind not in "biuf" or not len(bits):
        return np.full(len(bits), np.nan)
    raw = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, 8)[:, : dtype.itemsize]
    with np.errstate(all="ignore"):
        values = np.ascontiguousarray(raw).view(dtype)[:, 0].astype(np.float64)
    return np.where(size == dtype.itemsize, values, np.nan)
