"""Random CUDA C kernels, and what each must give, worked out for all lanes at once with NumPy.

    python -m tests.conformance.fuzz --kernels 1000 --seed 7

prints the kernels whose result on the CPU engine differs, and counts; with `--gpu` nvcc builds them
and a GPU runs them, which tries the rules below. Each is drawn from its own number, so that one can
be had again alone: `--only 7000012 --show`. A kernel has expressions of all widths with PTX's rules
for conversions, branches, loops, switches, operations of whole warps and of parts, exchange through
shared memory, atomics. Each statement is built twice, as C and as a function of NumPy arrays; the
engine has no part in the second. `fuzz_numba.py` draws kernels of Numba from the same statements.

What a compiler may choose is left out: signed overflow, shifts by the width or more, contracted
products, payloads of NaN.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from tests.processes import completed
from utils.cpu.cuda_c.build import build_program

THREADS = 64
WARP = 32
MASK = 0xFFFFFFFF
U, I, L, F = np.uint32, np.int32, np.uint64, np.float32  # noqa: E741
C_TYPE = {U: "unsigned", I: "int", L: "unsigned long long", F: "float"}
LANE = np.arange(THREADS, dtype=U)
#: Kernels of one source file: compiling one costs less beside others.
TOGETHER = 60


# ---- expressions: (text, function of the variables' arrays)


def shifted(value, amount, left):
    """By less than the width: of more, PTX would clamp the amount, and C++ says nothing."""
    amount = amount.astype(value.dtype)
    return value << amount if left else value >> amount


def saturated(value, to):
    """A float as an integer: cut, then the nearest that there is; NaN gives 0."""
    limits = np.iinfo(to)
    whole = np.trunc(np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30))
    inside = np.clip(whole, float(limits.min), float(limits.max))
    return inside.astype(np.int64).astype(to)


def fused(x, y, z):
    """x * y + z, rounded once: the sum in float64 is rounded to odd, then to float32."""
    product, z = x.astype(np.float64) * y, z.astype(np.float64)
    total = product + z
    back = total - product
    lost = (product - (total - back)) + (z - back)
    bits = total.view(np.int64)
    odd = np.isfinite(total) & (lost != 0) & (bits & 1 == 0)
    step = np.where((lost > 0) == (total > 0), 1, -1)
    return np.where(odd, bits + step, bits).view(np.float64).astype(F)


def popcount(value):
    return np.array([int(v).bit_count() for v in value], U)


def reversed_bits(value):
    return np.array([int(f"{int(v):032b}"[::-1], 2) for v in value], U)


def leading_zeros(value):
    return np.array([8 * value.itemsize - int(v).bit_length() for v in value], U)


def first_set(value):
    return np.array([(int(v) & -int(v)).bit_length() for v in value], U)


def permuted(x, y, selector):
    both = x.astype(L) | y.astype(L) << L(32)
    result = np.zeros(THREADS, U)
    for i in range(4):
        which = selector >> U(4 * i) & U(7)
        byte = both >> (which.astype(L) * L(8)) & L(255)
        result |= byte.astype(U) << U(8 * i)
    return result


def funnel(low, high, amount):
    both = low.astype(L) | high.astype(L) << L(32)
    return (both << (amount & U(31)).astype(L) >> L(32)).astype(U)


def smaller(x, y):
    """fminf: a number before NaN."""
    return np.where(np.isnan(x) | (y < x), y, x)


def larger(x, y):
    return np.where(np.isnan(x) | (y > x), y, x)


def moderate(bits):
    """A float whose exponent is between -20 and 19."""
    return ((bits & U(0x807FFFFF)) | (bits >> U(8)) % U(40) + U(107) << U(23)).view(F)


def bits_of(value):
    """1 for NaN, whose bits are the compiler's choice; 0 for both zeros."""
    bits = np.where(value == 0, 0, value.view(U))
    return np.where(np.isnan(value), 1, bits).astype(U)


# {0} and so on are operands, of the types named.
RULES = {
    U: [
        ("({0} + {1})", (U, U), lambda x, y: x + y),
        ("({0} - {1})", (U, U), lambda x, y: x - y),
        ("({0} * {1})", (U, U), lambda x, y: x * y),
        ("({0} & {1})", (U, U), lambda x, y: x & y),
        ("({0} | {1})", (U, U), lambda x, y: x | y),
        ("({0} ^ {1})", (U, U), lambda x, y: x ^ y),
        ("~{0}", (U,), lambda x: ~x),
        ("({0} << ({1} & 31))", (U, U), lambda x, n: shifted(x, n & U(31), True)),
        ("({0} >> ({1} & 31))", (U, U), lambda x, n: shifted(x, n & U(31), False)),
        ("({0} / ({1} | 1))", (U, U), lambda x, y: x // (y | U(1))),
        ("({0} % ({1} | 1))", (U, U), lambda x, y: x % (y | U(1))),
        ("min({0}, {1})", (U, U), np.minimum),
        ("max({0}, {1})", (U, U), np.maximum),
        ("({0} < {1} ? {2} : {3})", (U, U, U, U), lambda x, y, p, q: np.where(x < y, p, q)),
        ("(unsigned)({0} < {1})", (I, I), lambda x, y: (x < y).astype(U)),
        ("(unsigned)({0} >= {1})", (F, F), lambda x, y: (x >= y).astype(U)),
        ("(unsigned){0}", (I,), lambda x: x.view(U)),
        ("(unsigned){0}", (L,), lambda x: (x & L(MASK)).astype(U)),
        ("(unsigned)({0} >> 32)", (L,), lambda x: (x >> L(32)).astype(U)),
        ("(unsigned){0}", (F,), lambda x: saturated(x, U)),
        ("(unsigned)(unsigned char){0}", (U,), lambda x: x & U(255)),
        ("(unsigned)(unsigned short){0}", (U,), lambda x: x & U(65535)),
        ("bits_of({0})", (F,), bits_of),
        ("(unsigned)__popc({0})", (U,), popcount),
        ("(unsigned)__clz((int){0})", (U,), leading_zeros),
        ("(unsigned)__ffs((int){0})", (U,), first_set),
        ("__brev({0})", (U,), reversed_bits),
        ("__umulhi({0}, {1})", (U, U), lambda x, y: (x.astype(L) * y >> L(32)).astype(U)),
        ("__byte_perm({0}, {1}, {2})", (U, U, U), permuted),
        ("__funnelshift_l({0}, {1}, {2})", (U, U, U), funnel),
        ("({0} && {1} ? 3u : 5u)", (U, U), lambda x, y: np.where((x != 0) & (y != 0), U(3), U(5))),
    ],
    I: [
        ("(int){0}", (U,), lambda x: x.view(I)),
        ("(int){0}", (F,), lambda x: saturated(x, I)),
        ("(short){0}", (U,), lambda x: x.astype(np.uint16).view(np.int16).astype(I)),
        ("(signed char){0}", (U,), lambda x: x.astype(np.uint8).view(np.int8).astype(I)),
        ("({0} & {1})", (I, I), lambda x, y: x & y),
        ("({0} ^ {1})", (I, I), lambda x, y: x ^ y),
        ("({0} >> ({1} & 31))", (I, U), lambda x, n: shifted(x, n & U(31), False)),
        ("({0} / (int)(({1} & 255) + 1))", (I, U), lambda x, y: cut(x, y, True)),
        ("({0} % (int)(({1} & 255) + 1))", (I, U), lambda x, y: cut(x, y, False)),
        ("min({0}, {1})", (I, I), np.minimum),
        ("max({0}, {1})", (I, I), np.maximum),
        ("__mulhi({0}, {1})", (I, I), lambda x, y: (x.astype(np.int64) * y >> 32).astype(I)),
        ("({0} > {1} ? {2} : {3})", (I, I, I, I), lambda x, y, p, q: np.where(x > y, p, q)),
    ],
    L: [
        ("({0} + {1})", (L, L), lambda x, y: x + y),
        ("({0} * {1})", (L, L), lambda x, y: x * y),
        ("({0} ^ {1})", (L, L), lambda x, y: x ^ y),
        ("({0} - {1})", (L, L), lambda x, y: x - y),
        ("((unsigned long long){0})", (U,), lambda x: x.astype(L)),
        ("((unsigned long long){0})", (I,), lambda x: x.astype(np.int64).view(L)),
        ("({0} << ({1} & 63))", (L, U), lambda x, n: shifted(x, n & U(63), True)),
        ("({0} >> ({1} & 63))", (L, U), lambda x, n: shifted(x, n & U(63), False)),
        ("({0} / ({1} | 1))", (L, L), lambda x, y: x // (y | L(1))),
        ("({0} % ({1} | 1))", (L, L), lambda x, y: x % (y | L(1))),
        ("((unsigned long long){0} * {1})", (U, U), lambda x, y: x.astype(L) * y),
    ],
    F: [
        ("__fadd_rn({0}, {1})", (F, F), lambda x, y: x + y),
        ("__fsub_rn({0}, {1})", (F, F), lambda x, y: x - y),
        ("__fmul_rn({0}, {1})", (F, F), lambda x, y: x * y),
        ("__fmaf_rn({0}, {1}, {2})", (F, F, F), fused),
        ("__fdiv_rn({0}, {1})", (F, F), lambda x, y: x / y),
        ("__fsqrt_rn(fabsf({0}))", (F,), lambda x: np.sqrt(np.abs(x))),
        ("fminf({0}, {1})", (F, F), smaller),
        ("fmaxf({0}, {1})", (F, F), larger),
        ("floorf({0})", (F,), np.floor),
        ("truncf({0})", (F,), np.trunc),
        ("rintf({0})", (F,), np.rint),
        ("(float){0}", (I,), lambda x: x.astype(F)),
        ("(float){0}", (U,), lambda x: x.astype(F)),
        ("moderate({0})", (U,), moderate),
        ("({0} < {1} ? {2} : {3})", (F, F, F, F), lambda x, y, p, q: np.where(x < y, p, q)),
    ],
}


def cut(x, y, quotient):
    """C's division, which cuts towards zero."""
    x, y = x.astype(np.int64), ((y & U(255)) + U(1)).astype(np.int64)
    result = np.sign(x) * (np.abs(x) // y)
    return (result if quotient else x - result * y).astype(I)


VARIABLES = {"a": U, "b": U, "c": U, "s": I, "l": L, "f": F}


class Drawn:
    """A kernel: `lines` of a language, and `steps`, the same as functions of (variables, active
    lanes). What a statement is called in the language, a subclass says.
    """

    RULES: dict = {}
    SCALED: Callable = None  # a float of any bits
    ANYWHERE = ["assign"] * 4 + ["element", "count_up"]
    NESTED = ["branch", "loop"]
    TOGETHER: list[str] = []
    WIDTHS = [WARP]
    VOTES = ["ballot", "any", "all", "match_any"]
    COUNTS = ["count"]

    def __init__(self, number):
        self.number = number
        self.random = random.Random(number)
        self.name = f"k{number}"
        self.loops = 0
        self.atomic = self.random.choice(["Add", "Xor", "Max", "Or"])
        self.readable = dict(VARIABLES)
        self.start = [self.random.getrandbits(32) for _ in range(2)]
        self.lines, self.steps = self.block(self.random.randint(4, 9), 0, whole=True)

    # ---- expressions

    def expression(self, kind, depth):
        names = [name for name, of in self.readable.items() if of is kind]
        if depth == 0 or self.random.random() < 0.15:
            if kind is U and self.random.random() < 0.3:
                value = self.random.choice([0, 1, 31, 32, 0x7FFFFFFF, self.random.getrandbits(32)])
                return self.literal(value), lambda v: np.full(THREADS, value, U)
            name = self.random.choice(names)
            return name, lambda v: v[name]
        text, kinds, rule = self.random.choice(self.RULES[kind])
        parts = [self.expression(of, depth - 1) for of in kinds]

        def value(v):
            return rule(*(part(v) for _, part in parts)).astype(kind)

        return text.format(*(part for part, _ in parts)), value

    def condition(self):
        text, value = self.expression(U, 2)
        bit = self.random.randrange(32)
        return self.tested(text, bit), lambda v: (value(v) >> U(bit) & U(1)) == 1

    # ---- statements

    def block(self, count, depth, whole=False):
        """Statements, indented; `whole`: all lanes of the block are here."""
        lines, steps = [], []
        for _ in range(count):
            choices = list(self.ANYWHERE)
            if depth < 3:
                choices += self.NESTED
            if whole:
                choices += self.TOGETHER
            more, step = getattr(self, self.random.choice(choices))(depth)
            lines += ["    " + line for line in more]
            steps.append(step)
        return lines, steps

    def assign(self, depth):
        name, kind = self.random.choice(list(VARIABLES.items()))
        text, value = self.expression(kind, 3)
        if kind in (U, L) and self.random.random() < 0.3:
            return self.changed(name, text), lambda v, on: put(v, name, v[name] ^ value(v), on)
        return self.set(name, text), lambda v, on: put(v, name, value(v), on)

    def element(self, depth):
        where, place = self.expression(U, 1)
        text, value = self.expression(U, 2)

        def step(v, on):
            index = place(v) & U(3)
            v["t"][LANE[on], index[on]] = value(v)[on]
            put(v, "b", v["b"] ^ v["t"][LANE, (index + U(1)) & U(3)], on)

        return self.stored(where, text), step

    def count_up(self, depth):
        where, place = self.expression(U, 1)
        text, value = self.expression(U, 2)
        of = {"Add": np.add, "Xor": np.bitwise_xor, "Max": np.maximum, "Or": np.bitwise_or}

        def step(v, on):
            of[self.atomic].at(v["sums"], place(v)[on] & U(7), value(v)[on])

        return self.counted_up(where, text), step

    def branch(self, depth):
        text, holds = self.condition()
        yes, then = self.block(self.random.randint(1, 3), depth + 1)
        no, otherwise = self.block(self.random.randint(0, 2), depth + 1)

        def step(v, on):
            taken = holds(v)
            run(then, v, on & taken)
            run(otherwise, v, on & ~taken)

        return self.branched(text, yes, no), step

    def loop(self, depth):
        self.loops += 1
        end, i = f"n{self.loops}", f"i{self.loops}"
        text, bound = self.expression(U, 1)
        left, leaves = self.condition()
        self.readable[i] = U
        lines, steps = self.block(self.random.randint(1, 3), depth + 1)
        word = self.random.choice(["break", "continue"])
        rest, more = self.block(1, depth + 1)
        del self.readable[i]

        def step(v, on):
            times = bound(v) & U(7)
            turn = 0
            v[i] = np.zeros(THREADS, U)
            while (on := on & (turn < times)).any():
                run(steps, v, on)
                gone = leaves(v) & on
                run(more, v, on & ~gone)
                if word == "break":
                    on = on & ~gone
                turn += 1
                v[i] = np.full(THREADS, turn, U)

        return self.looped(i, end, text, lines, left, word, rest), step

    # ---- of whole warps

    def shuffle(self, depth):
        kind = self.random.choice(["", "_up", "_down", "_xor"])
        width = self.random.choice(self.WIDTHS)
        name = self.random.choice(["a", "l", "f"])
        text, value = self.expression(VARIABLES[name], 2)
        if kind:
            amount = self.random.randrange(width)
            where, delta = str(amount), lambda v: np.full(THREADS, amount, np.int64)
        else:
            where, number = self.expression(U, 1)
            where, delta = self.lane(where), lambda v: (number(v) & U(31)).astype(np.int64)

        def step(v, on):
            lane = LANE.astype(np.int64)
            first, d = lane // width * width, delta(v)
            source = {
                "": first + d % width,
                "_up": lane - d,
                "_down": lane + d,
                "_xor": lane ^ d,
            }[kind]
            outside = (source < first) | (source >= first + width)
            put(v, name, value(v)[np.where(outside, lane, source)], on)

        return self.shuffled(name, kind, text, where, width), step

    def vote(self, depth):
        text, holds = self.condition()
        call = self.random.choice(self.VOTES)
        if call == "match_any":
            number, value = self.expression(U, 2)
            return (
                self.matched(number),
                lambda v, on: put(v, "b", v["b"] ^ alike(value(v) & U(3), on), on),
            )

        def step(v, on):
            votes = ballot(holds(v), on)
            of = {
                "ballot": votes,
                "any": (votes != 0).astype(U),
                "all": (votes == MASK).astype(U),
                "eq": ((votes == MASK) | (votes == 0)).astype(U),
            }
            put(v, "b", v["b"] ^ of[call], on)

        return self.voted(call, text), step

    # ---- of the block

    def exchange(self, depth):
        text, value = self.expression(U, 2)
        by = self.random.randrange(1, THREADS)
        return self.exchanged(text, by), lambda v, on: put(
            v, "a", v["a"] + np.roll(value(v), -by), on
        )

    def look(self, depth):
        where, place = self.expression(U, 1)
        return self.looked(where), lambda v, on: put(
            v, "c", v["c"] + v["sums"][place(v) & U(7)], on
        )

    def barrier_count(self, depth):
        text, holds = self.condition()
        word = self.random.choice(self.COUNTS) if len(self.COUNTS) > 1 else self.COUNTS[0]
        of = {"count": np.sum, "and": np.all, "or": np.any}[word]

        def step(v, on):
            put(v, "b", v["b"] + U(of(holds(v))), on)

        return self.barrier_counted(word, text), step

    # ---- the whole

    def ended(self):
        """The variables as all lanes leave them."""
        first, second = self.start
        a = LANE * U(first)
        b = a ^ U(second)
        c = reversed_bits(a + b)
        v = {"a": a, "b": b, "c": c, "s": (b - c).view(I), "l": a.astype(L) * c}
        v |= {"sums": np.zeros(8, U), "t": np.stack([a, b, c, np.full(THREADS, 7, U)], axis=1)}
        with np.errstate(all="ignore"):
            v["f"] = self.SCALED(a ^ c)
            run(self.steps, v, np.ones(THREADS, bool))
        return v

    def expected(self):
        """The sum of what the lanes store, as the program prints it."""
        v = self.ended()
        high = (v["a"] ^ v["sums"][LANE % U(8)]).astype(L) << L(32)
        l = v["l"] ^ (high | (v["b"] + v["c"]).astype(L))  # noqa: E741
        return folded(l ^ bits_of(v["f"]).astype(L) << L(16) ^ v["s"].view(U).astype(L))


def folded(words):
    total = 0
    for word in words:
        total = (total * 31 + int(word)) % (1 << 64)
    return total


REDUCTIONS = (
    ("add", np.add),
    ("min", np.minimum),
    ("max", np.maximum),
    ("and", np.bitwise_and),
    ("or", np.bitwise_or),
    ("xor", np.bitwise_xor),
)


def run(steps, v, on):
    if on.any():
        for step in steps:
            step(v, on)


def put(v, name, value, on):
    v[name] = np.where(on, value, v[name]).astype(v[name].dtype)


def by_warp(on, of):
    """`of` the active lanes' numbers in each warp, for each of its lanes."""
    result = np.zeros(THREADS, U)
    for first in range(0, THREADS, WARP):
        active = np.flatnonzero(on[first : first + WARP]) + first
        if len(active):
            result[active] = of(active)
    return result


def ballot(holds, on):
    def bits(active):
        return U(sum(1 << int(lane) % WARP for lane in active if holds[lane]))

    return by_warp(on, bits)


def alike(value, on):
    def bits(active):
        return [
            sum(1 << int(other) % WARP for other in active if value[other] == value[lane])
            for lane in active
        ]

    return by_warp(on, bits)


def reduced(value, on, of):
    return by_warp(on, lambda active: of.reduce(value[active], dtype=U))


class Kernel(Drawn):
    """A kernel of CUDA C."""

    RULES = RULES
    SCALED = staticmethod(moderate)
    NESTED = ["branch", "loop", "switch"]
    TOGETHER = ["shuffle", "vote", "reduce", "part"] * 2 + ["exchange", "look", "barrier_count"]
    WIDTHS = [32, 32, 16, 8]

    def literal(self, value):
        return f"{value}u"

    def tested(self, text, bit):
        return f"({text} >> {bit} & 1)"

    def set(self, name, text):
        return [f"{name} = {text};"]

    def changed(self, name, text):
        return [f"{name} ^= {text};"]

    def stored(self, where, text):
        return [f"t[{where} & 3] = {text};", f"b ^= t[({where} + 1) & 3];"]

    def counted_up(self, where, text):
        return [f"atomic{self.atomic}(&sums[{where} & 7], {text});"]

    def branched(self, text, yes, no):
        return [f"if ({text}) {{", *yes, "} else {", *no, "}"]

    def looped(self, i, end, text, lines, left, word, rest):
        head = f"for (unsigned {i} = 0; {i} < {end}; {i}++) {{"
        leave = f"    if ({left}) {word};"
        return [f"const unsigned {end} = {text} & 7;", head, *lines, leave, *rest, "}"]

    def lane(self, text):
        return f"{text} & 31"

    def shuffled(self, name, kind, text, where, width):
        return [f"{name} = __shfl{kind}_sync(~0u, {text}, {where}, {width});"]

    def matched(self, text):
        return [f"b ^= __match_any_sync(~0u, {text} & 3);"]

    def voted(self, call, text):
        return [f"b ^= __{call}_sync(~0u, {text});"]

    def exchanged(self, text, by):
        return [
            f"shared[threadIdx.x] = {text};",
            "__syncthreads();",
            f"a += shared[(threadIdx.x + {by}) % {THREADS}];",
            "__syncthreads();",
        ]

    def looked(self, where):
        return ["__syncthreads();", f"c += sums[{where} & 7];", "__syncthreads();"]

    def barrier_counted(self, word, text):
        return [f"b += __syncthreads_{word}({text});"]

    # ---- what is C's alone

    def switch(self, depth):
        text, value = self.expression(U, 1)
        lines, cases = [f"switch ({text} & 3) {{"], []
        for label in ("case 0", "case 1", "case 2", "default"):
            body, steps = self.block(1, depth + 1)
            ends = self.random.random() < 0.6
            lines += [f"{label}: {{", *body, "}", *(["break;"] if ends else [])]
            cases.append((steps, ends))

        def step(v, on):
            chosen = np.minimum(value(v) & U(3), U(3))
            inside = np.zeros(THREADS, bool)
            for number, (steps, ends) in enumerate(cases):
                inside |= on & (chosen == number)
                run(steps, v, inside)
                if ends:
                    inside = np.zeros(THREADS, bool)

        return [*lines, "}"], step

    def reduce(self, depth):
        word, of = self.random.choice(REDUCTIONS)
        text, value = self.expression(U, 2)
        return (
            [f"c ^= __reduce_{word}_sync(~0u, {text});"],
            lambda v, on: put(v, "c", v["c"] ^ reduced(value(v), on, of), on),
        )

    def part(self, depth):
        """Some lanes shuffle, reduce and vote among themselves."""
        text, holds = self.condition()
        where, place = self.expression(U, 1)
        number, value = self.expression(U, 2)
        word, of = self.random.choice(REDUCTIONS)

        def step(v, on):
            on = on & holds(v)
            mask = ballot(on, on)
            source = place(v) & U(31)
            inside = (mask >> source & U(1)) == 1
            source = np.where(inside, LANE // U(WARP) * U(WARP) + source, LANE)
            put(v, "a", value(v)[source], on)
            put(v, "c", v["c"] ^ reduced(v["a"], on, of), on)
            put(v, "b", v["b"] ^ mask, on)

        return [
            "{",
            f"    const bool in = {text};",
            "    const unsigned m = __ballot_sync(~0u, in);",
            "    if (in) {",
            f"        unsigned from = {where} & 31;",
            "        from = m >> from & 1 ? from : threadIdx.x % 32;",
            f"        a = __shfl_sync(m, {number}, from);",
            f"        c ^= __reduce_{word}_sync(m, a);",
            "        b ^= m;",
            "    }",
            "    __syncwarp();",
            "}",
        ], step

    @property
    def text(self):
        first, second = self.start
        return "\n".join(
            [
                f"__global__ void {self.name}(unsigned long long* out) {{",
                f"    __shared__ unsigned shared[{THREADS}], sums[8];",
                f"    unsigned a = threadIdx.x * {first}u, b = a ^ {second}u, c = __brev(a + b);",
                "    unsigned t[4] = {a, b, c, 7};",
                "    int s = (int)(b - c);",
                "    unsigned long long l = (unsigned long long)a * c;",
                "    float f = moderate(a ^ c);",
                "    if (threadIdx.x < 8) sums[threadIdx.x] = 0;",
                "    __syncthreads();",
                *self.lines,
                "    __syncthreads();",
                "    l ^= (unsigned long long)(a ^ sums[threadIdx.x % 8]) << 32 | (b + c);",
                "    out[threadIdx.x] = l ^ ((unsigned long long)bits_of(f) << 16) ^ (unsigned)s;",
                "}",
            ]
        )


PRELUDE = """
#include <cstdio>
__device__ unsigned bits_of(float x) { return x != x ? 1u : x == 0 ? 0u : __float_as_uint(x); }
__device__ float moderate(unsigned x) {
    return __uint_as_float((x & 0x807fffffu) | (((x >> 8) % 40 + 107) << 23));
}
"""
MAIN = """
int main() {{
    unsigned long long* out;
    cudaMallocManaged(&out, {threads} * sizeof *out);
{launches}
    cudaFree(out);
}}
"""
LAUNCH = """    {name}<<<1, {threads}>>>(out);
    cudaDeviceSynchronize();
    {{
        unsigned long long sum = 0;
        for (int i = 0; i < {threads}; i++) sum = sum * 31 + out[i];
        printf("{name} %llu\\n", sum);
    }}"""


def source(kernels):
    """One program that runs them in turn and prints a line for each."""
    texts = [kernel.text for kernel in kernels]
    launches = [LAUNCH.format(name=kernel.name, threads=THREADS) for kernel in kernels]
    main = MAIN.format(threads=THREADS, launches="\n".join(launches))
    return "\n".join([PRELUDE, *texts, main])


def built_by_nvcc(source):
    """The program, for the GPU of this machine."""
    program = source.with_suffix(".nvcc")
    completed(["nvcc", "-std=c++17", "-arch=native", "-o", program, source], check=True)
    return program


def differences(numbers, folder, build=build_program):
    """{name: (printed, expected)} of the kernels of these numbers that differ.

    A message, too, is a difference: the kernels are right.
    build: makes a program of a file; the CPU engine's, unless told otherwise.
    """
    kernels = [Kernel(number) for number in numbers]
    path = Path(folder) / f"fuzz_{numbers[0]}.cu"
    path.write_text(source(kernels))
    done = completed([build(path)])
    printed = dict(line.split() for line in done.stdout.splitlines())
    expected = {kernel.name: str(kernel.expected()) for kernel in kernels}
    wrong = {
        name: (printed.get(name), value)
        for name, value in expected.items()
        if printed.get(name) != value
    }
    return wrong | ({"alarm": (done.stderr[:1000], "")} if done.stderr else {})


def some(numbers, build, end, differences=differences):
    """How many were tried, and `differences`, of this module or of `fuzz_numba`; nothing is begun
    after `end`.
    """
    if time.monotonic() > end:
        return 0, {}
    with tempfile.TemporaryDirectory() as folder:
        return len(numbers), differences(numbers, folder, build)


def options(description):
    """What the command is asked on its line, of this module and of `fuzz_numba`."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--kernels", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one kernel")
    parser.add_argument("--show", action="store_true", help="print the source")
    parser.add_argument("--gpu", action="store_true", help="compiled for the GPU, run by it")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so many")
    return parser


def tried(given, source, some, together):
    """Whether of the kernels asked for one differs; prints which, and how many were tried.

    source: of these numbers; some: as below, of a part of them.
    """
    first = given.seed * 1_000_000
    numbers = [given.only] if given.only else range(first, first + given.kernels)
    if given.show:
        print(source(numbers))
    parts = [numbers[start : start + together] for start in range(0, len(numbers), together)]
    kernels = found = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        end = time.monotonic() + given.seconds
        for count, wrong in pool.map(partial(some, end=end), parts):
            kernels += count
            found += len(wrong)
            for name, (printed, expected) in wrong.items():
                print(f"{name}: printed {printed}, expected {expected}", flush=True)
    print(f"{kernels} kernels, {found} differences")
    return found > 0


def main():
    parser = options(__doc__)
    parser.add_argument("--check", action="store_true", help="under the slow checks")
    given = parser.parse_args()
    build = built_by_nvcc if given.gpu else partial(build_program, check=given.check)
    text = lambda numbers: source([Kernel(number) for number in numbers])  # noqa: E731
    return tried(given, text, partial(some, build=build), TOGETHER)


if __name__ == "__main__":
    sys.exit(main())
