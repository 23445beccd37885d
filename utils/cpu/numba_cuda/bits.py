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


def brev(value):
    """The bits in reverse order."""
    digits = f"{_bits(value):0{_width(value)}b}"
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
    if kind is np.float32:  # a product of two float32 is exact in float64
        return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    exact = None
    if all(math.isfinite(x) for x in (a, b, c)):
        exact = _exact(a) * _exact(b) + _exact(c)
    return kind(a * b + c) if exact is None else kind(float(exact))


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
