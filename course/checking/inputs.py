"""Random inputs, shapes and extents that many exercises share."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Generator = np.random.Generator
SMALL = np.float32(2**-13)  # of some numbers: who takes them for zero is wrong by as much
SHARE = 1 / 16  # of a random array's elements that are small, and of those that are 0


def uniform(rng: Generator, *shape: int) -> np.ndarray:
    """Random float32 values between -1 and 1: of either sign, some near 0, some 0."""
    return with_small(rng, rng.uniform(-1, 1, size=shape).astype(np.float32))


def with_small(rng: Generator, values: np.ndarray) -> np.ndarray:
    """These values, some of them 0 and some far smaller than they were."""
    np.multiply(values, SMALL, out=values, where=rng.random(values.shape) < SHARE)
    return with_zeros(rng, values, SHARE)


def factor(rng: Generator, *shape: int) -> Any:
    """A random float32 number, or an array, of either sign, not near 0 or 1 or -1."""
    return np.float32(rng.choice((-1, 1), shape) * rng.uniform(1.1, 3, shape))


def some_zeros(rng: Generator, *shape: int) -> np.ndarray:
    """The same, an eighth of them exactly 0: what a kernel that copies must copy, too."""
    return with_zeros(rng, uniform(rng, *shape))


def with_zeros(rng: Generator, values: np.ndarray, share: float = 1 / 8) -> np.ndarray:
    """These values, a share of them exactly 0: a zero means neither "nothing" nor "the end"."""
    np.putmask(values, rng.random(values.shape) < share, 0)
    return values


def normal(rng: Generator, *shape: int) -> np.ndarray:
    """Random float32 values around 0."""
    return rng.normal(size=shape).astype(np.float32)


def exact(rng: Generator, *shape: int) -> np.ndarray:
    """Small whole numbers as float32: sums of a million products of two are exact in any order."""
    return rng.integers(-4, 5, shape).astype(np.float32)


def whole(rng: Generator, low: int, high: int, shape: int | tuple[int, ...]) -> np.ndarray:
    """Random whole numbers from low to high - 1, as int32."""
    return rng.integers(low, high, shape).astype(np.int32)


def lengths(*sizes: int) -> tuple[tuple[int], ...]:
    """The shapes of arrays with one axis."""
    return tuple((size,) for size in sizes)


class SomeNumbers:
    """A shape of random whole numbers, one for each (low, high), high excluded.

    few: whether arrays with fewer elements than a warp has lanes are tried, too.
    """

    def __init__(self, ranges: Sequence[tuple[int, int]], few: bool = False) -> None:
        self.ranges, self.few = ranges, few

    def __call__(self, rng: Generator) -> tuple[int, ...]:
        return tuple(int(rng.integers(low, high)) for low, high in self.ranges)

    def small(self, rng: Generator) -> tuple[tuple[int], ...]:
        """Shapes with few elements, no multiple of 4: to them a rule of thumb may not apply."""
        fours = ((0, 4), (4, 7)) if self.few else ()
        return tuple((4 * int(rng.integers(*each)) + int(rng.integers(2, 4)),) for each in fours)

    def draws(self, strategies: Any) -> Any:
        """Hypothesis's strategy for the same shapes."""
        numbers = (strategies.integers(low, high - 1) for low, high in self.ranges)
        return strategies.tuples(*numbers)


def some_numbers(*ranges: tuple[int, int], few: bool = False) -> SomeNumbers:
    """`Exercise.fresh`: a shape with a random whole number for each (low, high), high excluded."""
    return SomeNumbers(ranges, few)


class SomeLength(SomeNumbers):
    """`Exercise.fresh`: the shape of an array; where it is not Hypothesis's, no multiple of 32."""

    def __call__(self, rng: Generator) -> tuple[int, ...]:
        return (int(rng.integers(3, 8) * 32 + rng.integers(1, 32)),)


some_length = SomeLength([(1, 256)], few=True)


def some_picture(rng: Generator) -> tuple[int, int]:
    """(height, width) of a picture, never square."""
    width = int(rng.integers(2, 25))
    return width + int(rng.integers(1, 10)), width


def a_thread_each(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """`Exercise.extents`: along x a thread for every element of an array of this shape."""
    return int(np.prod(shape)), 1, 1


def a_thread_a_row(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """`Exercise.extents`: along x a thread for every row."""
    return shape[0], 1, 1


def columns_and_rows(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """`Exercise.extents`: along x a thread for every column, along y for every row."""
    return shape[1], shape[0], 1


def of_any_size(some: Any, most: int) -> Any:
    """Hypothesis's strategy of whole numbers from 0 to most: of few digits as often as of many.

    Each has as many bits as were drawn: of a wide range Hypothesis itself takes small ones mostly.
    """
    bits = some.integers(0, most.bit_length())
    return bits.flatmap(lambda n: some.integers(1 << n >> 1, min(1 << n, most)))


def arguments_of(function: Callable) -> Callable[[Generator, tuple], dict[str, Any]]:
    """`Exercise.inputs` of a plain function: a shape is what its parameters get, in their order."""
    names = list(inspect.signature(function).parameters)
    return lambda rng, shape: dict(zip(names, shape, strict=True))


class Counted:
    """A function for an answer to call; `calls` says how often it did. A copy begins anew."""

    def __init__(self, function: Callable) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.calls += 1
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return self.function.__name__
