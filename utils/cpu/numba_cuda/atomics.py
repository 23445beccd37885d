"""cuda.atomic: read, change and write one element undisturbed."""

import operator
import sys

import numpy as np

from .arrays import View
from .elements import cast
from .errors import KernelError
from .observe import watched
from .state import now

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
    if name != "exch" and array.is_unwritten(index):
        raise array.unwritten(index)
    return index


def _done(array, index, frame):
    """Note an atomic operation; others may run before what the thread makes of its result."""
    if now.watching:
        watched(array, index, "atomic", frame)
    else:
        now.launch.give_way()


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
        _done(array, index, frame)
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
    inc = _atomic(
        "inc",
        _UNSIGNED,
        lambda old, value: 0 if old >= value else old + 1,
    )
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
        _done(array, index, frame)
        return there

    @staticmethod
    def compare_and_swap(array, old, value):
        """array[0] = value if it is `old`; returns what was there."""
        return atomic.cas(array, (0,) * array.ndim, old, value)
