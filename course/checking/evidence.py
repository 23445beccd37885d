"""What one run shows, element by element, and how places and sizes are written in a sentence."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.checking.engines import Run
from course.checking.model import Exercise, InOut
from utils.check.comparison import agreement

#: Allowed besides the relative tolerance. An exercise's inputs are of the order of 1: where their
#: terms cancel, this much is left of the rounding.
ATOL = 4 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Finding:
    """A reason key, a sentence with the evidence, and the run that shows it best."""

    reason: str
    says: str
    run: Run


def plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the reference takes them; an `Out` stays one, for its shape."""
    return {n: v.array.copy() if isinstance(v, InOut) else v for n, v in arguments.items()}


def agrees(
    actual: np.ndarray, expected: np.ndarray, exercise: Exercise, size: float = 1
) -> np.ndarray:
    """Elementwise: equal up to the rounding that the exercise allows, of terms of this size."""
    if expected.dtype.kind == "f" and exercise.copies:
        same: np.ndarray = (actual == expected) & (np.signbit(actual) == np.signbit(expected))
        return same
    if exercise.rtol == 0:
        equal: np.ndarray = actual == expected
        return equal
    return agreement(actual, expected, exercise.rtol, ATOL * size)


def right(run: Run, exercise: Exercise) -> np.ndarray:
    """Elementwise: this element of the output is right."""
    agree = agrees(run.actual, run.expected, exercise, largest(run) if run.scaled else 1)
    if run.special and run.expected.dtype.kind == "f":
        agree = agree | np.isnan(run.actual) & np.isnan(run.expected)
    return agree


def largest(run: Run) -> float:
    """The largest finite magnitude that should come out of a run."""
    magnitude: float = np.abs(run.expected[np.isfinite(run.expected)]).max(initial=0)
    return magnitude


def unwritten(run: Run, exercise: Exercise) -> np.ndarray:
    """Elementwise: wrong, and nobody wrote it (or it holds, bit for bit, what it held before)."""
    wrong = ~right(run, exercise)
    if run.writers is not None:
        never: np.ndarray = (run.writers == 0) & wrong
        return never
    bits = f"V{run.actual.dtype.itemsize}"
    before = np.ascontiguousarray(run.initial).view(bits)
    after = np.ascontiguousarray(run.actual).view(bits)
    same: np.ndarray = (before == after).reshape(run.actual.shape) & wrong
    return same


def failed(run: Run, exercise: Exercise) -> bool:
    """Whether anything at all was wrong with a run."""
    stray = run.outside_writes or run.outside_reads or modified(run, exercise) or run.broken
    return bool(stray or not right(run, exercise).all())


def modified(run: Run, exercise: Exercise) -> list[str]:
    """Names of the inputs that a kernel changed and should only read."""
    return [name for name in run.modified if name not in exercise.workspace]


def surplus(run: Run, exercise: Exercise) -> tuple[int, ...]:
    """How many threads too many there are along x, y and z."""
    extents = exercise.extents(run.shape)
    return tuple(t - e for t, e in zip(run.launch.threads, extents, strict=True))


def elements(arguments: dict[str, Any]) -> int:
    """How many the largest array among a launch's arguments has."""
    arrays = (getattr(value, "array", value) for value in arguments.values())
    return max(int(np.prod(array.shape)) for array in arrays if hasattr(array, "shape"))


def where(index: Iterable) -> str:
    """An index as it is written in a program: 5 or [2, 7]."""
    numbers = [int(i) for i in index]
    return str(numbers[0] if len(numbers) == 1 else numbers)


def trim(dims: Iterable[int]) -> tuple[int, ...]:
    """(32, 1, 1) -> (32,): without the trailing ones."""
    dims = tuple(dims)
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return dims
