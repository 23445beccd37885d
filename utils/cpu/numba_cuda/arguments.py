"""Kernel arguments: what a launch takes, and how each looks inside the kernel."""

import numbers

import numpy as np

from . import devices
from .arrays import Closed, View, as_dtype, view
from .memory import DeviceNDArray, DeviceRecord, check_contiguous, host_view
from .namespace import Cast


class In:
    """Kernel argument that is copied to the device only."""

    copy_in, copy_out = True, False

    def __init__(self, value):
        self.value = value


class Out(In):
    """Kernel argument that is copied back only."""

    copy_in, copy_out = False, True


class InOut(In):
    """Kernel argument that is copied both ways, as every host array is without a hint."""

    copy_out = True


def argument(arg, name, back):
    """`arg` as the kernel gets it.

    back: gets (host array, device copy) for what is copied back.
    """
    hint = InOut
    if isinstance(arg, In):
        hint = type(arg)
        arg = arg.value
    if isinstance(arg, View):  # a tool's own kind of array
        return arg
    data = host_view(arg)
    if isinstance(arg, DeviceNDArray) and not devices.may_reach(devices.current(), arg.device_id):
        return Closed(data, name, arg.device_id, devices.current())
    if isinstance(arg, DeviceRecord):
        return data.view(np.dtype((np.record, data.dtype)))[()]
    if data is not None:
        return view(data, name)
    if isinstance(arg, np.void) and arg.dtype.names:
        record = np.array(arg, np.dtype((np.record, arg.dtype)))[()]
        if hint.copy_out:
            back.append((arg, record))
        return record
    if isinstance(arg, np.ndarray):
        if arg.dtype == object or arg.dtype.kind in "OSU":
            raise TypeError(f"argument {name!r}: a kernel cannot take an array of {arg.dtype}")
        check_contiguous(arg)
        if hint.copy_in:
            copy = np.array(arg, order="K")
        else:
            copy = np.empty_like(arg)
        if hint.copy_out and arg.flags.writeable:
            back.append((arg, copy))
        return view(copy, name)
    if isinstance(arg, (bool, np.bool_)):
        return bool(arg)
    if isinstance(arg, numbers.Integral) and not isinstance(arg, (np.uint64, np.timedelta64)):
        if not -(2**63) <= arg < 2**64:
            raise OverflowError(f"argument {name!r}: {arg} does not fit 64 bits")
        return int(arg)
    if isinstance(arg, np.generic):
        return arg
    if isinstance(arg, float):
        return np.float64(arg)
    if isinstance(arg, complex):
        return np.complex128(arg)
    if isinstance(arg, tuple):
        parts = [argument(part, f"{name}[{i}]", back) for i, part in enumerate(arg)]
        return type(arg)(*parts) if hasattr(arg, "_fields") else tuple(parts)
    if arg is None or hasattr(arg, "cpu_dtype") or hasattr(type(arg), "__members__"):
        return arg
    raise TypeError(
        f"argument {name!r}: a kernel cannot take a {type(arg).__name__}. It takes arrays, "
        "numbers, booleans and tuples of them"
        + ("; turn it into an array with np.array(...)" if isinstance(arg, (list, set)) else "")
    )


def type_of(arg):
    """What Numba would compile for: distinguishes argument types."""
    if isinstance(arg, View):
        return arg.dtype, arg.ndim
    if isinstance(arg, tuple):
        return tuple(type_of(part) for part in arg)
    return type(arg)


def match(kernel, args, key):
    """Arguments cast to the first of the kernel's explicit signatures that they fit."""
    for types in kernel.signatures_given:
        if len(types) == len(args) and all(
            fits(arg, t) for arg, t in zip(args, types, strict=True)
        ):
            return [to_type(arg, t) for arg, t in zip(args, types, strict=True)]
    shown = ", ".join(
        f"array({k[0]}, {k[1]}d)" if isinstance(k, tuple) and len(k) == 2 else k.__name__
        for k in key
    )
    raise TypeError(
        f"No matching definition for argument type(s) {shown}; {kernel.__name__} was compiled for "
        + " or ".join(str(tuple(types)) for types in kernel.signatures_given)
    )


def fits(arg, numba_type):
    ndim = getattr(numba_type, "ndim", None)
    if ndim is not None:
        return (
            isinstance(arg, View)
            and arg.ndim == ndim
            and same_or_signed(arg.dtype, as_dtype(numba_type.dtype))
            and (numba_type.layout != "C" or arg.data.flags.c_contiguous)
            and (numba_type.layout != "F" or arg.data.flags.f_contiguous)
        )
    return not isinstance(arg, View)


def same_or_signed(given, wanted):
    """Whether the types are equal, or integers of one size (whose bits are taken as they are)."""
    return (
        given == wanted
        or {given.kind, wanted.kind} == {"i", "u"}
        and given.itemsize == wanted.itemsize
    )


def to_type(arg, numba_type):
    if isinstance(arg, View):
        return (
            arg if arg.dtype == as_dtype(numba_type.dtype) else arg.view(as_dtype(numba_type.dtype))
        )
    if isinstance(arg, tuple):
        return arg
    value = Cast(as_dtype(numba_type))(arg)
    return value
