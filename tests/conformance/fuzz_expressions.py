"""Expressions of Numba kernels with the type of their operands, each with what NumPy says of it.

Most are those of `fuzz.py` by another name. Of each, the value has the type under which it stands:
uint32, int32, uint64 or float32, be it by a cast or by Numba's own rules.
"""

import numpy as np

from tests.conformance import fuzz
from tests.conformance.fuzz import THREADS, F, I, L, U

WIDE = np.int64
#: What C's expressions are called here
CALLED = {
    U: {
        "({0} + {1})": "np.uint32({0} + {1})",
        "({0} - {1})": "np.uint32({0} - {1})",
        "({0} * {1})": "np.uint32({0} * {1})",
        "({0} & {1})": "np.uint32({0} & {1})",
        "({0} | {1})": "np.uint32({0} | {1})",
        "({0} ^ {1})": "np.uint32({0} ^ {1})",
        "~{0}": "np.uint32(~{0})",
        "({0} << ({1} & 31))": "np.uint32({0} << ({1} & np.uint32(31)))",
        "({0} >> ({1} & 31))": "np.uint32({0} >> ({1} & np.uint32(31)))",
        "({0} / ({1} | 1))": "np.uint32({0} // ({1} | np.uint32(1)))",
        "({0} % ({1} | 1))": "np.uint32({0} % ({1} | np.uint32(1)))",
        "min({0}, {1})": "min({0}, {1})",
        "max({0}, {1})": "max({0}, {1})",
        "({0} < {1} ? {2} : {3})": "({2} if {0} < {1} else {3})",
        "(unsigned)({0} < {1})": "np.uint32({0} < {1})",
        "(unsigned)({0} >= {1})": "np.uint32({0} >= {1})",
        "(unsigned)({0} >> 32)": "np.uint32({0} >> np.uint64(32))",
        "(unsigned)(unsigned char){0}": "np.uint32(np.uint8({0}))",
        "(unsigned)(unsigned short){0}": "np.uint32(np.uint16({0}))",
        "(unsigned)__popc({0})": "cuda.popc({0})",
        "(unsigned)__clz((int){0})": "cuda.clz({0})",
        "(unsigned)__ffs((int){0})": "cuda.ffs({0})",
        "__brev({0})": "cuda.brev({0})",
        "__umulhi({0}, {1})": "np.uint32({0} * {1} >> 32)",
        "({0} && {1} ? 3u : 5u)": "(np.uint32(3) if {0} and {1} else np.uint32(5))",
    },
    I: {
        "(short){0}": "np.int32(np.int16({0}))",
        "(signed char){0}": "np.int32(np.int8({0}))",
        "({0} & {1})": "np.int32({0} & {1})",
        "({0} ^ {1})": "np.int32({0} ^ {1})",
        "({0} >> ({1} & 31))": "np.int32({0} >> ({1} & np.uint32(31)))",
        "min({0}, {1})": "min({0}, {1})",
        "max({0}, {1})": "max({0}, {1})",
        "__mulhi({0}, {1})": "np.int32({0} * {1} >> 32)",
        "({0} > {1} ? {2} : {3})": "({2} if {0} > {1} else {3})",
    },
    L: {
        "({0} + {1})": "({0} + {1})",
        "({0} * {1})": "({0} * {1})",
        "({0} ^ {1})": "({0} ^ {1})",
        "({0} - {1})": "({0} - {1})",
        "({0} << ({1} & 63))": "({0} << ({1} & np.uint32(63)))",
        "({0} >> ({1} & 63))": "({0} >> ({1} & np.uint32(63)))",
        "({0} / ({1} | 1))": "({0} // ({1} | np.uint64(1)))",
        "({0} % ({1} | 1))": "({0} % ({1} | np.uint64(1)))",
        "((unsigned long long){0} * {1})": "({0} * {1})",
    },
    F: {
        "__fadd_rn({0}, {1})": "({0} + {1})",
        "__fsub_rn({0}, {1})": "({0} - {1})",
        "__fmaf_rn({0}, {1}, {2})": "cuda.fma({0}, {1}, {2})",
        "__fdiv_rn({0}, {1})": "({0} / {1})",
        "__fsqrt_rn(fabsf({0}))": "math.sqrt(abs({0}))",
        "fminf({0}, {1})": "min({0}, {1})",
        "fmaxf({0}, {1})": "max({0}, {1})",
        "({0} < {1} ? {2} : {3})": "({2} if {0} < {1} else {3})",
    },
}


def scaled(bits):
    return (bits.view(I) >> I(7)).astype(F) * F(2**-10)


#: What Numba has besides
OWN = {
    U: [
        ("np.uint32({0})", (I,), lambda x: x.view(U)),
        ("np.uint32({0})", (L,), lambda x: x.astype(U)),
        ("np.uint32({0})", (F,), lambda x: fuzz.saturated(x, U)),
        ("np.uint32({0} == {1})", (I, U), lambda x, y: x.astype(WIDE) == y),
        ("np.uint32({0} < {1} <= {2})", (U, U, U), lambda x, y, z: (x < y) & (y <= z)),
        ("(np.uint32(7) if not {0} or {1} > {2} else {0})", (U, F, F), lambda x, p, q: (
            np.where((x == 0) | (p > q), U(7), x))),
        ("cuda.selp({0} > {1}, {2}, {3})", (I, U, U, U), lambda x, y, p, q: (
            np.where(x.astype(WIDE) > y, p, q))),
        ("np.uint32(cuda.popc({0}))", (L,), lambda x: fuzz.popcount(x)),
        ("np.uint32(cuda.clz({0}))", (L,), lambda x: fuzz.leading_zeros(x)),
        ("np.uint32(cuda.ffs({0}))", (L,), lambda x: fuzz.first_set(x)),
        ("np.uint32(cuda.clz({0}))", (I,), lambda x: fuzz.leading_zeros(x.view(U))),
    ],
    I: [
        ("np.int32({0})", (U,), lambda x: x.view(I)),
        ("np.int32({0})", (L,), lambda x: x.astype(U).view(I)),
        ("np.int32({0})", (F,), lambda x: fuzz.saturated(x, I)),
        ("np.int32({0} + {1})", (I, I), lambda x, y: x + y),
        ("np.int32({0} - {1})", (U, I), lambda x, y: x.view(I) - y),
        ("np.int32({0} * {1})", (I, I), lambda x, y: x * y),
        ("np.int32({0} * {1} >> 9)", (U, I), lambda x, y: (
            (x.astype(WIDE) * y >> WIDE(9)).astype(U).view(I))),
        ("np.int32({0} // ({1} | 1))", (I, I), lambda x, y: (x.astype(WIDE) // (y | 1)).astype(I)),
        ("np.int32({0} % ({1} | 1))", (I, I), lambda x, y: (x.astype(WIDE) % (y | 1)).astype(I)),
        ("np.int32({0} // ({1} | 1))", (U, I), lambda x, y: (
            (x.astype(WIDE) // (y | 1)).astype(U).view(I))),
    ],
    L: [
        ("np.uint64({0})", (U,), lambda x: x.astype(L)),
        ("np.uint64({0})", (I,), lambda x: x.astype(WIDE).view(L)),
        ("np.uint64({0} - {1})", (U, U), lambda x, y: x.astype(L) - y),
        ("cuda.brev({0})", (L,), lambda x: (
            fuzz.reversed_bits(x.astype(U)).astype(L) << L(32)
            | fuzz.reversed_bits((x >> L(32)).astype(U)).astype(L))),
        ("({0} ^ np.uint64(np.float64({1})))", (L, U), lambda x, y: x ^ y.astype(L)),
        ("min({0}, {1})", (L, L), np.minimum),
        ("max({0}, {1})", (L, U), np.maximum),
    ],
    F: [
        ("np.float32({0})", (I,), lambda x: x.astype(F)),
        ("np.float32({0})", (U,), lambda x: x.astype(F)),
        ("np.float32({0})", (L,), lambda x: x.astype(F)),
        ("scaled({0})", (U,), scaled),
        ("({0} * np.float32(0.25))", (F,), lambda x: x * F(0.25)),
        ("np.float32({0} + {1})", (F, I), lambda x, y: (x.astype(np.float64) + y).astype(F)),
        ("np.float32({0} / {1})", (U, I), lambda x, y: (
            x.astype(np.float64) / y.astype(np.float64)).astype(F)),
        ("-{0}", (F,), lambda x: -x),
        ("abs({0})", (F,), np.abs),
        ("np.float32(2.0**-46)", (), lambda: np.full(THREADS, 2.0**-46, F)),
        ("np.float32(16777217.0)", (), lambda: np.full(THREADS, 16777217, F)),
    ],
}  # fmt: skip
RULES = {
    kind: [(names[text], kinds, rule) for text, kinds, rule in fuzz.RULES[kind] if text in names]
    + OWN[kind]
    for kind, names in CALLED.items()
}
