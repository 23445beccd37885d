"""Arrays as a kernel sees them: views that check every index and store as a GPU does.

A view reads and writes through a memoryview (integers: gives Python's fast ints) or the NumPy array
(floats: gives np.float32 and the like, whose arithmetic rounds as on a GPU). The common case, an
in-range element, takes the few lines of `__getitem__`; everything else (slices, negative indices,
wrapping, mistakes) goes the slow way.
"""

import ast
import functools
import linecache
import sys

import numpy as np

from .engine import now
from .errors import KernelError, KernelIndexError, UninitializedError

# Integers that fit Python's ints go through a memoryview; uint64 stays NumPy's, so that its
# arithmetic wraps.
_THROUGH_MEMORYVIEW = set("?bBhHiIlq")
_MISSED = (
    IndexError,
    TypeError,
    ValueError,
    OverflowError,
    NotImplementedError,
    np.exceptions.ComplexWarning,
)


class View:
    """An array inside a kernel.

    data: the NumPy array it stands for; base: the array it is a part of.
    """

    __slots__ = (
        "data",
        "mem",
        "shape",
        "size",
        "ndim",
        "dtype",
        "name",
        "space",
        "written",
        "base",
        "__weakref__",
    )

    def __init__(
        self,
        data,
        name,
        space="global",
        written=None,
        base=None,
    ):
        if data.dtype.names is not None and data.dtype.type is not np.record:
            # gives a[i].field beside a[i]["field"]
            data = data.view(np.dtype((np.record, data.dtype)))
        self.data = data
        self.shape = data.shape
        self.size = data.size
        self.ndim = data.ndim
        self.dtype = data.dtype
        self.name = name
        self.space = space
        self.written = written
        self.base = self if base is None else base
        if (
            data.dtype.char in _THROUGH_MEMORYVIEW
            and data.dtype.isnative
            and data.size
            and data.ndim
        ):
            self.mem = memoryview(data)
        else:
            self.mem = data

    # ---- the slow way: everything but one element in range

    def slow_get(self, index, frame):
        index, whole = self.resolve(index, frame)
        if whole:
            if self.written is not None and not self.written[index]:
                raise self.unwritten(index)
            return self.load(index)
        return self.part(index)

    def slow_set(self, index, value, frame):
        index, whole = self.resolve(index, frame)
        if whole:
            self.store(index, value)
        else:
            part = self.part(index)
            if isinstance(value, View):
                value = value.data
            if np.shape(value) not in ((), part.shape):
                raise KernelError(
                    f"cannot assign shape {np.shape(value)} to a slice of {self.describe()} "
                    f"of shape {part.shape}"
                )
            part.data[...] = value
            if part.written is not None:
                np.asarray(part.written)[...] = True

    def load(self, index):
        """Element `index` (checked already), as the kernel sees it."""
        value = self.mem[index]
        return value

    def store(self, index, value):
        """Set element `index` (checked already), cast to the array's type as a GPU casts."""
        try:
            self.mem[index] = value
        except _MISSED:
            self.data[index] = cast(value, self.dtype)
        if self.written is not None:
            self.written[index] = True

    def part(self, index):
        return view(
            self.data[index],
            self.name,
            self.space,
            None if self.written is None else np.asarray(self.written)[index],
            self.base,
        )

    def resolve(self, index, frame):
        """(index, whole): an index that is in range, and whether it names one element."""
        if isinstance(index, View):
            index = tuple(index.data.tolist())
        parts = index if isinstance(index, tuple) else (index,)
        if any(part is Ellipsis or part is None for part in parts):
            return index, False
        if len(parts) > self.ndim:
            raise KernelError(f"{len(parts)} indices for {self.describe()}, which has {self.ndim}")
        place = []
        for axis, part in enumerate(parts):
            if isinstance(part, slice):
                ends = (part.start, part.stop, part.step)
                place.append(slice(*(None if end is None else int(end) for end in ends)))
                continue
            try:
                i = part.__index__()
            except AttributeError:
                raise KernelError(
                    f"index {part!r} of {self.describe()} is a {type(part).__name__}, not an "
                    "integer",
                    "Divide indices with //, or convert with int().",
                ) from None
            length = self.shape[axis]
            if not 0 <= i < length:
                if -length <= i < 0 and literal_negative(frame.f_code, frame.f_lasti, axis):
                    i += length
                else:
                    raise self.outside(parts, axis, i)
            place.append(i)
        whole = len(place) == self.ndim and not any(isinstance(part, slice) for part in place)
        return (place[0] if self.ndim == 1 and len(place) == 1 else tuple(place)), whole

    # ---- words

    def describe(self):
        name = f"{self.name!r}" if self.name else "array"
        return f"{self.space + ' ' if self.space != 'global' else ''}{name}"

    def outside(self, parts, axis, i):
        index = parts[0] if len(parts) == 1 else parts
        length = self.shape[axis]
        where = f" (axis {axis} has {length})" if self.ndim > 1 else ""
        text = (
            f"index {show_index(index)} is outside {self.describe()} of shape {self.shape}{where}"
        )
        if i < 0:
            hint = (
                "Negative: on a GPU this quietly takes an element from the end, or other memory. "
                "Check the arithmetic, or guard it with if."
            )
        else:
            hint = (
                "On a GPU this reads or overwrites other memory, and nothing is said. Guard it "
                "with if."
            )
        return KernelIndexError(text, hint)

    def unwritten(self, index):
        return UninitializedError(
            f"{self.describe()}[{show_index(index)}] is read, but no thread has written it",
            "Shared and local arrays start with whatever was there before: write first, then "
            "cuda.syncthreads() if another thread reads.",
        )

    # ---- what Numba gives kernels beside elements

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        for i in range(self.shape[0]):
            yield self[i]

    def __bool__(self):
        raise KernelError(
            f"the truth of {self.describe()} is not defined", "Compare one element, or .size."
        )

    def __getattr__(self, name):
        if name in ("strides", "itemsize", "nbytes", "flags"):
            return getattr(self.data, name)
        if name == "T":
            return self.transpose()
        if name in ("real", "imag"):
            return view(getattr(self.data, name), self.name, self.space, self.written, self.base)
        if name == "flat":
            return self.ravel()
        raise AttributeError(f"arrays in kernels have no attribute {name!r} ({self.describe()})")

    def _reshaped(self, method, *args):
        written = None if self.written is None else getattr(np.asarray(self.written), method)(*args)
        return view(getattr(self.data, method)(*args), self.name, self.space, written, self.base)

    def transpose(self, *axes):
        return self._reshaped("transpose", *axes)

    def reshape(self, *shape):
        return self._reshaped("reshape", *shape)

    def ravel(self):
        return self._reshaped("reshape", -1)

    def view(self, dtype):
        return view(self.data.view(as_dtype(dtype)), self.name, self.space, None, self.base)

    def __repr__(self):
        return f"<{self.space} array {self.name or ''} {self.dtype} {self.shape}>"


class View1(View):
    __slots__ = ()

    def __getitem__(self, i):
        try:
            if i >= 0:
                return self.mem[i]
        except _MISSED:
            pass
        return self.slow_get(i, sys._getframe(1))

    def __setitem__(self, i, value):
        try:
            if i >= 0:
                self.mem[i] = value
                return
        except _MISSED:
            pass
        self.slow_set(i, value, sys._getframe(1))


class View2(View):
    __slots__ = ()

    def __getitem__(self, index):
        try:
            i, j = index
            if i >= 0 and j >= 0:
                return self.mem[i, j]
        except _MISSED:
            pass
        return self.slow_get(index, sys._getframe(1))

    def __setitem__(self, index, value):
        try:
            i, j = index
            if i >= 0 and j >= 0:
                self.mem[i, j] = value
                return
        except _MISSED:
            pass
        self.slow_set(index, value, sys._getframe(1))


class ViewN(View):
    """Three and more dimensions, and none."""

    __slots__ = ()

    def __getitem__(self, index):
        try:
            if len(index) == self.ndim and min(index) >= 0:
                return self.mem[index]
        except _MISSED:
            pass
        return self.slow_get(index, sys._getframe(1))

    def __setitem__(self, index, value):
        try:
            if len(index) == self.ndim and min(index) >= 0:
                self.mem[index] = value
                return
        except _MISSED:
            pass
        self.slow_set(index, value, sys._getframe(1))


class Closed(View):
    """An array of another device's memory, which kernels of this one may not touch."""

    __slots__ = ("owner", "device")

    def __init__(self, data, name, owner, device):
        super().__init__(data, name)
        self.owner, self.device = owner, device

    def _refuse(self, *_):
        raise KernelError(
            f"a kernel of device {self.device} uses {self.describe()}, memory of device "
            f"{self.owner}, without permission",
            f"With device {self.device} current: cuda.current_context().enable_peer_access("
            f"cuda.gpus[{self.owner}].get_primary_context().handle)",
        )

    __getitem__ = __setitem__ = slow_get = slow_set = load = store = part = _refuse


class CheckedN(View):
    """A shared or local array of three or more dimensions."""

    __slots__ = ()

    def __getitem__(self, index):
        return self.slow_get(index, sys._getframe(1))

    def __setitem__(self, index, value):
        self.slow_set(index, value, sys._getframe(1))


class Checked1(View):
    """A shared or local array: it also remembers which elements were written."""

    __slots__ = ()

    def __getitem__(self, i):
        try:
            if i >= 0 and self.written[i]:
                return self.mem[i]
        except _MISSED:
            pass
        return self.slow_get(i, sys._getframe(1))

    def __setitem__(self, i, value):
        try:
            if i >= 0:
                self.mem[i] = value
                self.written[i] = True
                return
        except _MISSED:
            pass
        self.slow_set(i, value, sys._getframe(1))


class Checked2(View):
    __slots__ = ()

    def __getitem__(self, index):
        try:
            i, j = index
            if i >= 0 and j >= 0 and self.written[i, j]:
                return self.mem[i, j]
        except _MISSED:
            pass
        return self.slow_get(index, sys._getframe(1))

    def __setitem__(self, index, value):
        try:
            i, j = index
            if i >= 0 and j >= 0:
                self.mem[i, j] = value
                self.written[i, j] = True
                return
        except _MISSED:
            pass
        self.slow_set(index, value, sys._getframe(1))


def view(data, name, space="global", written=None, base=None):
    """The View for NumPy array `data`. `written` (booleans of its shape) turns on that check."""
    if now.watching:
        from .observe import WatchedView

        return WatchedView(data, name, space, written, base)
    if written is not None:
        kind = {1: Checked1, 2: Checked2}.get(data.ndim, CheckedN)
        if data.ndim in (1, 2) and isinstance(written, np.ndarray) and written.size:
            written = memoryview(written)
    else:
        kind = {1: View1, 2: View2}.get(data.ndim, ViewN)
    return kind(data, name, space, written, base)


def fresh(shape, dtype, name, space):
    """A new shared or local array: poisoned, and watched for reads before the first write."""
    data = np.empty(shape, dtype)
    poison(data)
    # A record is written field by field, after it was "read": not watched.
    unwatched = now.unwritten_allowed or data.dtype.names is not None
    return view(data, name, space, None if unwatched else np.zeros(shape, bool))


def poison(data):
    """Fill with values that no computation expects: NaN, or 0xCD in every byte."""
    if data.dtype.kind in "fc":
        data[...] = np.nan
    elif data.size:
        data.reshape(-1).view(np.uint8)[...] = 0 if data.dtype.kind == "b" else 0xCD


_RANGES = {char: (np.iinfo(char).min, np.iinfo(char).max) for char in "bBhHiIlLqQ"}


def cast(value, dtype):
    """`value` as `dtype`, as a GPU converts: integers wrap, floats saturate to integers."""
    kind = dtype.kind
    if kind in "iu":
        if type(value) is int:
            low, high = _RANGES[dtype.char]
            if low <= value <= high:
                return value
        if isinstance(value, (float, np.floating)):
            if value != value:
                return dtype.type(0)
            limits = np.iinfo(dtype)
            if dtype.itemsize >= 4:
                return dtype.type(
                    min(max(int(np.clip(value, -(2.0**64), 2.0**64)), limits.min), limits.max)
                )
            value = int(np.clip(value, -(2.0**63), 2.0**63))
        elif isinstance(value, (complex, np.complexfloating)):
            raise KernelError(
                f"cannot store a complex number in an array of {dtype}", "Take .real or .imag."
            )
        bits = 8 * dtype.itemsize
        value = int(value) & ((1 << bits) - 1)
        if kind == "i" and value >> (bits - 1):
            value -= 1 << bits
        return dtype.type(value)
    if kind in "f" and isinstance(value, (complex, np.complexfloating)):
        raise KernelError(
            f"cannot store a complex number in an array of {dtype}", "Take .real, .imag or abs()."
        )
    if isinstance(value, View):
        raise KernelError(
            f"an array ({value.describe()}) cannot be stored in one element", "Name its element."
        )
    try:
        return dtype.type(value) if dtype.names is None else value
    except (TypeError, ValueError):
        raise KernelError(f"cannot store a {type(value).__name__} in an array of {dtype}") from None


def as_number(value, dtype):
    """`value` as `dtype`, as kernels hold it: integers, but for uint64, are Python's ints."""
    value = cast(value, dtype)
    if dtype.kind == "b":
        return bool(value)
    return int(value) if dtype.kind in "iu" and dtype != np.uint64 else value


def as_dtype(dtype):
    """np.dtype of a NumPy type, a Numba type, a vector type or a string."""
    if hasattr(dtype, "cpu_dtype"):
        return dtype.cpu_dtype
    if type(dtype).__module__.startswith(("numba", "numba_cuda")):
        return numba_dtype(dtype)
    return np.dtype(dtype)


@functools.lru_cache(maxsize=256)
def numba_dtype(numba_type):
    from numba.core.errors import NumbaError
    from numba.np.numpy_support import as_dtype as convert

    try:
        return np.dtype(convert(numba_type))
    except (NumbaError, NotImplementedError):
        raise TypeError(f"{numba_type} is no type for array elements") from None


def show_index(index):
    if isinstance(index, tuple):
        return "(" + ", ".join(show_index(part) for part in index) + ")"
    return str(int(index)) if hasattr(index, "__index__") else repr(index)


@functools.lru_cache(maxsize=1024)
def literal_negative(code, lasti, axis):
    """Whether the index at this instruction is a minus and a number at `axis`, as in a[-1]."""
    line, last_line, column, last_column = list(code.co_positions())[lasti // 2]
    if column is None or line != last_line:
        return False
    source = linecache.getline(code.co_filename, line).encode()[column:last_column].decode()
    try:
        node = ast.parse(source.strip(), mode="eval").body
    except SyntaxError:
        return False
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    part = parts[axis] if axis < len(parts) else None
    return isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant)
