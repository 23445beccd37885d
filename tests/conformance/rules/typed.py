"""Numbers with the types that numba-cuda gives them: its rules of typing, in Python.

Integers are computed with 64 bits whatever their width is: without a sign where both are unsigned,
else with one; a literal has one. A shift takes after its left side. Beside a float in an operation
an integer counts as a float of twice its bits, of four times without a sign; where two branches
meet, and in min and max, always of twice. Source: what numba-cuda's own type inference
says of each expression (it needs no GPU), and for values Python's and PTX's rules.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

WIDE = 64


class Type(NamedTuple):
    """kind: b (bool), i, u or f; bits: its width."""

    kind: str
    bits: int


BOOL = Type("b", 1)
INT64 = Type("i", 64)
UINT64 = Type("u", 64)
DOUBLE = Type("f", 64)


def type_of(name: str) -> Type:
    """int32, uint8, float16 or boolean as a Type."""
    kinds = {"int": "i", "uint": "u", "float": "f"}
    if name == "boolean":
        return BOOL
    word = name.rstrip("0123456789")
    return Type(kinds[word], int(name[len(word) :]))


def fitted(value, kind: Type):
    """A value as a number of this type: low bits, one rounding, or a conversion as PTX has it."""
    if kind == BOOL:
        return bool(value)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return float(np.dtype(f"float{kind.bits}").type(value))
    if isinstance(value, float):
        value = _saturated(value, kind)
    value = int(value) & (1 << kind.bits) - 1
    negative = kind.kind == "i" and value >> (kind.bits - 1)
    return value - (1 << kind.bits) if negative else value


def _saturated(value: float, kind: Type) -> int:
    """Towards zero, to the nearest number of at least 32 bits that there is."""
    bits = max(kind.bits, 32)
    low = -(1 << bits - 1) if kind.kind == "i" else 0
    high = low + (1 << bits) - 1
    if math.isnan(value):
        return 1 << (bits - 1)
    return int(min(max(value, low), high)) if math.isinf(value) else min(max(int(value), low), high)


def together(a: Type, b: Type) -> Type:
    """The type of a sum: see above."""
    if a.kind == "f" or b.kind == "f":
        times = {"b": 0, "i": 2, "u": 4, "f": 1}
        return Type("f", min(max(times[t.kind] * t.bits for t in (a, b)), WIDE))
    return UINT64 if a.kind == b.kind == "u" else INT64


def unified(a: Type, b: Type) -> Type:
    """The one type of two branches, and of min and max."""
    if "f" in (a.kind, b.kind):
        times = {"b": 0, "i": 2, "u": 2, "f": 1}
        return Type("f", min(max(times[t.kind] * t.bits for t in (a, b)), WIDE))
    if a.kind == b.kind or BOOL in (a, b):
        return max(a, b, key=lambda t: t.bits)
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if unsigned.bits < signed.bits:
        return signed
    return Type("i", 2 * unsigned.bits) if unsigned.bits < WIDE else DOUBLE


class Number:
    """A value and its type; operators give what a kernel's would."""

    def __init__(self, value, kind: Type):
        self.kind = kind
        self.value = fitted(value, kind)

    def __repr__(self):
        return f"{self.value} ({self.kind.kind}{self.kind.bits})"

    def __bool__(self):
        return bool(self.value)

    def __index__(self):
        return int(self.value)


def converted(x: Number, kind: Type) -> Number:
    """A number as one of another type. A half becomes the nearest integer, ties to the even one."""
    halves = x.kind == Type("f", 16) and kind.kind in "iu" and math.isfinite(x.value)
    return Number(round(x.value) if halves else x.value, kind)


def number(value) -> Number:
    """A literal as a Number."""
    if isinstance(value, Number):
        return value
    if isinstance(value, (bool, np.bool_)):
        return Number(value, BOOL)
    return Number(value, INT64 if isinstance(value, int) else DOUBLE)


def _binary(name: str, type_: Callable[[Type, Type], Type]):
    compute = getattr(operator, name)

    def forward(self, other):
        other = number(other)
        kind = type_(self.kind, other.kind)
        left, right = (self.value, other.value)
        if type_ is not _by_left:
            left, right = fitted(left, kind), fitted(right, kind)
        return Number(compute(left, right), kind)

    def backward(self, other):
        return forward(number(other), self)

    setattr(Number, f"__{name}__", forward)
    setattr(Number, f"__r{name}__", backward)


def _divided(a: Type, b: Type) -> Type:
    return together(a, b) if "f" in (a.kind, b.kind) else DOUBLE


def _rounded_down(a: Type, b: Type) -> Type:
    kind = together(a, b)
    return Type("f", 32) if kind == Type("f", 16) else kind


def _by_left(a: Type, b: Type) -> Type:
    return UINT64 if a.kind == "u" else INT64


for _name in ("add", "sub", "mul", "and", "or", "xor"):
    _binary(f"{_name}_" if _name in ("and", "or") else _name, together)
for _name in ("and", "or"):
    setattr(Number, f"__{_name}__", getattr(Number, f"__{_name}___"))
    setattr(Number, f"__r{_name}__", getattr(Number, f"__r{_name}___"))
for _name in ("floordiv", "mod"):
    _binary(_name, _rounded_down)
for _name in ("lshift", "rshift"):
    _binary(_name, _by_left)
_binary("truediv", _divided)


def _comparison(name: str):
    compute = getattr(operator, name)

    def compare(self, other):
        other = number(other)
        if "f" in (self.kind.kind, other.kind.kind):
            kind = together(self.kind, other.kind)
            return Number(compute(fitted(self.value, kind), fitted(other.value, kind)), BOOL)
        return Number(compute(self.value, other.value), BOOL)

    setattr(Number, f"__{name}__", compare)


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _comparison(_name)


def _unary(name: str):
    compute = getattr(operator, name)

    def apply(self):
        if self.kind.kind == "f":
            return Number(compute(self.value), self.kind)
        own = self.value if self.kind == BOOL else fitted(compute(self.value), self.kind)
        return Number(compute(own) if self.kind == BOOL else own, _by_left(self.kind, self.kind))

    setattr(Number, f"__{name}__", apply)


for _name in ("neg", "invert"):
    _unary(_name)


def absolute(x: Number) -> Number:
    """abs(x): of the same type, so the smallest integer stays what it is."""
    return Number(abs(x.value), x.kind)


def smaller(x, y) -> Number:
    x, y = number(x), number(y)
    kind = unified(x.kind, y.kind)
    return Number(min(fitted(x.value, kind), fitted(y.value, kind)), kind)


def larger(x, y) -> Number:
    x, y = number(x), number(y)
    kind = unified(x.kind, y.kind)
    return Number(max(fitted(x.value, kind), fitted(y.value, kind)), kind)


def to_int(x: Number) -> Number:
    return converted(x, INT64 if x.kind.kind == "f" or x.kind == BOOL else x.kind)


def to_float(x: Number) -> Number:
    return Number(x.value, x.kind if x.kind.kind == "f" else DOUBLE)


def cast(name: str) -> Callable[[Number], Number]:
    """np.int32 and its like."""
    return lambda x: converted(number(x), type_of(name))


def _bits(x: Number) -> int:
    return x.value & (1 << x.kind.bits) - 1


class Cuda:
    """The intrinsics that count bits: of as many as the type has."""

    @staticmethod
    def popc(x: Number) -> Number:
        return Number(_bits(x).bit_count(), x.kind)

    @staticmethod
    def clz(x: Number) -> Number:
        return Number(x.kind.bits - _bits(x).bit_length(), x.kind)


class Numpy:
    """np.int32(x) and its like."""

    def __getattr__(self, name: str) -> Callable[[Number], Number]:
        return cast(name)


NAMES = {
    "abs": absolute, "min": smaller, "max": larger, "int": to_int, "float": to_float,
    "cuda": Cuda, "np": Numpy(), "range": lambda n: (Number(i, INT64) for i in range(n)),
}  # fmt: skip
