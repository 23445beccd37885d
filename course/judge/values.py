"""Arguments and results as values: what a reference takes, what two results have in common."""

import numpy as np

from course.judge import sandbox
from course.judge.demands import InOut, Out
from course.judge.sandbox import Array, Opaque
from utils import has_gpu


def plain_of(argument):
    """What a candidate is given for an argument, as far as a reference and a launch use it."""
    return argument.array if isinstance(argument, InOut) else argument


def name_of(value):
    """The name of an array's type; None for what is no array."""
    if isinstance(value, np.ndarray):
        return value.dtype.name
    if sandbox.is_tensor(value):
        return str(value.dtype).removeprefix("torch.")
    return None


def wide(value):
    """A copy in float64 of what holds floats."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype.kind == "f" else value.copy()
    if sandbox.is_tensor(value):
        return value.detach().cpu().double() if value.is_floating_point() else value.clone().cpu()
    return value


def plain_result(value):
    """A reference's result as NumPy arrays, in tuples."""
    if isinstance(value, tuple | list):
        if all(isinstance(one, int | float | np.number) for one in value):
            return as_array(tuple(value))
        return tuple(plain_result(one) for one in value)
    if sandbox.is_tensor(value):
        value = value.detach().cpu()
        return (value.double() if value.is_floating_point() else value).numpy()
    return value if isinstance(value, str | type(None)) else np.asarray(value)


def arguments_of(arguments):
    """What the reference is given of a call's arguments."""
    return [plain_of(one) for one in arguments if not isinstance(one, Out)]


def shapes(arguments):
    """Types and shapes of arguments, by which other values fit into their places."""
    return [
        (name_of(plain_of(one)), tuple(plain_of(one).shape)) if name_of(plain_of(one)) else one
        for one in arguments
        if not isinstance(one, Out)
    ]


def values_of(got):
    """A result's values as NumPy arrays, in tuples."""
    if isinstance(got, tuple):
        return tuple(map(values_of, got))
    return got.values if isinstance(got, Array) else got


def same_bits(a, b):
    """Whether two results are the same, bit by bit."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_bits, a, b))
    if isinstance(a, Array) and isinstance(b, Array):
        return a.values.shape == b.values.shape and a.values.tobytes() == b.values.tobytes()
    return a == b


def finite(value):
    """Whether all floats in a value are finite."""
    if isinstance(value, tuple):
        return all(map(finite, value))
    value = plain_of(value)
    if sandbox.is_tensor(value):
        return not value.is_floating_point() or bool(value.isfinite().all())
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return bool(np.isfinite(value).all())
    return True


def as_array(values):
    """A tuple of numbers as an array; a tuple of anything else as it is."""
    try:
        array = np.asarray([one.values if isinstance(one, Array) else one for one in values])
    except (ValueError, TypeError):
        return Opaque("tuple")
    return array if array.dtype.kind in "biuf" else Opaque("tuple")


def poisoned(out, rng):
    """An array as an output arrives: NaN or numbers that are no answer, other ones each time."""
    dtype = np.dtype(out.dtype)
    if dtype.kind == "f":
        array = np.full(out.shape, np.nan, dtype)
    elif dtype.kind == "b":
        array = rng.random(out.shape) < 0.5
    else:
        most = min(np.iinfo(dtype).max, 1 << 30)
        array = rng.integers(most // 2, most, size=out.shape).astype(dtype)
    if not out.tensor:
        return array
    import torch

    return torch.from_numpy(array).to("cuda" if has_gpu() else "cpu")
