"""Integers of Numba kernels keep their widths without a GPU, and floats their promotions."""

import ast
import json
import sys

import numpy as np
import pytest

from tests.conformance.rules import numba_cases
from tests.conformance.rules.record import RECORDED
from tests.processes import completed
from utils.cpu import numba_cuda
from utils.cpu.numba_cuda import cuda, widths
from utils.cpu.numba_cuda.arguments import kind_of
from utils.cpu.numba_cuda.inference import Inference
from utils.cpu.numba_cuda.instrument import rebuilt
from utils.files import ROOT

PAIRS = list(numba_cases.PAIRS)
WAYS = list(numba_cases.WAYS)


@pytest.fixture(scope="module")
def printed(tmp_path_factory, request):
    """What the program of a pair of types, and a way to come to them, prints: of those asked for,
    in one process.
    """
    folder = tmp_path_factory.mktemp("rules")
    asked = [getattr(item, "callspec", None) for item in request.session.items]
    asked = [of.params for of in asked if of and {"pair", "way"} <= of.params.keys()]
    for pair, way in {(of["pair"], of["way"]) for of in asked}:
        name = "_".join([*pair, way])
        (folder / f"{name}.py").write_text(numba_cases.program(pair, way))
    command = [sys.executable, "-m", "tests.conformance.numba.run", str(folder)]
    done = completed(command, cwd=ROOT, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_expressions_give_what_numbas_types_say(printed, pair, way):
    answer = printed["_".join([*pair, way])]["-"]
    assert answer["problem"] is None
    assert numba_cases.differences(pair, json.loads(answer["printed"])) == []


#: A signed number leaves its type, of which LLVM takes it that it does not: what comes out depends
#: on what the compiler made of the lines around it.
OVERFLOWS = {
    "h = x * x\nh *= h\nh *= h\nr = h // 7",
    "r = x - y > 0",
    "r = x - y < 0",
    "r = x - 1 < 0",
    "s = 0\ns -= x\nr = s < 0",
    "r = -x",
    "r = abs(x)",
    "r = -x // 3",
    "r = (x * 6364136223846793005 + 1442695040888963407) >> 33",
}
#: fmod of numbers of this size.
LARGE = {"r = x % y"}


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_the_rules_are_those_of_a_gpu(pair):
    recorded = json.loads((RECORDED / "numba.json").read_text())["values"]
    lines = numba_cases.differences(pair, recorded[" ".join(pair)])
    differ = {ast.literal_eval(line.split(" of (")[0]) for line in lines}
    assert differ <= OVERFLOWS | (LARGE if pair == ("float64", "int64") else set())


def test_there_are_cases_enough():
    assert sum(len(numba_cases.cases(pair)) for pair in PAIRS) > 800


def is_changed(function, *kinds):
    """Whether anything of a kernel is changed for these types of its arguments."""
    code = function.__code__
    value = {"cuda": cuda, "np": np}.get
    look = lambda node: value(getattr(node, "id", None))  # noqa: E731
    inference = Inference(widths.arguments(code, kinds), look, lambda *_: (None, None))
    return rebuilt(code, lambda tree: widths.widen(tree, inference, {})) is not code


FLOATS = (np.dtype("f4"), 1)


def test_what_cannot_differ_stays_as_it_is():
    def saxpy(out, x, y, a, n):
        i = cuda.grid(1)
        row = cuda.blockIdx.y * n + i
        total = 0.0
        for k in range(i, n, cuda.gridsize(1)):
            total += a * x[k] * y[row]
        if i < n and row % 2 == 0:
            out[i] = total

    assert not is_changed(saxpy, FLOATS, FLOATS, FLOATS, np.float32, kind_of(1 << 14))
    assert is_changed(saxpy, FLOATS, FLOATS, FLOATS, kind_of(1 << 62), kind_of(1 << 14))


def test_a_kernel_that_hashes():
    @numba_cuda.cpu_jit
    def hashes(out, seed):
        state = seed[0]
        for i in range(out.size):
            state = state * 6364136223846793005 + 1442695040888963407
            out[i] = (state >> 33) % 1000

    out = np.zeros(3, np.int64)
    hashes[1, 1](out, np.array([7], np.int64))
    state = 7
    for value in out:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        signed = state - 2**64 if state >= 2**63 else state
        assert value == (signed >> 33) % 1000


def test_a_name_that_was_an_integer_sums_in_double_precision():
    @numba_cuda.cpu_jit
    def total(out, x):
        s = 0
        for value in range(x.size):
            s += x[value]
        out[0] = s

    out = np.zeros(1, np.float64)
    total[1, 1](out, np.full(3, 0.1, np.float32))
    assert out[0] == 3 * float(np.float32(0.1))


def test_a_float32_to_which_integers_are_added_sums_in_double_precision():
    @numba_cuda.cpu_jit
    def total(out, x):
        s = np.float32(0)
        for value in range(x.size):
            s += np.int32(x[value]) * np.int32(x[value])
        out[0] = s

    x = np.array([4097, 1], np.int32)  # 4097 * 4097 has 25 bits, the last of them 1
    out = np.zeros(1, np.float64)
    total[1, 1](out, x)
    assert out[0] == 4097 * 4097 + 1


@cuda.jit
def with_other_statements(out):
    i = cuda.grid(1)
    if i >= out.size:
        raise IndexError("too many threads")
    match i % 2:
        case 0:
            out[i] = 1
        case _:
            out[i] = 2


def test_statements_that_give_no_type_are_passed_by():
    out = np.zeros(4, np.int32)
    with_other_statements[1, 4](out)
    assert out.tolist() == [1, 2, 1, 2]
