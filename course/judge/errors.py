"""How wrong a right result may be: bounds of rounding errors, derived and not wished for.

A tolerance that is chosen by taste lets a kernel in fp16 pass for one in fp32. These bounds follow
from what the operation does: how many roundings, in which type, and how large the terms are. The
error of a sum of products is proportional to the sum of the terms' *magnitudes*, not to the result,
which may be near zero because large terms cancel.

Roundings of n different terms go up as often as down, so that their sum grows as the root of n. One
term that comes again is rounded the same way each time, while the partial sum keeps its exponent: n
equal terms may be off by n roundings. Between the two lies what `repeats` counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from course.judge import sandbox
from utils.check import rounding_bound

#: Half the distance from 1 to the next number of each type. tf32 has the digits of fp16 and the
#: range of fp32; e4m3 has 3 stored bits, e5m2 has 2.
UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4,
    "float8_e5m2": 2.0**-3,
}
#: The smallest positive number of each type, which a result near zero may miss. Results in float32
#: may be flushed to zero below its smallest normal number.
UNDERFLOW = {
    "float64": 2.0**-1074,
    "float32": 2.0**-126,
    "tf32": 2.0**-126,
    "float16": 2.0**-24,
    "bfloat16": 2.0**-126,
    "float8_e4m3fn": 2.0**-9,
    "float8_e5m2": 2.0**-16,
}


#: Up to so many roundings the certain bound is no wider than that of random ones
FEW = 64
#: Of an array so many lines, and so many numbers of each, are looked at for being there again
LINES, LONGEST = 64, 1 << 17

#: No bound is wider: with twice this, zeros would be right
WIDEST = 0.5


@dataclass(frozen=True)
class Bound:
    """|result - exact| may be at most this, element by element.

    operations: roundings behind one element, in the type that accumulates; a number, or a function
        of the arguments that gives it.
    accumulate, output: names of types, keys of UNIT_ROUNDOFF. output: of the result; None for the
        same as accumulate.
    inputs: the type to which factors are rounded before they are multiplied, where that is less
        than what is handed in (tf32 for float32 arrays); each factor adds one rounding.
    factors: of each product.
    magnitude: function of the arguments (in float64) that gives, for each element, the sum of the
        magnitudes of its terms; None for the reference of the arguments' magnitudes, which is that
        of sums, products and convolutions; "result" for the magnitude of the result itself, but
        at least that of a typical element; "itself" for that of each element alone, where no
        terms cancel (a softmax).
    exact: the result must be the very same numbers; all else is left out. +0 and -0 are told apart
        where the task's floats may be any, see `Demands`.
    as_drawn: it is one for terms as the task draws them. Sorted ones, which cancel only when most
        of them are summed, are off by more.
    """

    operations: float | Callable = 8
    accumulate: str = "float32"
    output: str | None = None
    inputs: str | None = None
    factors: int = 2
    magnitude: Callable | str | None = "result"
    exact: bool = False
    as_drawn: bool = False

    def relative(self, arguments) -> float:
        """The largest error as a share of the terms' magnitudes."""
        count = self.operations(*arguments) if callable(self.operations) else self.operations
        count, unit = max(1, count), UNIT_ROUNDOFF[self.accumulate]
        without_zeros = self.magnitude is None  # a product with 0 is 0, and is added exactly
        error = rounding_bound(count * repeats(arguments, count, without_zeros), unit)
        if count * unit < 1:
            error = min(error, count * unit / (1 - count * unit))  # the certain bound
        if self.inputs:
            error += self.factors * UNIT_ROUNDOFF[self.inputs]
        return min(error, WIDEST)

    def of(self, expected: np.ndarray, arguments: tuple, reference: Callable) -> np.ndarray:
        """The largest error of each element.

        expected: the reference's result in float64. arguments: what the reference was given.
        """
        output = self.output or self.accumulate
        size = self._magnitude(expected, arguments, reference)
        size = np.where(np.isfinite(size), size, 0)
        last = UNIT_ROUNDOFF[output] * np.abs(np.where(np.isfinite(expected), expected, 0))
        smallest = max(UNDERFLOW[output], UNDERFLOW[self.accumulate])
        return self.relative(arguments) * size + last + smallest

    def _magnitude(self, expected, arguments, reference):
        if self.magnitude == "itself":
            return np.abs(expected)
        if self.magnitude == "result":
            return np.maximum(np.abs(expected), typical(expected))
        if self.magnitude is None:
            return np.abs(np.asarray(reference(*map(magnitude_of, arguments)), np.float64))
        return np.abs(np.asarray(self.magnitude(*arguments), np.float64))


def repeats(arguments, count, without_zeros=False) -> float:
    """How many of a sum's `count` terms are equal to one of them, on average; 1 where all differ.

    The terms are functions of the arguments' numbers, which lie along an axis, or anywhere where a
    sum has more terms than any axis: the argument whose numbers come again most often counts.
    without_zeros: 0 is no number there.
    """
    if count <= FEW:
        return 1.0
    found = [1.0]
    for argument in arguments:
        if sandbox.is_tensor(argument):
            argument = argument.detach().cpu().numpy()
        if isinstance(argument, np.ndarray) and argument.dtype.kind in "biuf" and argument.ndim:
            found += [same(line, count, without_zeros) for line in lines(argument, count)]
    return max(found)


def lines(array, count):
    """Some lines of an array along each axis; all of it as one where a sum has more terms."""
    if count > 2 * max(array.shape):
        yield array.reshape(-1)
        return
    for axis, length in enumerate(array.shape):
        if length > 1:
            rows = np.moveaxis(array, axis, -1).reshape(-1, length)
            yield from some(rows, LINES)


def same(line, count, without_zeros) -> float:
    """Of `count` numbers of a line that are drawn by chance: how many are equal to the first."""
    line = line[line != 0] if without_zeros else line
    if line.size < 2:
        return 1.0
    _, times = np.unique(some(line, LONGEST), return_counts=True)
    sample = times.sum()
    equal = float((times * (times - 1.0)).sum() / (sample * (sample - 1.0)))
    return 1 + (min(count, line.size) - 1) * equal


def some(rows, most):
    """So many rows of an array at most, which stand in no order of their own."""
    if len(rows) <= most:
        return rows
    return rows[np.random.default_rng(0).choice(len(rows), most, replace=False)]


def magnitude_of(argument):
    """The magnitudes of an array, a tensor or a number of floats; anything else as it is."""
    if isinstance(argument, float | np.floating):
        return abs(argument)
    if isinstance(argument, np.ndarray):
        return np.abs(argument) if argument.dtype.kind == "f" else argument
    if sandbox.is_tensor(argument) and argument.is_floating_point():
        return argument.abs()
    return argument


def typical(expected) -> float:
    """Median magnitude of the finite results that are not zero."""
    size = np.abs(expected[np.isfinite(expected)])
    size = size[size > 0]
    return float(np.median(size)) if size.size else 0.0


def sum_of_products(
    n: float | Callable, inputs: str = "float32", accumulate: str = "float32", output=None
) -> Bound:
    """The bound of a dot product, a matrix product, a convolution: sums of n products.

    n: a number, or a function of the arguments. inputs: "float32", "tf32", "float16", "bfloat16":
    a product of two fp16 or bf16 numbers is exact in fp32, so that only the sum rounds. With
    accumulate="float16" each of the n additions rounds to 11 bits.
    """
    rounded = inputs if inputs == "tf32" else None
    return Bound(n, accumulate, output or accumulate, rounded, magnitude=None)


def elementwise(operations: float | Callable, dtype: str = "float32") -> Bound:
    """The bound of a result made of a few operations on one element."""
    return Bound(operations, dtype, dtype)


#: The very same values: integers, copies, sorts.
exactly = Bound(exact=True)
