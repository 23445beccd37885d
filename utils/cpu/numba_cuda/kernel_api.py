"""What a kernel calls: indices, arrays, barriers, warp operations, atomics and bit functions."""

import dis
import functools
import math
import operator
import sys

import numpy as np

from .arrays import View, as_dtype, cast, fresh, view
from .engine import WARP, block_dim, grid_dim, now, thread_idx
from .errors import CudaAPIError, KernelError
from .observe import watched

STATIC_SHARED = 48 * 1024
DYNAMIC_SHARED = 227 * 1024
FULL = 0xFFFFFFFF


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
    sizes = (block_dim.x * grid_dim.x, block_dim.y * grid_dim.y, block_dim.z * grid_dim.z)
    if ndim not in (1, 2, 3):
        raise ValueError("argument can only be 1, 2, 3")
    return sizes[0] if ndim == 1 else sizes[:ndim]


class LaneId:
    """cuda.laneid imported by name: the running thread's lane wherever a number is expected."""

    def __index__(self):
        return now.rank % WARP

    __int__ = __index__

    def __float__(self):
        return float(int(self))

    def __hash__(self):
        return hash(int(self))

    def __repr__(self):
        return str(int(self))


def _forward(name, swapped=False):
    function = getattr(operator, name)
    if swapped:
        return lambda self, other: function(int(other), int(self))
    return lambda self, other: function(
        int(self), int(other) if isinstance(other, LaneId) else other
    )


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and_",
    "or_",
    "xor",
):
    setattr(LaneId, f"__{_name.strip('_')}__", _forward(_name))
    setattr(LaneId, f"__r{_name.strip('_')}__", _forward(_name, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(LaneId, f"__{_name}__", _forward(_name))

laneid = LaneId()


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
    """The name that the result of the call at this instruction is assigned to."""
    for instruction in dis.get_instructions(code):
        if instruction.offset > lasti and instruction.opname != "CACHE":
            if not instruction.opname.startswith("STORE_FAST"):
                return None
            name = instruction.argval  # two names where Python 3.13 has merged two instructions
            return name[0] if isinstance(name, tuple) else name
    return None


# ---- barriers and fences


def syncthreads():
    """Wait until every thread of the block is here."""
    now.launch.barrier(sys._getframe(1), "syncthreads()")


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
        now.launch.grid_sync(sys._getframe(1))


def this_grid():
    """The group of all threads of the grid."""
    return GridGroup()


# ---- warp operations


def syncwarp(mask=FULL):
    """Wait until every lane in `mask` is here."""
    now.launch.warp(
        sys._getframe(1), "syncwarp()", mask, None, lambda values: dict.fromkeys(values)
    )


def _shuffle(name, source):
    """A shuffle: lane L receives the value of lane source(L, argument), or keeps its own."""

    def resolve(values):
        results = {}
        for lane, (value, argument) in values.items():
            other = source(lane, argument)
            if not 0 <= other < WARP:
                results[lane] = value
            elif other in values:
                results[lane] = _like(values[other][0], value)
            else:
                results[lane] = undefined(value)
        return results

    def shuffle(mask, value, argument):
        return now.launch.warp(sys._getframe(1), name + "()", mask, (value, int(argument)), resolve)

    shuffle.__name__ = shuffle.__qualname__ = name
    return shuffle


def _like(value, model):
    return value if type(value) is type(model) else type(model)(value)


def undefined(value):
    """What a shuffle gives from an absent lane: undefined on a GPU, here NaN or 0x4DCDCDCD."""
    if isinstance(value, (float, np.floating)):
        return type(value)("nan")
    return type(value)(0x4DCDCDCD)


shfl_sync = _shuffle("shfl_sync", lambda lane, source: source % WARP)
shfl_up_sync = _shuffle("shfl_up_sync", lambda lane, delta: lane - delta)
shfl_down_sync = _shuffle("shfl_down_sync", lambda lane, delta: lane + delta)
shfl_xor_sync = _shuffle("shfl_xor_sync", lambda lane, mask: lane ^ mask)
shfl_sync.__doc__ = "The value that lane `argument` holds."
shfl_up_sync.__doc__ = "The value of the lane `argument` below; the first lanes keep theirs."
shfl_down_sync.__doc__ = "The value of the lane `argument` above; the last lanes keep theirs."
shfl_xor_sync.__doc__ = "The value of the lane whose number differs in the bits of `argument`."


def _mask_of(values, chosen):
    return sum(1 << lane for lane, value in values.items() if chosen(value))


def _vote(name, result):
    def resolve(values):
        return dict.fromkeys(values, result(values))

    def vote(mask, predicate):
        return now.launch.warp(sys._getframe(1), name + "()", mask, bool(predicate), resolve)

    vote.__name__ = vote.__qualname__ = name
    return vote


all_sync = _vote("all_sync", lambda values: all(values.values()))
any_sync = _vote("any_sync", lambda values: any(values.values()))
eq_sync = _vote("eq_sync", lambda values: len(set(values.values())) == 1)
ballot_sync = _vote("ballot_sync", lambda values: _mask_of(values, bool))
all_sync.__doc__ = "Whether the predicate is true for all lanes in the mask."
any_sync.__doc__ = "Whether the predicate is true for any lane in the mask."
eq_sync.__doc__ = "Whether the predicate is the same for all lanes in the mask."
ballot_sync.__doc__ = "The mask of lanes for which the predicate is true."


def _match_any(values):
    return {
        lane: _mask_of(values, lambda other, mine=value: other == mine)
        for lane, value in values.items()
    }


def _match_all(values):
    same = len(set(values.values())) == 1
    return dict.fromkeys(values, (_mask_of(values, lambda _: True) if same else 0, same))


def match_any_sync(mask, value):
    """The mask of lanes that hold the same value as this one."""
    return now.launch.warp(sys._getframe(1), "match_any_sync()", mask, value, _match_any)


def match_all_sync(mask, value):
    """(mask, True) if all lanes in `mask` hold the same value, else (0, False)."""
    return now.launch.warp(sys._getframe(1), "match_all_sync()", mask, value, _match_all)


def activemask():
    """The mask of lanes that run this call together."""
    return now.launch.converge(sys._getframe(1))


def lanemask_lt():
    """The mask of the lanes below this one."""
    return (1 << (now.rank % WARP)) - 1


# ---- atomics


_INTEGERS = {np.dtype(name) for name in ("int32", "uint32", "int64", "uint64")}
_UNSIGNED = {np.dtype(name) for name in ("uint32", "uint64")}
_NUMBERS = _INTEGERS | {np.dtype(name) for name in ("float32", "float64")}


def _element(name, array, index, types, frame):
    """`index` of one element of `array`, checked; the array must hold one of `types`."""
    if not isinstance(array, View):
        raise KernelError(f"cuda.atomic.{name} works on arrays; got a {type(array).__name__}")
    if array.dtype not in types:
        raise KernelError(
            f"cuda.atomic.{name} does not work on {array.dtype} ({array.describe()})",
            "It works on arrays of " + ", ".join(sorted(map(str, types))) + ".",
        )
    if not (type(index) is int and array.ndim == 1 and 0 <= index < array.size):
        index, whole = array.resolve(index, frame)
        if not whole:
            raise KernelError(
                f"cuda.atomic.{name} needs the index of one element of {array.describe()}"
            )
    if array.written is not None and not array.written[index]:
        raise array.unwritten(index)
    return index


def _atomic(name, types, new):
    """An atomic operation: stores new(old, value) at array[index] and returns old."""

    def operation(array, index, value):
        frame = sys._getframe(1)
        index = _element(name, array, index, types, frame)
        old = array.mem[index]
        value = cast(value, array.dtype)
        # Integers meet as Python ints: the store wraps them.
        array.store(
            index, new(int(old), int(value)) if array.dtype in _INTEGERS else new(old, value)
        )
        if now.watching:
            watched(array, index, "atomic", frame)
        return old

    operation.__name__ = operation.__qualname__ = name
    return staticmethod(operation)


def _largest(old, value):
    return old if old != old or value != value or old >= value else value


def _smallest(old, value):
    return old if old != old or value != value or old <= value else value


class atomic:
    """cuda.atomic: read, change and write one element undisturbed; each returns the old value.

    max and min change nothing if either value is NaN; nanmax and nanmin take the other one.
    """

    add = _atomic("add", _NUMBERS, operator.add)
    sub = _atomic("sub", _NUMBERS, operator.sub)
    and_ = _atomic("and_", _INTEGERS, operator.and_)
    or_ = _atomic("or_", _INTEGERS, operator.or_)
    xor = _atomic("xor", _INTEGERS, operator.xor)
    inc = _atomic("inc", _UNSIGNED, lambda old, value: 0 if old >= value else old + 1)
    dec = _atomic(
        "dec", _UNSIGNED, lambda old, value: value if old == 0 or old > value else old - 1
    )
    exch = _atomic("exch", _INTEGERS, lambda old, value: value)
    max = _atomic("max", _NUMBERS, _largest)
    min = _atomic("min", _NUMBERS, _smallest)
    nanmax = _atomic(
        "nanmax", _NUMBERS, lambda old, value: old if value != value or old >= value else value
    )
    nanmin = _atomic(
        "nanmin", _NUMBERS, lambda old, value: old if value != value or old <= value else value
    )

    @staticmethod
    def cas(array, index, old, value):
        """array[index] = value if it is `old`; returns what was there."""
        frame = sys._getframe(1)
        index = _element("cas", array, index, _INTEGERS, frame)
        there = array.mem[index]
        if there == cast(old, array.dtype):
            array.store(index, value)
        if now.watching:
            watched(array, index, "atomic", frame)
        return there

    @staticmethod
    def compare_and_swap(array, old, value):
        """array[0] = value if it is `old`; returns what was there."""
        return atomic.cas(array, (0,) * array.ndim, old, value)


# ---- bits and numbers


def _width(value):
    """How many bits a value has; a Python int has 32 where that is enough."""
    if isinstance(value, np.integer):
        return 8 * value.dtype.itemsize
    return 32 if -(2**31) <= value < 2**32 else 64


def _bits(value):
    """The bits of a value as an unsigned number."""
    return int(value) & (1 << _width(value)) - 1


def popc(value):
    """The number of bits set."""
    return _bits(value).bit_count()


def brev(value):
    """The bits in reverse order."""
    digits = f"{_bits(value):0{_width(value)}b}"
    return int(digits[::-1], 2)


def clz(value):
    """The number of zero bits above the highest bit set."""
    return _width(value) - _bits(value).bit_length()


def ffs(value):
    """The place of the lowest bit set, counted from 1; 0 if there is none."""
    value = int(value)
    return (value & -value).bit_length()


def fma(a, b, c):
    """a * b + c, rounded once."""
    types = [x if isinstance(x, np.generic) else np.float64 for x in (a, b, c)]
    kind = np.result_type(*types).type
    if kind is np.float32:  # a product of two float32 is exact in float64
        return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    exact = None
    if all(math.isfinite(x) for x in (a, b, c)):
        exact = _exact(a) * _exact(b) + _exact(c)
    return kind(a * b + c) if exact is None else kind(float(exact))


def _exact(x):
    from fractions import Fraction

    return Fraction(float(x))


def cbrt(value):
    """The cube root."""
    if not isinstance(value, np.floating):
        value = np.float64(value)
    return np.cbrt(value)


def selp(condition, a, b):
    """`a` if `condition` is true, else `b`."""
    return a if condition else b
