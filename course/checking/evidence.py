"""What one run shows, element by element, and how places and sizes are written in a sentence."""

from dataclasses import dataclass

import numpy as np

from course.checking.model import InOut
from utils.check.comparison import agreement

#: Allowed besides the relative tolerance. An exercise's inputs are of the order of 1: where their
#: terms cancel, this much is left of the rounding.
ATOL = 4 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Finding:
    """A reason key, a sentence with the evidence, and the run that shows it best."""

    reason: str
    says: str
    run: object


def plain(arguments):
    """The arguments as the reference takes them; an `Out` stays one, for its shape."""
    return {n: v.array.copy() if isinstance(v, InOut) else v for n, v in arguments.items()}


def agrees(actual, expected, exercise, size=1):
    """Elementwise: equal up to the rounding that the exercise allows, of terms of this size."""
    if expected.dtype.kind == "f" and exercise.copies:
        return (actual == expected) & (np.signbit(actual) == np.signbit(expected))
    if exercise.rtol == 0:
        return actual == expected
    return agreement(actual, expected, exercise.rtol, ATOL * size)


def right(run, exercise):
    """Elementwise: this element of the output is right."""
    agree = agrees(run.actual, run.expected, exercise, largest(run) if run.scaled else 1)
    if run.special and run.expected.dtype.kind == "f":
        agree = agree | np.isnan(run.actual) & np.isnan(run.expected)
    return agree


def largest(run):
    """The largest finite magnitude that should come out of a run."""
    return np.abs(run.expected[np.isfinite(run.expected)]).max(initial=0)


def unwritten(run, exercise):
    """Elementwise: wrong, and nobody wrote it (or it holds, bit for bit, what it held before)."""
    if run.writers is not None:
        return (run.writers == 0) & ~right(run, exercise)
    bits = f"V{run.actual.dtype.itemsize}"
    before = np.ascontiguousarray(run.initial).view(bits)
    after = np.ascontiguousarray(run.actual).view(bits)
    same = (before == after).reshape(run.actual.shape)
    return same & ~right(run, exercise)


def failed(run, exercise):
    """Whether anything at all was wrong with a run."""
    stray = run.outside_writes or run.outside_reads or modified(run, exercise) or run.broken
    return bool(stray or not right(run, exercise).all())


def modified(run, exercise):
    """Names of the inputs that a kernel changed and should only read."""
    return [name for name in run.modified if name not in exercise.workspace]


def surplus(run, exercise):
    """How many threads too many there are along x, y and z."""
    extents = exercise.extents(run.shape)
    return tuple(t - e for t, e in zip(run.launch.threads, extents, strict=True))


def elements(arguments):
    """How many the largest array among a launch's arguments has."""
    arrays = (getattr(value, "array", value) for value in arguments.values())
    return max(int(np.prod(array.shape)) for array in arrays if hasattr(array, "shape"))


def where(index):
    """An index as it is written in a program: 5 or [2, 7]."""
    index = [int(i) for i in index]
    return str(index[0] if len(index) == 1 else index)


def trim(dims):
    """(32, 1, 1) -> (32,): without the trailing ones."""
    dims = tuple(dims)
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return dims
