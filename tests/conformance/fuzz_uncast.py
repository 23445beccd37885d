"""Random Numba kernels without casts: a line is one operation, and its type is Numba's choice.

What each line gives in each lane says `rules/typed.py`, to which a GPU's results were held. A line
of which a compiler may choose the result in one lane is not taken: signed overflow, shifts by more
than there are bits, products that may be fused with a sum, floats that no integer holds, NaN.
"""

import math
import operator
import random

import numpy as np

from tests.conformance import fuzz
from tests.conformance.fuzz import THREADS, L
from tests.conformance.rules import typed

#: Lines of a kernel besides its first ones
LINES = 24
START = {
    "x0": ("np.int8(me * 37 + 5)", lambda t: t * 37 + 5),
    "x1": ("np.uint8(me * 91 + {0})", lambda t, n: t * 91 + n),
    "x2": ("np.int16(me * {0} - 30000)", lambda t, n: t * n - 30000),
    "x3": ("np.uint16(me * 2654 + {0})", lambda t, n: t * 2654 + n),
    "x4": ("np.int32(me * {0} + 77)", lambda t, n: t * n + 77),
    "x5": ("np.uint32(me * {0})", lambda t, n: t * n),
    "x6": ("np.int64(me * {0} - 5_000_000_000)", lambda t, n: t * n - 5_000_000_000),
    "x7": ("np.uint64(me * {0}) << np.uint64(25)", lambda t, n: (t * n) << 25),
    "x8": ("np.float32(me * {0}) / np.float32(64)", lambda t, n: t * n / 64),
    "x9": ("np.float64(me * {0} - 4096) / 8192", lambda t, n: (t * n - 4096) / 8192),
}
#: Values that a kernel stores at most
ROWS = len(START) + LINES
KINDS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()


def chosen(test, x, y):
    kind = typed.unified(x.kind, y.kind)
    return typed.converted(x if test else y, kind)


def is_float(x):
    return x.kind.kind == "f"


def fits(value, kind):
    return typed.fitted(value, kind) == value


def sides(x, y):
    """Two whole numbers as the type of their sum has them, and that type."""
    kind = typed.together(x.kind, y.kind)
    return typed.fitted(x.value, kind), typed.fitted(y.value, kind), kind


def stays(sign):
    """Whether a sum, a difference or a product is the same on any GPU."""

    def holds(x, y):
        if is_float(x) or is_float(y):
            return True
        left, right, kind = sides(x, y)
        return kind == typed.UINT64 or fits(sign(left, right), kind)

    return holds


def divides(x, y):
    if is_float(x) or is_float(y):
        return False
    left, right, kind = sides(x, y)
    return right != 0 and fits(left // right, kind)


def shifts(x, y):
    return not is_float(x) and not is_float(y) and 0 <= y.value < typed.WIDE


def shifts_left(x, y):
    if not shifts(x, y):
        return False
    return x.kind.kind == "u" or fits(x.value << y.value, typed.INT64)


def whole(x, *more):
    return not any(map(is_float, (x, *more)))


def any_numbers(*_):
    return True


def casts_to(name):
    kind = typed.type_of(name)

    def holds(x):
        inside = math.trunc(x.value) if is_float(x) else x.value
        return kind.kind == "f" or not is_float(x) or fits(inside, kind)

    return holds


# text, how many operands, what it gives of typed numbers, and of which numbers no compiler chooses
OPERATIONS = [
    *((f"{{0}} {sign} {{1}}", 2, of, stays(of)) for sign, of in (
        ("+", operator.add), ("-", operator.sub), ("*", operator.mul)) for _ in range(3)),
    *((f"{{0}} {sign} {{1}}", 2, of, whole) for sign, of in (
        ("&", operator.and_), ("|", operator.or_), ("^", operator.xor))),
    ("{0} // {1}", 2, operator.floordiv, divides),
    ("{0} % {1}", 2, operator.mod, divides),
    ("{0} / {1}", 2, operator.truediv, lambda x, y: y.value != 0),
    ("{0} << {1}", 2, operator.lshift, shifts_left),
    ("{0} >> {1}", 2, operator.rshift, shifts),
    ("{0} >> 3", 1, lambda x: x >> 3, whole),
    ("{0} - 1", 1, lambda x: x - 1, lambda x: stays(operator.sub)(x, typed.number(1))),
    ("{0} * 31", 1, lambda x: x * 31, lambda x: stays(operator.mul)(x, typed.number(31))),
    ("{0} / 2", 1, lambda x: x / 2, any_numbers),
    ("{0} % 1000", 1, lambda x: x % 1000, whole),
    ("{0} // 10", 1, lambda x: x // 10, whole),
    ("~{0}", 1, operator.invert, whole),
    ("-{0}", 1, operator.neg, lambda x: is_float(x) or fits(abs(x.value), x.kind)),
    ("abs({0})", 1, typed.absolute, lambda x: is_float(x) or fits(abs(x.value), x.kind)),
    ("cuda.popc({0})", 1, typed.Cuda.popc, whole),
    ("cuda.clz({0})", 1, typed.Cuda.clz, whole),
    ("min({0}, {1})", 2, typed.smaller, any_numbers),
    ("max({0}, {1})", 2, typed.larger, any_numbers),
    ("{0} if {1} < {2} else {3}", 4, lambda x, p, q, y: chosen(p < q, x, y), any_numbers),
    ("{0} if {1} == {2} else {3}", 4, lambda x, p, q, y: chosen(p == q, x, y), any_numbers),
    ("int({0})", 1, typed.to_int, casts_to("int64")),
    ("float({0})", 1, typed.to_float, any_numbers),
    *((f"np.{name}({{0}})", 1, typed.cast(name), casts_to(name)) for name in KINDS),
]  # fmt: skip


class Uncast:
    """A kernel of lines of one operation each; a result's type is Numba's choice."""

    def __init__(self, number):
        self.number = number
        self.random = random.Random(number)
        self.name = f"k{number}"
        self.lines, self.values = [], {}
        for (name, (text, of)), kind in zip(START.items(), KINDS, strict=True):
            n = self.random.randrange(3, 4096)
            given = (n,) if "{0}" in text else ()
            self.lines.append(f"{name} = {text.format(n)}")
            kind = typed.type_of(kind)
            self.values[name] = [typed.Number(of(lane, *given), kind) for lane in range(THREADS)]
        self.products = set()  # floats that a compiler may fuse with a sum
        while len(self.values) < len(START) + LINES:
            self.line()

    def line(self):
        """One more line, if no compiler may choose what it gives in any lane."""
        text, count, of, is_defined = self.random.choice(OPERATIONS)
        names = self.random.choices(list(self.values), k=count)
        lanes = list(zip(*(self.values[name] for name in names), strict=True))
        if not all(is_defined(*values) for values in lanes):
            return
        results = [of(*values) for values in lanes]
        if not all(math.isfinite(result.value) for result in results):
            return
        floats = is_float(results[0])
        fused = floats and not self.products.isdisjoint(names)
        if fused and text in ("{0} + {1}", "{0} - {1}", "{0} - 1"):
            return
        name = f"x{len(self.values)}"
        if floats and (fused or "*" in text):
            self.products.add(name)
        self.lines.append(f"{name} = {text.format(*names)}")
        self.values[name] = results

    @property
    def text(self):
        stores = ["out[me] = np.uint64(0)"]
        for row, (name, values) in enumerate(self.values.items()):
            as_whole = f"out[me] = out[me] * np.uint64(31) + np.uint64({name})"
            stores.append(f"reals[{row}, me] = {name}" if is_float(values[0]) else as_whole)
        head = ["@cuda.jit", f"def {self.name}(out, reals):", "    me = cuda.threadIdx.x"]
        return "\n".join([*head, *("    " + line for line in [*self.lines, *stores])])

    def expected(self):
        out, reals = [0] * THREADS, np.zeros((len(self.values), THREADS))
        for row, values in enumerate(self.values.values()):
            for lane, number in enumerate(values):
                if is_float(number):
                    reals[row, lane] = number.value
                else:
                    out[lane] = (out[lane] * 31 + number.value) % (1 << 64)
        return summed(out, reals)


def summed(out, reals):
    """One number for all that a kernel stores; any NaN is as good as another, and so are zeros."""
    bits = np.where(np.isnan(reals), 1.0, reals + 0.0).astype(np.float64).view(L)
    rows = np.zeros((ROWS, THREADS), L)
    rows[: len(bits)] = bits
    return fuzz.folded([*out, *rows.ravel()])
