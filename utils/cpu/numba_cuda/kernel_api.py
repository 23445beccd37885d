"""What a kernel calls: indices, arrays, barriers."""

import ast
import functools
import sys

import numpy as np

from .arrays import View, view
from .elements import as_dtype, poison
from .errors import CudaAPIError, KernelError
from .instrument import syntax_tree
from .state import block_dim, grid_dim, now, thread_idx

STATIC_SHARED = 48 * 1024
DYNAMIC_SHARED = 227 * 1024


# ---- indices


def grid(ndim):
    """The thread's index in the whole grid: a number for ndim 1, a tuple for 2 and 3."""
    if ndim == 1:
        return now.base_x + thread_idx.x
    if ndim == 2:
        return now.base_x + thread_idx.x, now.base_y + thread_idx.y
    if ndim == 3:
        return now.base_x + thread_idx.x, now.base_y + thread_idx.y, now.base_z + thread_idx.z
    raise ValueError("argument can only be 1, 2, 3")


def gridsize(ndim):
    """The number of threads in the whole grid, per dimension."""
    sizes = (
        block_dim.x * grid_dim.x,
        block_dim.y * grid_dim.y,
        block_dim.z * grid_dim.z,
    )
    if ndim not in (1, 2, 3):
        raise ValueError("argument can only be 1, 2, 3")
    return sizes[0] if ndim == 1 else sizes[:ndim]


# ---- arrays


class shared:
    """cuda.shared.array: one array a block for each place in the source that asks for one."""

    @staticmethod
    def array(shape, dtype, alignment=None):
        frame = sys._getframe(1)
        site = frame.f_code, frame.f_lasti
        block = now.block
        try:
            return block.shared[site]
        except KeyError:
            pass
        dtype = as_dtype(dtype)
        if shape == 0 or shape == (0,):
            block.shared[site] = array = dynamic_shared(block, dtype, assigned_name(*site))
            return array
        array = fresh(constant_shape(shape, "shared"), dtype, assigned_name(*site), "shared")
        used = (
            sum(a.data.nbytes for a in block.shared.values() if a.data.base is None)
            + array.data.nbytes
        )
        if used > STATIC_SHARED:
            raise KernelError(
                f"the kernel asks for {used:,} bytes of static shared memory; a block has "
                f"{STATIC_SHARED:,}",
                "Use smaller tiles, or dynamic shared memory: cuda.shared.array(0, dtype) and "
                "kernel[grid, block, stream, bytes].",
            )
        block.shared[site] = array
        return array


def dynamic_shared(block, dtype, name):
    """The launch's dynamic shared memory as an array; calls with shape 0 see the same bytes."""
    if block.dynamic is None:
        memory = np.full(block.launch.dynamic_bytes, 0xCD, np.uint8)
        block.dynamic = memory, np.zeros(memory.size, bool)
    memory, _ = block.dynamic
    count = memory.size // dtype.itemsize
    data = memory[: count * dtype.itemsize].view(dtype)
    array = view(data, name, "shared")
    if count == 0:
        array.name = f"{name or 'array'} (dynamic; this launch gives it {memory.size} bytes)"
    return array


class local:
    """cuda.local.array: an array of the thread's own."""

    @staticmethod
    def array(shape, dtype, alignment=None):
        frame = sys._getframe(1)
        return fresh(
            constant_shape(shape, "local"),
            as_dtype(dtype),
            assigned_name(frame.f_code, frame.f_lasti),
            "local",
        )


class const:
    """cuda.const.array_like: a copy of a host array in constant memory."""

    @staticmethod
    def array_like(array):
        data = array.data if isinstance(array, View) else np.asarray(array)
        if data.nbytes > 65536:
            raise CudaAPIError(
                218, f"constant memory holds 65,536 bytes; this array has {data.nbytes:,}"
            )
        return view(data, "constant", "constant")


def fresh(shape, dtype, name, space):
    """A new shared or local array: poisoned, and watched for reads before the first write."""
    data = np.empty(shape, dtype)
    poison(data)
    # A record is written field by field, after it was "read": not watched.
    unwatched = now.unwritten_allowed or data.dtype.names is not None
    return view(data, name, space, None if unwatched else np.zeros(shape, bool))


def constant_shape(shape, kind):
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    if not all(isinstance(size, (int, np.integer)) for size in sizes):
        raise KernelError(
            f"the shape of a {kind} array must be a compile-time constant, not {shape!r}",
            "Write the number, or a name that is defined outside the kernel.",
        )
    return tuple(int(size) for size in sizes)


@functools.lru_cache(maxsize=1024)
def assigned_name(code, lasti):
    """The name that the source gives to the result of the call at this instruction, or None."""
    place = list(code.co_positions())[lasti // 2]
    tree = syntax_tree(code)
    for node in ast.walk(tree) if tree else ():
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        for target in targets:
            for name, value in named_values(target, getattr(node, "value", None)):
                if place == (
                    value.lineno,
                    value.end_lineno,
                    value.col_offset,
                    value.end_col_offset,
                ):
                    return name
    return None


def named_values(target, value):
    """Each name in the target of an assignment, with the expression that it gets."""
    if isinstance(target, ast.Name) and value is not None:
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for parts in zip(target.elts, value.elts, strict=False):
            yield from named_values(*parts)


# ---- barriers and fences


def syncthreads():
    """Wait until every thread of the block is here."""
    return now.launch.barrier(sys._getframe(1), "syncthreads()")


def vote(frame, name, predicate):
    """A barrier that counts; numba-cuda takes the predicate of these as an integer only."""
    if isinstance(predicate, (bool, np.bool_)):
        raise KernelError(
            f"{name} takes an integer, not a bool: numba-cuda does not compile this",
            f"Write {name}(int32(condition)), with `from numba import int32`.",
        )
    return now.launch.barrier(frame, f"{name}()", bool(predicate))


def syncthreads_count(predicate):
    """Barrier; returns for how many threads of the block `predicate` is true."""
    return vote(sys._getframe(1), "syncthreads_count", predicate)


def syncthreads_and(predicate):
    """Barrier; returns 1 if `predicate` is true for all threads of the block, else 0."""
    return vote(sys._getframe(1), "syncthreads_and", predicate)


def syncthreads_or(predicate):
    """Barrier; returns 1 if `predicate` is true for any thread of the block, else 0."""
    return vote(sys._getframe(1), "syncthreads_or", predicate)


def threadfence():
    """Order this thread's writes for all threads of the GPU. Here all writes are seen at once."""


def threadfence_block():
    """Order this thread's writes for its block. Here all writes are seen at once."""


def threadfence_system():
    """Order this thread's writes for GPU and host. Here all writes are seen at once."""


def nanosleep(ns):
    """A GPU thread would pause for about `ns` nanoseconds."""


class GridGroup:
    """What cg.this_grid() gives."""

    def sync(self):
        """Wait until every thread of every block is here."""
        return now.launch.grid_sync(sys._getframe(1))


def this_grid():
    """The group of all threads of the grid."""
    return GridGroup()
