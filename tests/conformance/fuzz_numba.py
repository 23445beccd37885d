"""Random Numba kernels, and what each must give, worked out with NumPy and by Numba's rules.

    python -m tests.conformance.fuzz_numba --kernels 300 --seed 7

prints the kernels whose result on the CPU engine differs, and counts; `--gpu` runs them by
numba-cuda, `--only 7000012 --show` one of them alone. They are of two families. In one, drawn as
`fuzz.py` draws its own, every expression is cast to its variable's type; NumPy works it out. In the
other nothing is cast and a line is one operation; its type is what Numba makes of it, by the rules
that a GPU's results were held against (`rules/typed.py`).

What a compiler may choose is left out: signed overflow, shifts by the width or more, products that
may be fused with a sum, payloads of NaN. Half of the kernels run with their threads in a shuffled
order, and half of these by generators.
"""

import contextlib
import runpy
import sys
from functools import partial
from pathlib import Path

import numpy as np

from tests.conformance import fuzz
from tests.conformance.fuzz import LANE, THREADS, L, U
from tests.conformance.fuzz_expressions import RULES, scaled
from tests.conformance.fuzz_uncast import ROWS, Uncast, summed
from utils.cpu import numba_cuda
from utils.cpu.numba_cuda import fibres

TOGETHER = 30
FULL = "0xFFFFFFFF"
CASTS = {"a": "np.uint32", "b": "np.uint32", "c": "np.uint32", "l": "np.uint64"}
#: What a shuffle takes, and the variable's own type: numba-cuda has it for these only
MOVED = {"a": ("np.int32", "np.uint32"), "l": ("np.int64", "np.uint64"), "f": ("", "")}
ATOMICS = {"Add": "add", "Xor": "xor", "Max": "max", "Or": "or_"}


class Kernel(fuzz.Drawn):
    """A kernel in which every expression has its variable's type."""

    RULES = RULES
    SCALED = staticmethod(scaled)
    NESTED = ["branch", "loop", "repeat"]
    TOGETHER = ["shuffle", "vote", "vote", "part"] * 2 + ["exchange", "look", "barrier_count"]
    VOTES = ["ballot", "any", "all", "eq", "match_any"]
    COUNTS = ["count", "and", "or"]

    def literal(self, value):
        return f"np.uint32({value})"

    def tested(self, text, bit):
        return f"({text} >> np.uint32({bit}) & np.uint32(1))"

    def set(self, name, text):
        return [f"{name} = {text}"]

    def changed(self, name, text):
        return [f"{name} = {CASTS[name]}({name} ^ {text})"]

    def stored(self, where, text):
        return [
            f"t[{where} & np.uint32(3)] = {text}",
            *self.changed("b", f"t[({where} + np.uint32(1)) & np.uint32(3)]"),
        ]

    def counted_up(self, where, text):
        return [f"cuda.atomic.{ATOMICS[self.atomic]}(sums, {where} & np.uint32(7), {text})"]

    def branched(self, text, yes, no):
        return [f"if {text}:", *yes, *(["else:", *no] if no else [])]

    def looped(self, i, end, text, lines, left, word, rest):
        head = [f"for {end} in range({text} & np.uint32(7)):", f"    {i} = np.uint32({end})"]
        return [*head, *lines, f"    if {left}:", f"        {word}", *rest]

    def repeat(self, depth):
        """A while loop; what stands in its else is left out by a break."""
        self.loops += 1
        n = f"n{self.loops}"
        text, bound = self.expression(U, 1)
        lines, steps = self.block(self.random.randint(1, 2), depth + 1)
        left, leaves = self.condition()
        rest, last = self.block(1, depth + 1)

        def step(v, on):
            turns, ends = bound(v) & U(7), on
            while (on := on & (turns != 0)).any():
                turns = turns - on.astype(U)
                fuzz.run(steps, v, on)
                gone = leaves(v) & on
                ends, on = ends & ~gone, on & ~gone
            fuzz.run(last, v, ends)

        leave = [f"    if {left}:", "        break"]
        down = f"    {n} = np.uint32({n} - np.uint32(1))"
        head = [f"{n} = np.uint32({text} & np.uint32(7))", f"while {n} > 0:", down]
        return [*head, *lines, *leave, "else:", *rest], step

    def lane(self, text):
        return f"{text} & np.uint32(31)"

    def shuffled(self, name, kind, text, where, width):
        as_moved, own = MOVED[name]
        return [f"{name} = {own}(cuda.shfl{kind}_sync({FULL}, {as_moved}({text}), {where}))"]

    def matched(self, text):
        value = f"np.int32({text} & np.uint32(3))"
        return self.changed("b", f"np.uint32(cuda.match_any_sync({FULL}, {value}))")

    def voted(self, call, text):
        return self.changed("b", f"np.uint32(cuda.{call}_sync({FULL}, {text}))")

    def part(self, depth):
        """Some lanes shuffle and vote among themselves."""
        text, holds = self.condition()
        where, place = self.expression(U, 1)
        number, value = self.expression(U, 2)
        vote, asked = self.condition()

        def step(v, on):
            on = on & holds(v)
            mask = fuzz.ballot(on, on)
            source = place(v) & U(31)
            inside = (mask >> source & U(1)) == 1
            source = np.where(inside, LANE // U(32) * U(32) + source, LANE)
            fuzz.put(v, "a", value(v)[source], on)
            fuzz.put(v, "b", v["b"] ^ mask, on)
            fuzz.put(v, "c", v["c"] ^ fuzz.ballot(asked(v), on), on)

        return [
            f"m = np.uint32(cuda.ballot_sync({FULL}, {text}))",
            f"if {text}:",
            f"    o = {where} & np.uint32(31)",
            "    if not m >> o & np.uint32(1):",
            "        o = np.uint64(me % 32)",
            f"    a = np.uint32(cuda.shfl_sync(m, np.int32({number}), o))",
            *("    " + line for line in self.changed("b", "m")),
            *(
                "    " + line
                for line in self.changed("c", f"np.uint32(cuda.ballot_sync(m, {vote}))")
            ),
            "cuda.syncwarp()",
        ], step

    def exchanged(self, text, by):
        return [
            f"shared[me] = {text}",
            "cuda.syncthreads()",
            f"a = np.uint32(a + shared[(me + {by}) % {THREADS}])",
            "cuda.syncthreads()",
        ]

    def looked(self, where):
        look = f"c = np.uint32(c + sums[{where} & np.uint32(7)])"
        return ["cuda.syncthreads()", look, "cuda.syncthreads()"]

    def barrier_counted(self, word, text):
        return [f"b = np.uint32(b + np.uint32(cuda.syncthreads_{word}(np.int32({text}))))"]

    @property
    def text(self):
        first, second = self.start
        return "\n".join(
            [
                "@cuda.jit",
                f"def {self.name}(out, reals):",
                "    me = cuda.threadIdx.x",
                f"    shared = cuda.shared.array({THREADS}, np.uint32)",
                "    sums = cuda.shared.array(8, np.uint32)",
                "    t = cuda.local.array(4, np.uint32)",
                f"    a = np.uint32(me * {first})",
                f"    b = np.uint32(a ^ np.uint32({second}))",
                "    c = cuda.brev(np.uint32(a + b))",
                "    s = np.int32(b - c)",
                "    l = np.uint64(a) * np.uint64(c)",
                "    f = scaled(np.uint32(a ^ c))",
                "    t[0], t[1], t[2], t[3] = a, b, c, 7",
                "    if me < 8:",
                "        sums[me] = 0",
                "    cuda.syncthreads()",
                *self.lines,
                "    cuda.syncthreads()",
                "    l ^= np.uint64(a ^ sums[me % 8]) << np.uint64(32)",
                "    l ^= np.uint64(np.uint32(b + c))",
                "    out[me] = l ^ np.uint64(np.uint32(s))",
                "    reals[0, me] = f",
            ]
        )

    def expected(self):
        v = self.ended()
        high = (v["a"] ^ v["sums"][LANE % U(8)]).astype(L) << L(32)
        out = v["l"] ^ (high | (v["b"] + v["c"]).astype(L)) ^ v["s"].view(U).astype(L)
        return summed(out, np.stack([v["f"]]))


# ---- running them


def drawn(number):
    return Uncast(number) if number % 3 == 0 else Kernel(number)


PRELUDE = """import math

import numpy as np
from numba import cuda


@cuda.jit(device=True)
def scaled(x):
    return np.float32(np.int32(x) >> 7) * np.float32(2.0**-10)
"""


def source(numbers):
    return "\n\n".join([PRELUDE, *(drawn(number).text + "\n" for number in numbers)])


def order(number):
    """The order of threads, and the way of waiting, in which the CPU engine runs a kernel."""
    if number % 2 == 0:
        return contextlib.nullcontext()
    stack = contextlib.ExitStack()
    stack.enter_context(numba_cuda.schedule(number))
    if number % 4 == 1:
        stack.enter_context(fibres.by_generators())
    return stack


def launched(kernel, number, gpu):
    """What a kernel stores, summed; or what it was refused with."""
    out = np.zeros(THREADS, L)
    reals = np.zeros((ROWS, THREADS))
    try:
        if gpu:
            kernel[1, THREADS](out, reals)
        else:
            with order(number), numba_cuda.time_limit(60):
                numba_cuda.cpu_jit(kernel)[1, THREADS](out, reals)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return summed(out, reals)


def differences(numbers, folder, gpu=False):
    """{name: (given, expected)} of the kernels of these numbers that differ."""
    path = Path(folder) / f"fuzz_{numbers[0]}.py"
    path.write_text(source(numbers))
    module = runpy.run_path(str(path))
    wrong = {}
    for kernel in map(drawn, numbers):
        given, expected = launched(module[kernel.name], kernel.number, gpu), kernel.expected()
        if given != expected:
            wrong[kernel.name] = given, expected
    return wrong


def some(numbers, gpu, end):
    """As `fuzz.some`, of Numba's kernels."""
    return fuzz.some(numbers, gpu, end, differences)


def main():
    given = fuzz.options(__doc__).parse_args()
    return fuzz.tried(given, source, partial(some, gpu=given.gpu), TOGETHER)


if __name__ == "__main__":
    sys.exit(main())
