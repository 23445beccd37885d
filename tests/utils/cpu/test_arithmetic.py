"""Shifts and conversions of device code against PTX's rules, computed here with Python's integers.

The rules: PTX ISA, "shl", "shr" (the amount is clamped) and "cvt" (saturation, and what NaN gives).
"""

import itertools
import math
import struct
import subprocess

import pytest

from utils.cpu.cuda_c.build import build_program
from utils.cpu.cuda_c.rewrite import rewrite

INTEGERS = {  # (bits, signed)
    "signed char": (8, True),
    "unsigned char": (8, False),
    "short": (16, True),
    "unsigned short": (16, False),
    "int": (32, True),
    "unsigned": (32, False),
    "long long": (64, True),
    "unsigned long long": (64, False),
}
AMOUNTS = (0, 1, 31, 32, 40, 63, 64, -1)
FLOATS = (
    *(0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.9, 128.0, -129.0, 255.9, 256.0, 300.7, -300.7, 65536.5),
    *(2147483520.0, 2147483648.0, -2147483648.0, -2147483904.0, 4294967040.0, 4294967296.0, 3e10),
    *(-3e10, 9.2233715e18, 9.223372036854775807e18, -9.3e18, 1.8446742e19, 1.9e19, 1e30, -1e30),
    *(math.inf, -math.inf, math.nan),
)


def wrapped(value, bits, signed):
    """The low bits of an integer, read as a number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def edges(bits, signed):
    """Integers at the ends of a type, and some between."""
    values = {0, 1, 2, 5, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 0x55 & bits}
    return sorted({wrapped(value, bits, signed) for value in values})


def shifted(value, amount, bits, signed, sign):
    """`value << amount` or `>>` as PTX has it, of a type of 32 or 64 bits."""
    amount &= 0xFFFFFFFF
    if sign == "<<":
        return wrapped(value << min(amount, bits), bits, signed)
    return value >> min(amount, bits)  # Python's shift keeps the sign


def converted(x, single, bits, signed):
    """A float as an integer: cvt.rzi, narrow types by way of 32 bits."""
    wide = max(bits, 32)
    low, high = (-(1 << (wide - 1)), (1 << (wide - 1)) - 1) if signed else (0, (1 << wide) - 1)
    if math.isnan(x):
        value = 0 if single and wide == 32 else wrapped(1 << (wide - 1), wide, signed)
    elif math.isinf(x):
        value = high if x > 0 else low
    else:
        value = min(max(math.trunc(x), low), high)
    return wrapped(value, bits, signed)


def literal(value, kind):
    """A value as C++ writes it."""
    bits, signed = INTEGERS[kind]
    if not signed or bits < 64:
        return f"({kind}){value}{'ll' if signed else 'ull'}"
    return f"(long long){value & (1 << 64) - 1}ull"


def program(statements):
    """Each statement prints one number; the values come from memory, so that no compiler folds."""
    body = "\n".join(statements)
    return (
        "#include <cstdio>\n"
        "template <class T> __device__ T hidden(T value) { volatile T v = value; return v; }\n"
        f"__global__ void show() {{\n{body}\n}}\n"
        "int main() { show<<<1, 1>>>(); return cudaDeviceSynchronize(); }\n"
    )


def show(expression):
    return f'printf("%llu\\n", (unsigned long long)(long long)({expression}));'


def shift_cases():
    for kind, sign in itertools.product(INTEGERS, ("<<", ">>")):
        bits, signed = INTEGERS[kind]
        promoted = (bits, signed) if bits >= 32 else (32, True)
        for value, amount in itertools.product(edges(bits, signed), AMOUNTS):
            code = f"hidden({literal(value, kind)}) {sign} hidden({amount})"
            yield code, shifted(value, amount, *promoted, sign)


def conversion_cases():
    for kind, single in itertools.product(INTEGERS, (True, False)):
        for x in FLOATS:
            number = struct.unpack("f", struct.pack("f", x))[0] if single else x
            bits = struct.pack("<d", number).hex()
            yield (
                f"({kind})hidden({'(float)' if single else ''}"
                f"__longlong_as_double(0x{int.from_bytes(bytes.fromhex(bits), 'little'):x}ll))",
                converted(number, single, *INTEGERS[kind]),
            )


FORMS = {  # each a statement that leaves its result in `r`
    "long long n = 1; n <<= hidden(40); n >>= hidden(39); r = n;": 2,
    "int n = 1; n <<= hidden(32); r = n;": 0,
    "r = 1 << hidden(4) << hidden(2) + 1;": 128,
    "r = hidden(-1) >> 40 == -1 ? 5 : 6;": 5,
    "struct Bits { unsigned low : 4; } b = {9}; r = b.low << hidden(33);": 0,
    "r = std::is_same<decltype(hidden('a') << 1), Box<Box<int>>::type>::value;": 1,
    "Box<Box<int>> box; r = box.value < 3 && 8 >> hidden(1) > 3;": 1,
    "constexpr int four = 1 << 2; int of[four << 1]; r = sizeof of;": 32,
    "r = static_cast<int>(hidden(3e10f));": 2147483647,
    "r = int(hidden(-3e10f));": -2147483648,
    "r = unsigned(hidden(-5.f)) + int(hidden(2.9));": 2,
    "r = (int)-hidden(3e10f) + (int)(float)(int)hidden(2.5f);": -2147483646,
    "r = sizeof(int) * 2 + (hidden(1) << 2);": 12,
    "r = Stream() << 3 << 4;": 34,
    "int a[] = {1, 2}; int *p = a + (int)hidden(1.7f); r = *p;": 2,
}
NAMES = """
#include <type_traits>
template <class T> struct Box { typedef int type; int value = 2; };
struct Stream { int n = 0; __device__ Stream operator<<(int d) const { return {n * 10 + d}; }
  __device__ operator int() const { return n; } };
"""


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["plain", "debug"])
def test_the_rules_of_ptx(tmp_path, options):
    cases = [*shift_cases(), *conversion_cases()]
    source = tmp_path / "rules.cu"
    forms = (f"{{ long long r; {code} {show('r')} }}" for code in FORMS)
    source.write_text(NAMES + program([*(show(code) for code, _ in cases), *forms]))
    output = subprocess.run([build_program(source, options)], capture_output=True, text=True)
    got = [int(line) for line in output.stdout.split()]
    wrong = [
        (code, wrapped(right, 64, False), value)
        for (code, right), value in zip([*cases, *FORMS.items()], got, strict=True)
        if wrapped(right, 64, False) != value
    ]
    assert len(cases) > 400
    assert not wrong


def test_what_is_no_shift_stays():
    text = "__device__ void f() { k<<<1, 2>>>(); A<B<int>> x; a.operator<<(1); }"
    assert "by" not in rewrite(text)[0].split("{", 1)[1]
