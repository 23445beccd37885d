"""Functions of numbers that kernels call: bits, fused multiply-add, cube root, select."""

import math

import numpy as np


def _width(value):
    """How many bits a value has; a Python int has 32 where that is enough."""
    if isinstance(value, np.integer):
        return 8 * value.dtype.itemsize
    return 32 if -(2**31) <= value < 2**32 else 64


def _bits(value):
    """The bits of a value as an unsigned number."""
    return int(value) & (1 << _width(value)) - 1


def popc(value, bits=None):
    """The number of bits set, of as many as the value's type has where that is known."""
    if bits is not None:
        return (int(value) & (1 << bits) - 1).bit_count()
    return _bits(value).bit_count()


def brev(value, bits=None):
    """The bits in reverse order, of 64 where the value's type has as many."""
    width = _width(value) if bits is None else max(bits, 32)
    digits = f"{int(value) & (1 << width) - 1:0{width}b}"
    return int(digits[::-1], 2)


def clz(value, bits=None):
    """The number of zero bits above the highest bit set, as popc counts them."""
    if bits is not None:
        return bits - (int(value) & (1 << bits) - 1).bit_length()
    return _width(value) - _bits(value).bit_length()


def ffs(value):
    """The place of the lowest bit set, counted from 1; 0 if there is none."""
    value = int(value)
    return (value & -value).bit_length()


def fma(a, b, c):
    """a * b + c, rounded once."""
    types = [x if isinstance(x, np.generic) else np.float64 for x in (a, b, c)]
    kind = np.result_type(*types).type
    if kind is np.float32:
        return np.float32(_sum_to_odd(float(a) * float(b), float(c)))  # the product is exact
    exact = None
    if all(math.isfinite(x) for x in (a, b, c)):
        exact = _exact(a) * _exact(b) + _exact(c)
    return kind(a * b + c) if exact is None else kind(float(exact))


def _sum_to_odd(x, y):
    """x + y as a float64 whose last bit tells that something was lost: it rounds once more."""
    total = x + y
    if not math.isfinite(total):
        return total
    of_y = total - x
    lost = (x - (total - of_y)) + (y - of_y)
    if lost and not int(np.float64(total).view(np.int64)) & 1:
        return math.nextafter(total, math.copysign(math.inf, lost))
    return total


def smaller(x, y):
    """min of two floats: a number before NaN."""
    return y if x != x or y < x else x


def larger(x, y):
    """max of two floats: a number before NaN."""
    return y if x != x or y > x else x


def _exact(x):
    from fractions import Fraction

    return Fraction(float(x))


def cbrt(value):
    """The cube root."""
    if not isinstance(value, np.floating):
        value = np.float64(value)
    return np.cbrt(value)


def selp(condition, a, b):
    """`a` if `condition` is true, else `b`."""
    return a if condition else b
