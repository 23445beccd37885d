"""Integer, shift, conversion and rounding rules of PTX as one program of single expressions.

What each must give is computed here with Python's integers and fractions. The rules: PTX ISA, "shl"
and "shr" (the amount is clamped), "cvt" (saturation, and what NaN gives), "fma" (one rounding).
"""

import itertools
import math
import struct
from collections.abc import Iterator

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
AMOUNTS = (0, 1, 31, 32, 63, 64, -1)
FLOATS = (
    *(-0.0, 0.9, -0.9, 127.9, -129.0, 256.0, 300.7, -300.7, 65536.5, 2147483520.0, 2147483648.0),
    *(-2147483904.0, 4294967040.0, 4294967296.0, 3e10, -3e10, 9.2233715e18, 9.3e18, -9.3e18),
    *(1.8446742e19, 1.9e19, 1e30, math.inf, -math.inf, math.nan),
)
#: Of each number that nobody converts in writing: enough to tell one rule from another
IMPLICIT_FLOATS = (-2.9, 300.7, 3e10, -3e10, 1e20, math.nan)
#: How a number becomes an integer without a cast; `{t}` is the type, `{x}` the number
IMPLICIT = {
    "declared": "{t} n = {x}; r = n;",
    "declared later": "int m = 1; {t} k = 0, n = {x}; r = n + m - 1 + k;",
    "assigned": "{t} n; n = {x}; r = n;",
    "element": "{t} a[2]; a[1] = {x}; r = a[1];",
    "pointed to": "{t} n; {t} *p = &n; *p = {x}; r = n;",
    "member": "Pair{k} s; s.whole = {x}; r = s.whole;",
    "added": "{t} n = 0; n += {x}; r = n;",
    "argument": "r = taking{k}({x});",
    "returned": "r = giving{k}({x});",
    "template": "r = declared_as<{t}>({x});",
}
NAMES = """
#include <cstdio>
#include <type_traits>
typedef long long Out;
template <class T> struct Box { typedef int type; int value = 2; };
struct Stream { int n = 0; __device__ Stream operator<<(int d) const { return {n * 10 + d}; }
  __device__ operator int() const { return n; } };
template <class T, class U> __device__ T declared_as(U x) { T n = x; return n; }
template <class T> __device__ T hidden(T value) { volatile T v = value; return v; }
"""
#: Once for each type of integer, `{k}` is its number
FUNCTIONS = """
struct Pair{k} {{ float part; {t} whole; }};
__device__ Out taking{k}({t} n) {{ return n; }}
__device__ {t} giving{k}(float x) {{ return x; }}
__device__ {t} giving{k}(double x) {{ return x; }}
"""


def wrapped(value: int, bits: int, signed: bool) -> int:
    """The low bits of an integer, read as a number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def edges(bits: int, signed: bool) -> list[int]:
    """Integers at the ends of a type, and some between."""
    values = {1, 5, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1}
    return sorted({wrapped(value, bits, signed) for value in values})


def shifted(value: int, amount: int, bits: int, signed: bool, sign: str) -> int:
    """`value << amount` or `>>` as PTX has it, of a type of 32 or 64 bits."""
    amount &= 0xFFFFFFFF
    if sign == "<<":
        return wrapped(value << min(amount, bits), bits, signed)
    return value >> min(amount, bits)  # Python's shift keeps the sign


def converted(x: float, single: bool, bits: int, signed: bool) -> int:
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


def literal(value: int, kind: str) -> str:
    """An integer as C++ writes it."""
    bits, signed = INTEGERS[kind]
    if not signed or bits < 64:
        return f"({kind}){value}{'ll' if signed else 'ull'}"
    return f"(long long){value & (1 << 64) - 1}ull"


def number(x: float, single: bool) -> tuple[str, float]:
    """(how a program writes a number that no compiler folds, the number itself)."""
    value = struct.unpack("f", struct.pack("f", x))[0] if single else x
    bits = struct.unpack("<q", struct.pack("<d", value))[0]
    kind = "(float)" if single else ""
    return f"hidden({kind}__longlong_as_double(0x{bits & (1 << 64) - 1:x}ll))", value


def shift_cases() -> Iterator[tuple[str, int]]:
    for kind, sign in itertools.product(INTEGERS, ("<<", ">>")):
        bits, signed = INTEGERS[kind]
        promoted = (bits, signed) if bits >= 32 else (32, True)
        for value, amount in itertools.product(edges(bits, signed), AMOUNTS):
            code = f"r = hidden({literal(value, kind)}) {sign} hidden({amount});"
            yield code, shifted(value, amount, *promoted, sign)


def cast_cases() -> Iterator[tuple[str, int]]:
    for kind, single in itertools.product(INTEGERS, (True, False)):
        for x in FLOATS:
            code, value = number(x, single)
            yield f"r = ({kind}){code};", converted(value, single, *INTEGERS[kind])


def implicit_cases() -> Iterator[tuple[str, int]]:
    names = list(INTEGERS)
    for kind, single, form in itertools.product(INTEGERS, (True, False), IMPLICIT):
        if form == "added" and INTEGERS[kind][0] == 64:
            continue  # the sum is rounded before it is converted
        for x in IMPLICIT_FLOATS:
            code, value = number(x, single)
            statement = IMPLICIT[form].format(t=kind, k=names.index(kind), x=code)
            yield statement, converted(value, single, *INTEGERS[kind])


FORMS = {  # each leaves its result in `r`
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
    "float f = 1; for (int i = hidden(3e10f); i > 0; i = 0) f = i; r = f == 2147483648.f;": 1,
    "int n = 5, m = n; n = m = hidden(3e10f); r = n - m;": 0,
    "float x = hidden(2.5f); int n = x > 2 ? x : 0; r = n;": 2,
    "auto n = hidden(2.5f); r = n * 2 == 5;": 1,
    "int n = 7; n -= hidden(0.5f); n *= hidden(1.5f); n /= hidden(2.f); r = n;": 4,
    "const int n = hidden(-3e10f); r = n;": -2147483648,
}  # fmt: skip


def cases() -> list[tuple[str, int]]:
    """All of them: (statements that leave a long long in `r`, what it is)."""
    found = [*shift_cases(), *cast_cases(), *implicit_cases(), *FORMS.items()]
    return [(code, wrapped(value, 64, True)) for code, value in found]


def program(codes: list[str], at_once: int = 200) -> str:
    """A program that prints what each of these gives, one a line."""
    kernels = []
    for first in range(0, len(codes), at_once):
        statements = codes[first : first + at_once]
        body = "\n".join(f"{{ Out r; {code} out[{i}] = r; }}" for i, code in enumerate(statements))
        kernels.append(f"__global__ void from_{first}(Out *out) {{\n{body}\n}}\n")
    functions = "".join(FUNCTIONS.format(k=k, t=kind) for k, kind in enumerate(INTEGERS))
    starts = range(0, len(codes), at_once)
    launches = "\n".join(f"from_{first}<<<1, 1>>>(out + {first});" for first in starts)
    return (
        f"{NAMES}{functions}{''.join(kernels)}"
        f"int main() {{\nOut *out;\ncudaMallocManaged(&out, {8 * len(codes)});\n{launches}\n"
        "if (cudaError_t e = cudaDeviceSynchronize()) { printf(\"%d\\n\", e); return 1; }\n"
        f"for (int i = 0; i < {len(codes)}; ++i) printf(\"%lld\\n\", out[i]);\n"
        "cudaFree(out);\n}\n"
    )  # fmt: skip
