"""What an element of an array can be: types, casts as a GPU casts, what memory holds unwritten."""

import functools

import numpy as np

from .errors import KernelError

#: What new device memory is full of: as a float NaN, of a kind that no arithmetic makes
_FRESH = {
    np.dtype(kind): np.array(bits, f"u{np.dtype(kind).itemsize}")
    for kinds, bits in (
        (("i4", "u4"), 0xCDCDCDCD),
        (("i8", "u8"), 0xCDCDCDCDCDCDCDCD),
        (("f4",), 0x7FCDCDCD),
        (("f8",), 0x7FFDCDCDCDCDCDCD),
    )
    for kind in kinds
}


def fill_fresh(data):
    """Fill new device memory, so that what nobody writes can be told where its type allows it."""
    if data.dtype in _FRESH:
        data.view(_FRESH[data.dtype].dtype)[...] = _FRESH[data.dtype]
    else:
        poison(data)


def is_fresh(data):
    """Which elements are as `fill_fresh` has left them; none, of types that do not show it."""
    data = np.asarray(data)
    bits = _FRESH.get(data.dtype)
    return np.zeros(data.shape, bool) if bits is None else data.view(bits.dtype) == bits


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
            # numba-cuda's own: a half becomes the nearest integer, wider ones are cut off
            value = float(np.rint(value) if isinstance(value, np.float16) else value)
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
    if hasattr(value, "describe"):
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
