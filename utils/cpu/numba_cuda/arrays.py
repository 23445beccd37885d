"""Arrays as a kernel sees them: views that check every index and store as a GPU does.

A view reads and writes through a memoryview (integers: gives Python's fast ints) or the NumPy array
(floats: gives np.float32 and the like, whose arithmetic rounds as on a GPU). The common case, an
in-range element, takes the few lines of `__getitem__`; everything else (slices, negative indices,
wrapping, mistakes) goes the slow way.
"""

import sys
import weakref

import numpy as np

from . import elementwise
from .elements import as_dtype, cast, is_fresh
from .errors import KernelError, UninitializedError
from .indices import outside, show_index, written_with_minus
from .state import now

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
            if self.is_unwritten(index):
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

    def is_unwritten(self, index):
        """Whether nobody has stored element `index` (checked already) since the array was made.

        Of device memory another view may have: then it is not as it was.
        """
        if self.written is None or self.written[index]:
            return False
        return self.space != "global" or bool(is_fresh(self.data[index]))

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

    def resolve(self, index, frame, outside=None):
        """(index, whole): an index that is in range, and whether it names one element.

        outside: makes the error for one that is not, as the method of this name does.
        """
        if self.in_range(index):
            return index, True
        if isinstance(index, View):
            index = tuple(index.data.tolist())
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            if part is Ellipsis or part is None:
                return index, False
        if len(parts) > self.ndim:
            raise KernelError(f"{len(parts)} indices for {self.describe()}, which has {self.ndim}")
        place = []
        whole = len(parts) == self.ndim
        for axis, part in enumerate(parts):
            if isinstance(part, slice):
                whole = False
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
                if -length <= i < 0 and written_with_minus(frame.f_code, frame.f_lasti, axis):
                    i += length
                else:
                    raise (outside or self.outside)(parts, axis, i)
            place.append(i)
        return (place[0] if self.ndim == 1 and len(place) == 1 else tuple(place)), whole

    def in_range(self, index):
        """Whether an index is, at a glance, whole numbers from 0 on: nearly every one is."""
        if type(index) is int:
            return self.ndim == 1 and 0 <= index < self.size
        if type(index) is not tuple or len(index) != self.ndim:
            return False
        if self.ndim == 2:  # without a loop: half the time
            i, j = index
            height, width = self.shape
            return type(i) is int and type(j) is int and 0 <= i < height and 0 <= j < width
        for axis, i in enumerate(index):
            if type(i) is not int or not 0 <= i < self.shape[axis]:
                return False
        return True

    # ---- words

    def describe(self):
        name = f"{self.name!r}" if self.name else "array"
        return f"{self.space + ' ' if self.space != 'global' else ''}{name}"

    def outside(self, parts, axis, i):
        """The error of an index that is not in range."""
        return outside(self, parts, axis, i)

    def unwritten(self, index):
        if self.space == "global":
            return UninitializedError(
                f"{self.describe()}[{show_index(index)}] is read, but nothing has written it since "
                f"{made_at.get(self.base, 'cuda.device_array')}",
                "Device memory starts with whatever was there before: copy something there, or "
                "let a kernel write it, first.",
            )
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

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        """NumPy asks this of every ufunc that is called with an array of ours."""
        elementwise.apply(ufunc, method, inputs, out, options)

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


#: Views of device memory that nobody has written in whole: where it was made
made_at = weakref.WeakKeyDictionary()


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
