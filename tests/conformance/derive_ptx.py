"""What the programs on inline PTX must print, worked out in Python from the PTX ISA's rules.

Integers are computed as Python's, small floats by looking for the nearest of all that there are.
"""

import math
import struct

import numpy as np

MASK = (1 << 32) - 1
INTEGERS = (0, 1, 31, 32, 40, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678)
# fmt: off
FLOATS = (
    0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 3e9, 3e10, -3e10, 1e20, -1e20, math.inf, -math.inf, 65504.0,
    65520.0, 1e-7, 6e-8, 0.1, 448.0, 464.0, 0.001953125, 1.0009765625, 1.00048828125, -3.14159,
)
# fmt: on


# ---- integers


def signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def shifted(x: int, n: int) -> int:
    """To the left for positive n; shifts by 32 and more leave the sign, or nothing."""
    return x << n if n >= 0 else x >> -n


def two_operands(a: int, b: int) -> list[int]:
    sa, sb = signed(a), signed(b)
    return [
        a + b,
        a - b,
        sa * sb,
        a * b >> 32,
        sa * sb >> 32,
        shifted(a, min(b, 32)),
        shifted(a, -min(b, 32)),
        shifted(sa, -min(b, 32)),
        min(sa, sb),
        max(a, b),
        a & b,
        a ^ b,
    ]


def permuted(a: int, b: int, selector: int) -> int:
    eight = (b << 32 | a).to_bytes(8, "little")
    result = 0
    for i in range(4):
        pick = selector >> 4 * i & 15
        byte = eight[pick & 7]
        if pick & 8:
            byte = 255 if byte & 128 else 0
        result |= byte << 8 * i
    return result


def dot(a: int, b: int) -> int:
    signed_bytes = np.frombuffer(a.to_bytes(4, "little"), np.int8).astype(int)
    plain_bytes = np.frombuffer(b.to_bytes(4, "little"), np.uint8).astype(int)
    return int(signed_bytes @ plain_bytes) + 7


def other_operations(a: int, b: int) -> list[int]:
    text = f"{a:032b}"
    less = signed(a) < signed(b)
    return [
        a >> 4 & 0xFFF,
        signed(a) >> 20,
        b & ~0xFF00 | (a & 0xFF) << 8,
        text.count("1"),
        32 - a.bit_length(),
        int(text[::-1], 2),
        a.bit_length() - 1,
        a & b | ~a & 0xFF00FF00,
        permuted(a, b, 0x5B14),
        (b << 32 | a) << 12 >> 32,
        (b << 32 | a) >> 32,
        dot(a, b),
        (a + b) >> 32,
        3 if less else 105,
        a >> 16 | a << 16,
    ]


def ptx_integers() -> str:
    pairs = [(a, b) for a in INTEGERS for b in INTEGERS]
    rows = [two_operands(a, b) + other_operations(a, b) for a, b in pairs]
    lines = ["".join(f"{row[f] & MASK:x} " for row in rows) for f in range(len(rows[0]))]
    return "\n".join(lines) + "\n"


# ---- conversions


def codes_of(exponent_bits: int, fraction_bits: int, has_infinity: bool = True) -> list[float]:
    """The worth of each code without its sign, in ascending order, up to the largest number."""
    bias = 2 ** (exponent_bits - 1) - 1
    values = []
    for code in range(2 ** (exponent_bits + fraction_bits)):
        exponent, fraction = divmod(code, 2**fraction_bits)
        top = exponent == 2**exponent_bits - 1
        if top and (has_infinity or fraction == 2**fraction_bits - 1):
            break
        lead = fraction / 2**fraction_bits + (exponent > 0)
        values.append(lead * 2.0 ** (max(exponent, 1) - bias))
    return values


F16 = codes_of(5, 10)
BF16 = codes_of(8, 7)
E4M3 = codes_of(4, 3, has_infinity=False)
E5M2 = codes_of(5, 2)


def nearest(x: float, values: list[float], *, to_zero=False, clamped=False) -> int:
    """The code of x: rounded to the nearest, halves to the even one; its sign bit is added."""
    sign = len(values) > 256 and 0x8000 or 0x80
    magnitude = abs(x)
    below = int(np.searchsorted(values, magnitude, "right")) - 1
    code = below
    last = len(values) - 1
    if math.isinf(magnitude):
        code = last if clamped else last + 1
    elif not to_zero:
        step = values[below] - values[below - 1]
        above = values[below + 1] if below < last else values[below] + step
        middle = (values[below] + above) / 2
        up = magnitude > middle or magnitude == middle and below % 2 == 1
        code = below + up
        if code > last and clamped:
            code = last
    return code | (sign if math.copysign(1, x) < 0 else 0)


def to_integer(x: float, rounded, bits: int, is_signed: bool) -> int:
    """Clamped to what the integer holds, as its bits."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    value = x if math.isinf(x) else rounded(x)
    if value < low:
        value = low
    if value > high:
        value = high
    return int(value) & (1 << bits) - 1


def float_bits(x: float) -> int:
    return struct.unpack("<I", struct.pack("<f", x))[0]


def conversions_of(x: float) -> list[int]:
    bits = float_bits(x)
    tf32 = bits if math.isinf(x) else (bits + 0x1000) & ~0x1FFF
    return [
        to_integer(x, math.trunc, 32, True),
        to_integer(x, round, 32, True),
        to_integer(x, math.floor, 32, True),
        to_integer(x, math.ceil, 32, True),
        to_integer(x, math.trunc, 32, False),
        to_integer(x, math.trunc, 64, True),
        to_integer(x, math.trunc, 64, False),
        nearest(x, F16),
        nearest(x, F16, to_zero=True),
        nearest(x, BF16),
        nearest(x, BF16, to_zero=True),
        tf32,
        float_bits(min(max(x, 0.0), 1.0)),
        nearest(1.0, E4M3) << 8 | nearest(x, E4M3, clamped=True),
        nearest(x, E5M2, clamped=True) << 8,
        nearest(x, BF16) << 16 | nearest(2.0, BF16),
    ]


def worth_as_f16(code: int, values: list[float]) -> int:
    """The bits of float16 with the worth of an 8-bit code; its infinity is float16's."""
    plain = code & 0x7F
    magnitude = values[plain] if plain < len(values) else math.inf
    return nearest(math.copysign(magnitude, -1 if code & 0x80 else 1), F16)


def ptx_conversions() -> str:
    text = ""
    for x in FLOATS:
        single = float(np.float32(x))
        text += " ".join(f"{value:x}" for value in conversions_of(single)) + "\n"
    for values in (E4M3, E5M2):
        high = worth_as_f16(0x38, values) << 16
        for code in range(256):
            is_nan = code % 128 == 127 or values is E5M2 and code % 128 > 124
            if not is_nan:
                text += f"{high | worth_as_f16(code, values):x} "
    return text + "\n"


# ---- programs that compare with plain loops themselves


def all_right(*names: str) -> str:
    return "".join(f"{name}: 0 wrong\n" for name in names)


def ptx_warps() -> str:
    names = "lanes", "shuffles", "votes", "matrices", "products", "f16 sums", "doubles"
    return all_right(*names)


def ptx_copies() -> str:
    names = "groups", "ring", "states", "clusters", "sent", "multicast", "named", "stores"
    return all_right(*names, "pipeline", "squares")


def ptx_tensors() -> str:
    names = "plain", "swizzled", "cubes", "pixels", "stores", "sums"
    return all_right(*names) + "0 refused\n4 refused\n"


def ptx_wgmma() -> str:
    return all_right("bf16", "turned", "f16", "tf32", "8 bits", "registers")


ALL = [ptx_integers, ptx_conversions, ptx_warps, ptx_copies, ptx_tensors, ptx_wgmma]
