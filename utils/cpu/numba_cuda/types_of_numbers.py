"""What Numba makes of numbers of two types: the rules that `inference.py` follows.

A Type says what a number is on a GPU, and how large it can be at most (`size`, in bits): integers
of a kernel are Python's here, and only where a result may leave its type must it be wrapped. The
rules are those that numba-cuda's own inference follows (tests/conformance/rules compares them, and
the results with a GPU's).
"""

from typing import NamedTuple

import numpy as np

from .errors import KernelError

WIDE = 64
MODULUS = 1 << WIDE
LARGEST = (1 << 63) - 1
SMALLEST = -(1 << 63)
EXACT = 53  # bits of an integer that a float64 holds


class Type(NamedTuple):
    """kind: b (bool), i, u or f; bits: its width.

    size: of an integer, |value| < 2 ** size; of a float 1 where Python may still hold an integer or
    a narrower float, as of `s` in `s = 0` before `s += x`.
    """

    kind: str
    bits: int
    size: int = 0

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def bits_as_float(self) -> int:
        """The width of the result where this meets a float in an operation: an int32 makes a
        float32 a float64, and so does a uint16.
        """
        times = {"b": 0, "i": 2, "u": 4, "f": 1}[self.kind]
        return min(times * self.bits, WIDE)

    def same(self, other: "Type") -> bool:
        return (self.kind, self.bits) == (other.kind, other.bits)


BOOL = Type("b", 1, 1)
DOUBLE = Type("f", 64)
SINGLE = Type("f", 32)
HALF = Type("f", 16)


def signed(size: int) -> Type:
    return Type("i", WIDE, min(size, WIDE))


def unsigned(size: int) -> Type:
    return Type("u", WIDE, min(size, WIDE))


def literal(value: int) -> Type:
    """The type of a whole number that is written there, or named outside of the kernel."""
    bits = value.bit_length()
    if bits > WIDE:
        raise KernelError(
            f"the whole number {value:,} needs more than 64 bits; Numba refuses it "
            f'("Int value is too large")',
            "Kernels have integers of 64 bits, and floats.",
        )
    is_unsigned = value > 0 and bits == WIDE
    return Type("u" if is_unsigned else "i", WIDE, max(bits, 1))


def rounded(kind: Type) -> Type:
    """A type whose size is one of few: of each a function is made."""
    size = min(-(-kind.size // 8) * 8, kind.bits)
    return kind._replace(size=size) if kind.kind in "iu" else kind


def of_dtype(dtype: np.dtype) -> Type | None:
    """The type of an array's elements; None for records, complex numbers and the like."""
    bits = 8 * dtype.itemsize
    if dtype.kind == "b":
        return BOOL
    if dtype.kind == "f":
        return Type("f", bits)
    if dtype.kind in "iu":
        return Type(dtype.kind, bits, bits)
    return None


def together(a: Type, b: Type) -> Type:
    """The type of a sum, without its size."""
    if a.is_float or b.is_float:
        bits = max(a.bits_as_float, b.bits_as_float)
        return Type("f", bits)
    both_unsigned = a.kind == b.kind == "u"
    return Type("u" if both_unsigned else "i", WIDE)


def unified(a: Type, b: Type) -> Type:
    """The one type of two branches, and of min and max."""
    size = max(a.size, b.size)
    if a.is_float or b.is_float:
        widths = [one.bits if one.is_float else 2 * one.bits for one in (a, b) if one.kind != "b"]
        common = Type("f", min(max(widths), WIDE))
        return common._replace(size=size if a.same(b) else 1)
    if a.kind == b.kind or "b" in (a.kind, b.kind):
        wider = max(a, b, key=lambda t: t.bits)
        return wider._replace(size=size)
    without_sign, other = (a, b) if a.kind == "u" else (b, a)
    if without_sign.bits < other.bits:
        return other._replace(size=size)
    if without_sign.bits < WIDE:
        return Type("i", 2 * without_sign.bits, size)
    return DOUBLE._replace(size=1)


def capped(kind: Type) -> Type:
    """An integer as large as it can be once it is wrapped: one bit is the sign's."""
    if kind.kind != "i":
        return kind
    size = min(kind.size, kind.bits - 1)
    return kind._replace(size=size)


def size_of(
    operator: str,
    a: Type,
    b: Type,
    constant: int | None,
) -> int:
    """How large the result of an operation on integers can be, in bits, before it is wrapped.

    constant: the right side, where it is written there.
    """
    first = capped(a).size
    second = capped(b).size
    if operator in ("Add", "Sub"):
        return max(first, second) + 1
    if operator == "Mult":
        return first + second
    if operator == "LShift":
        return WIDE + 1 if constant is None else first + constant
    if operator == "RShift":
        return first if constant is None else max(first - constant, 1)
    if operator == "FloorDiv":
        return first
    if operator == "Mod":
        return second
    if operator == "BitAnd" and constant is not None and constant >= 0:
        return second
    return max(first, second)
