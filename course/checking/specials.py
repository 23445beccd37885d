"""Numbers that arithmetic treats apart: infinity, NaN, -0, the smallest ones, beside zeros.

A right kernel hands them on as IEEE 754 says: zero times infinity is NaN, and a product that is
left out because a factor is zero, or that should not have been made at all, shows. And it keeps
the digits of numbers that are very small, and does not cut off large ones.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from course.checking.model import Exercise, InOut

ROUNDS = 2  # one infinity may hide what another shows: of the launches for each array
INFINITIES = 3  # besides one at each end
ZEROS = 1 / 4  # the share of zeros, of both signs, in the arrays beside the one with infinities


def special_inputs(exercise: Exercise, shape: tuple, seed: int) -> Iterator[dict[str, Any]]:
    """The arguments of some launches for each array of floats, with special numbers in that one.

    shape: of the exercise. seed: of its inputs; the same every time, as where the numbers stand.
    """
    arguments = exercise.inputs(np.random.default_rng(seed), shape)
    names = [name for name, value in arguments.items() if holds_floats(value)]
    special = [name for name in names if name not in exercise.finite]
    for number, name in enumerate(ROUNDS * special):
        rng = np.random.default_rng((seed, number))
        given = exercise.inputs(np.random.default_rng(seed), shape)
        for other in names:
            fill = FILLS[exercise.specials] if other == name else with_zeros
            given[other] = changed(given[other], functools.partial(fill, rng=rng))
        yield given


MOST_OF_HALF = 13  # the largest power for arrays of float16


def scaled_inputs(exercise: Exercise, shape: tuple, seed: int) -> Iterator[dict[str, Any]]:
    """The arguments of a launch for each array of floats and each of `Exercise.powers`.

    That array's largest number becomes 2 to that power: a float keeps its digits there.
    """
    for power in exercise.powers:
        arguments = exercise.inputs(np.random.default_rng(seed), shape)
        for name in [name for name, value in arguments.items() if holds_floats(value)]:
            given = exercise.inputs(np.random.default_rng(seed), shape)
            given[name] = changed(given[name], functools.partial(scaled, power=power))
            yield given


def scaled(array: np.ndarray, power: int) -> np.ndarray:
    """A copy times a power of two, by which its largest finite number comes to 2 ** power."""
    if array.dtype == np.float16:
        power = int(np.clip(power, -MOST_OF_HALF, MOST_OF_HALF))
    largest = np.abs(array[np.isfinite(array)]).max(initial=0)
    _, exponent = np.frexp(largest)
    made: np.ndarray = np.ldexp(array, power - int(exponent))
    return made


def holds_floats(argument: object) -> bool:
    """Whether an argument is an array of floats that the kernel reads."""
    array = getattr(argument, "array", argument)
    return isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.size > 0


def changed(argument: Any, fill: Callable[[np.ndarray], np.ndarray]) -> Any:
    """An argument with its array filled by `fill(array)`."""
    if isinstance(argument, InOut):
        return InOut(fill(argument.array))
    return fill(argument)


def with_infinities(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A copy with infinities at its ends, -0 and the smallest numbers somewhere between."""
    special = array.copy()
    limits = np.finfo(special.dtype)
    smallest = limits.smallest_subnormal
    few = np.array([-0.0, 3 * smallest, -smallest, limits.tiny], special.dtype)
    places = rng.permutation(special.size)
    special.flat[places[: few.size]] = few[: special.size]
    special.flat[places[few.size :][:INFINITIES]] = np.inf
    special.flat[[0, -1]] = rng.permutation([-np.inf, np.inf])
    return special


def with_nan(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same, and NaN in one place."""
    special = with_infinities(array, rng)
    special.flat[rng.integers(special.size)] = np.nan
    return special


def with_zeros(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A copy in which some numbers are 0 or -0."""
    some = array.copy()
    places = rng.random(some.shape) < ZEROS
    some[places] = rng.choice([0.0, -0.0], size=places.sum())
    return some


FILLS = {"any": with_nan, "no_nan": with_infinities}  # by `Exercise.specials`
