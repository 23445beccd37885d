"""Which globals a kernel may use: what numba-cuda's compiler says, asked without a GPU."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import collections
import enum
import fractions
import functools
import importlib.util
import linecache
import math
import operator
import types

import numba
import numpy as np
import pytest
from numba import cuda
from numba.core.errors import TypingError

from course.checking import engines, numba_kernels, typing
from course.checking.rejected import Rejected
from course.exercises import EXERCISES
from utils import has_gpu

if has_gpu() or importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("asks numba-cuda beside the CPU engine", allow_module_level=True)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Side(enum.IntEnum):
    LEFT = 1
    RIGHT = 2


Pair = collections.namedtuple("Pair", "first second")


class Settings:
    half = 0.5

    def __call__(self, a):
        return a


@cuda.jit(device=True)
def twice(a):
    return 2 * a


TAKEN = {
    "whole": (3, "known + 1"),
    "float32": (np.float32(3), "known + 1"),
    "half": (np.float16(3), "known * 1"),
    "complex": (1j, "(known * known).real"),
    "none": (None, "1 if known is None else 2"),
    "text": ("abc", "len(known)"),
    "slice": (slice(0, 1), "out[known][0]"),
    "array": (np.arange(4.0), "known[1]"),
    "array in device memory": (cuda.to_device(np.ones((2, 3))), "known[1, 2]"),
    "records": (np.zeros(2, [("a", "f4")]), "known[0]['a']"),
    "dtype": (np.dtype("f4"), "cuda.local.array(2, known)[0]"),
    "NumPy's type": (np.float32, "known(1)"),
    "Numba's type": (numba.float32, "known(1)"),
    "Numba's bool": (numba.boolean, "known(1)"),
    "int": (int, "known(2.5)"),
    "member": (Color.RED, "1 if known is known else 2"),
    "enumeration": (Color, "1 if known.RED is known.BLUE else 2"),
    "whole member": (Side.LEFT, "known + 1"),
    "whole enumeration": (Side, "known.RIGHT + 1"),
    "named tuple's class": (Pair, "known(1, 2).first"),
    "named tuple": (Pair(1, 2), "known.second"),
    "tuple of tuples": (((1, 2.0), (3, 4.0)), "known[1][0]"),
    "tuple of arrays": ((np.ones(2), np.ones(3)), "known[0][1]"),
    "tuple of functions": ((twice, twice), "known[0](1)"),
    "device function": (twice, "known(1)"),
    "constant": (math.pi, "known"),
    "module": (math, "known.sqrt(2.0)"),
    "module's function": (math.sqrt, "known(2.0)"),
    "operator": (operator.add, "known(1, 2)"),
    "NumPy's function": (np.sin, "known(2.0)"),
    "cuda.grid": (cuda.grid, "known(1)"),
    "cuda.libdevice": (cuda.libdevice, "known.fast_expf(2.0)"),
    "a vector type": (cuda.float32x4, "known(1.0, 2.0, 3.0, 4.0).x"),
    "whole as large as can be": (2**63 - 1, "known"),
}
REFUSED = {
    "cuda.atomic.add": (cuda.atomic.add, "known(out, 0, 1)", "type"),
    "list": ([0, 1], "known[0]", "list"),
    "set": ({0, 1}, "1 if 1 in known else 2", "set"),
    "dictionary": ({"a": 1.0}, "known['a']", "dict"),
    "range": (range(3), "known[1]", "range"),
    "fraction": (fractions.Fraction(1), "1.0 * known", "fractions.Fraction"),
    "partial": (functools.partial(operator.and_, 15), "known(3)", "functools.partial"),
    "object": (Settings(), "known.half", "Settings"),
    "callable object": (Settings(), "known(1)", "Settings"),
    "class": (Settings, "known.half", "type"),
    "namespace": (types.SimpleNamespace(half=1), "known.half", "types.SimpleNamespace"),
    "tuple with an object": ((1, Settings()), "known[0]", "tuple"),
    "too large a whole number": (2**70, "known", "too large"),
}


def kernel_with(known, expression, before=""):
    """A kernel that stores what an expression of a global `known` gives."""
    source = f"@cuda.jit\ndef kernel(out):\n    {before}\n    out[0] = {expression}\n"
    filename = f"<{hash(source)}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    namespace = {"known": known, "cuda": cuda, "math": math, "np": np}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["kernel"]


def refused(known, expression, before="", whole=True):
    return typing.refused(kernel_with(known, expression, before), {"out": np.zeros(2)}, whole)


@pytest.mark.parametrize("known, expression", TAKEN.values(), ids=TAKEN)
def test_what_numba_takes_from_outside_is_taken(known, expression):
    assert refused(known, expression) is None
    # and it was really asked: nothing else is refused in such a kernel
    message, _ = refused(known, expression, before="known_not")
    assert "known_not" in message


@pytest.mark.parametrize("known, expression, says", REFUSED.values(), ids=REFUSED)
def test_what_numba_cannot_type_is_refused_and_named(known, expression, says):
    message, line = refused(known, expression)
    assert "known" in message
    assert says in message
    assert line == 4
    assert refused(known, expression, whole=False)


NOT_COMPILED = {
    "star": ("known", "first, *rest = (1, 2)", "`*` on the left"),
    "set": ("1 if out.size in {1, 2} else known", "", "a set"),
    "class": ("known", "class Inside: pass", "a class"),
    "import": ("known", "import math", "`import`"),
    "a function of NumPy": ("np.sqrt(out[1]) + known", "", "`math` may have it"),
    "an array's method": ("out.ravel()[0] + known", "", "returning of array"),
}
COMPILED = {
    "sine": ("np.sin(out[1]) + known", ""),
    "unpacked": ("first + known", "first, second = (1, 2)"),
    "tuple": ("1 if out.size in (1, 2) else known", ""),
    "reshaped": ("out.reshape((2, 1))[0, 0] + known", ""),
    "choice": ("known if out[1] > 0 else 2 * known", ""),
}


@pytest.mark.parametrize("expression, before, says", NOT_COMPILED.values(), ids=NOT_COMPILED)
def test_what_has_types_and_is_not_compiled_is_refused(expression, before, says):
    message, _ = refused(1.0, expression, before)
    assert says in message


def test_types_can_be_asked_for_alone():
    assert refused(1.0, "1 if out.size in {1, 2} else known", whole=False) is None
    assert refused([1], "known[0]", whole=False)
    assert refused(1.0, "known * sorted((1, 2))[0]", whole=False)


def test_what_has_a_type_for_certain_is_not_asked_for_alone(monkeypatch):
    asked = []
    monkeypatch.setattr(typing.compiler, "ask", asked.append)
    refused(twice, "min(math.sqrt(known(2.0)), len(out))", whole=False)
    assert not asked
    refused(Settings(), "known(2.0)", whole=False)
    assert asked


@pytest.mark.parametrize("expression, before", COMPILED.values(), ids=COMPILED)
def test_what_is_compiled_is_not_refused(expression, before):
    assert refused(1.0, expression, before) is None


def test_a_function_inside_the_kernel_uses_what_is_outside():
    before = "inner = lambda a: math.sqrt(a) + known"
    assert refused(1.0, "inner(4.0)", before) is None
    assert refused(Settings(), "inner(4.0)", before)


def test_an_attribute_of_the_same_name_is_no_global():
    assert "known" in refused([1], "out.known")[0]
    assert "attribute" in refused([1], "out.known")[0]


def test_what_cannot_be_told_is_not_refused():
    assert refused(np.zeros(1 << 18), "known[0]") is None
    assert refused(10**5000, "known") is None  # more digits than Python writes


def test_a_variable_that_comes_later_is_not_asked_for():
    def made():
        def kernel(out):
            out[0] = later

        return kernel
        later = 1

    assert typing.refused(cuda.jit(made()), {"out": np.zeros(2)}) is None


ONE = Settings()  # no number, for a GPU


@cuda.jit
def scale(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = ONE(factor) * a[i]


def test_a_gpus_compiler_is_told_in_the_same_words(monkeypatch):
    def refused_by_the_gpu(*arguments):
        raise engines.Stopped(TypingError("\x1b[1mUntyped global name 'ONE':\x1b[0m no type"))

    def said():
        with pytest.raises(Rejected) as no:
            numba_kernels.try_numba(EXERCISES["first_kernels.scale_guard"], scale, seed=1)
        return no.value.reason, no.value.lines

    without = said()
    monkeypatch.setattr(engines, "run_guarded", refused_by_the_gpu)
    assert said() == without
    assert without[0] == "does_not_compile"
