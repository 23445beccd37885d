"""Kernel arguments: what a launch takes, and how each looks inside the kernel."""

import numbers

import numpy as np

from ...sizes import Size
from . import devices
from .arrays import View, made_at, view
from .device_arrays import DeviceNDArray, DeviceRecord, check_contiguous, host_view
from .elements import as_dtype
from .errors import KernelError
from .stand_ins import Cast
from .state import now
from .types_of_numbers import Type, literal, of_dtype, rounded


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
    if isinstance(arg, DeviceNDArray):
        return of_device(arg, name)
    if data is not None:
        return view(data, name)
    if isinstance(arg, np.void) and arg.dtype.names:
        record = np.array(arg, np.dtype((np.record, arg.dtype)))[()]
        if hint.copy_out:
            back.append((arg, record))
        return record
    if isinstance(arg, np.ndarray):
        return of_host(arg, name, hint, back)
    if isinstance(arg, tuple):
        parts = [argument(part, f"{name}[{i}]", back) for i, part in enumerate(arg)]
        return type(arg)(*parts) if hasattr(arg, "_fields") else tuple(parts)
    if arg is None or hasattr(arg, "cpu_dtype"):
        return arg
    return number(arg, name)


def number(arg, name):
    """A number, or an Enum's member, as kernels have it; TypeError for what is none."""
    if isinstance(arg, (bool, np.bool_)):
        return bool(arg)
    if isinstance(arg, numbers.Integral) and not isinstance(arg, np.timedelta64):
        if not -(2**63) <= arg < 2**64:
            raise OverflowError(f"argument {name!r}: {arg} does not fit 64 bits")
        return int(arg)
    if isinstance(arg, np.generic):
        return arg
    if isinstance(arg, float):
        return np.float64(arg)
    if isinstance(arg, complex):
        return np.complex128(arg)
    if hasattr(type(arg), "__members__"):  # of an Enum
        return arg
    raise TypeError(
        f"argument {name!r}: a kernel cannot take a {type(arg).__name__}. It takes arrays, "
        "numbers, booleans and tuples of them"
        + ("; turn it into an array with np.array(...)" if isinstance(arg, (list, set)) else "")
    )


def of_host(array, name, hint, back):
    """A copy of a host array on the device, as `hint` says: filled, noted in `back`, or both."""
    if array.dtype == object or array.dtype.kind in "OSU":
        raise TypeError(f"argument {name!r}: a kernel cannot take an array of {array.dtype}")
    check_contiguous(array)
    copy = np.array(array, order="K") if hint.copy_in else np.empty_like(array)
    if hint.copy_out and array.flags.writeable:
        back.append((array, copy))
    return view(copy, name)


def of_device(array, name):
    """A device array as the kernel gets it: reads of what nobody has written are told.

    So is any use of another device's.
    """
    if not devices.may_reach(devices.current(), array.device_id):
        return Closed(array.data, name, array.device_id, devices.current())
    if isinstance(array, DeviceRecord):
        return array.data.view(np.dtype((np.record, array.data.dtype)))[()]
    watched = now.watching or now.unwritten_allowed
    written = None if watched else array.written()
    if written is None:
        return view(array.data, name)
    result = view(array.data, name, written=written)
    made_at[result] = array.made
    return result


def type_of(arg):
    """What Numba would compile for: distinguishes argument types."""
    if isinstance(arg, View):
        return arg.dtype, arg.ndim
    if isinstance(arg, tuple):
        return tuple(type_of(part) for part in arg)
    return type(arg)


def kind_of(arg, given=None):
    """As type_of, but of an integer its type, and how many bits it has: small ones need no care.

    given: the argument as the host wrote it, which may be a number of NumPy's.
    """
    if isinstance(given, In):
        given = given.value
    if isinstance(arg, tuple):
        return tuple(map(kind_of, arg, arg if given is None else given))
    if isinstance(arg, np.void):
        return arg.dtype
    if isinstance(arg, Size):
        arg = int(arg)
    if type(arg) is not int:
        return type_of(arg)
    kind = of_dtype(given.dtype) if isinstance(given, np.integer) else literal(arg)
    return of_size(kind, arg)


def of_size(kind, arg):
    """The type of an integer that has the size of this one."""
    return rounded(kind._replace(size=min(arg.bit_length() + 1, kind.bits)))


def match(kernel, args, key):
    """Arguments cast to the first of the kernel's signatures that they fit, and their types."""
    for types in kernel.signatures_given:
        if len(types) == len(args) and all(
            fits(arg, t) for arg, t in zip(args, types, strict=True)
        ):
            cast = [to_type(arg, t) for arg, t in zip(args, types, strict=True)]
            return cast, tuple(map(kind_of_cast, cast, types))
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
    return int(value) if isinstance(value, np.uint64) else value


def cast_to(value, numba_type):
    """A number as a device function's signature has it; anything else as it is."""
    is_number = isinstance(value, (numbers.Number, np.bool_))
    return to_type(value, numba_type) if is_number else value


def kind_of_cast(arg, numba_type):
    """As kind_of, of an argument that a signature's type was given."""
    kind = kind_of_type(numba_type)
    return of_size(kind, arg) if type(arg) is int and isinstance(kind, Type) else kind


def kind_of_type(numba_type):
    """As kind_of, of what a signature says; None: leave that argument to Python and NumPy."""
    ndim = getattr(numba_type, "ndim", None)
    try:
        dtype = as_dtype(numba_type if ndim is None else numba_type.dtype)
    except TypeError:  # a tuple, say
        return None
    if ndim is not None:
        return dtype, ndim
    return of_dtype(dtype)
