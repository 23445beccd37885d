"""The CPU engine for Numba gives what a GPU gives, in any order of threads, and its diagnoses."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.conformance import fuzz_expressions, fuzz_numba, fuzz_uncast
from tests.conformance.fuzz import F, I, U
from tests.conformance.numba import derive
from tests.conformance.numba.run import WAYS
from tests.conformance.rules import typed
from tests.processes import completed
from utils.cpu.numba_cuda import expressions, warps, widths
from utils.files import ROOT

PROGRAMS = sorted(path.stem for path in derive.FOLDER.glob("*.py"))
BROKEN = ROOT / "tests/conformance/numba/broken"
SEEDS = ["-", "1", "2", "3"]


def run_all(folder, seeds):
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.numba.run", str(folder), *seeds],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        env={**os.environ, "CUDA_COURSE_CPU": "1", "CUDA_VISIBLE_DEVICES": ""},  # for torch
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def printed():
    return run_all(derive.FOLDER, SEEDS)


@pytest.fixture(scope="module")
def diagnoses():
    return run_all(BROKEN, ["-"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_what_a_gpu_prints(printed, name):
    expected = (derive.FOLDER / f"{name}.out").read_text()
    assert len(printed[name]) == len(SEEDS) * len(WAYS)
    for schedule, result in printed[name].items():
        assert result["problem"] is None, (schedule, result["problem"])
        assert result["printed"] == expected, f"with schedule {schedule}"


def test_every_program_has_a_derivation_and_an_output():
    assert (
        set(PROGRAMS) == set(derive.PROGRAMS) == {path.stem for path in derive.FOLDER.glob("*.out")}
    )


def test_what_a_gpu_printed_is_what_was_derived():
    """Of each program, recorded or not: arithmetic and the manuals say what the GPU said."""
    expected = {name: (derive.FOLDER / f"{name}.out").read_text() for name in PROGRAMS}
    assert {name: derive.PROGRAMS[name]() for name in PROGRAMS} == expected


def test_what_is_recorded_says_where_and_when():
    recorded = json.loads(derive.PROVENANCE.read_text())["recorded"]
    facts = {"gpu", "driver", "numba-cuda", "date"}
    assert [name for name in recorded if not facts <= set(recorded[name])] == []


@pytest.mark.parametrize("name", sorted(path.stem for path in BROKEN.glob("*.py")))
def test_broken_kernels_get_their_diagnosis(diagnoses, name):
    lines = (BROKEN / f"{name}.py").read_text().splitlines()
    wanted = lines[0].removeprefix("# diagnosis: ")
    where = next(number for number, line in enumerate(lines, 1) if line.endswith("# here"))
    by_stacks, by_generators = (diagnoses[name][f"-{way}"]["problem"] for way in WAYS)
    assert by_stacks == by_generators
    problem = by_stacks
    assert problem is not None, "no mistake was found"
    assert wanted in problem["text"]
    assert problem["line"] == where
    assert f"{name}.py, line {where}" in problem["text"]


@pytest.mark.nightly("kernels drawn anew; by day a handful, and the same rules as programs")
@pytest.mark.parametrize("part", range(3))
def test_random_kernels_give_what_their_statements_say(part, tmp_path, request):
    first = request.config.getoption("--seed", 0) * 1_000_000 + part * 50
    assert fuzz_numba.differences(range(first, first + 50), tmp_path) == {}


FEW = range(4, 10)


def test_a_few_random_kernels_give_what_their_statements_say(tmp_path):
    """Of both families, in order, shuffled and by generators."""
    assert {type(fuzz_numba.drawn(number)) for number in FEW} == {
        fuzz_numba.Kernel,
        fuzz_uncast.Uncast,
    }
    assert fuzz_numba.differences(FEW, tmp_path) == {}


def test_a_random_kernel_is_the_same_each_time():
    for number in FEW[:3]:
        kernel, again, other = map(fuzz_numba.drawn, (number, number, number + 6))
        assert (kernel.text, kernel.expected()) == (again.text, again.expected())
        assert kernel.expected() != other.expected()


def test_what_a_cast_expression_must_give_is_worked_out_by_numbas_rules():
    rules = {
        (text, kinds): rule for of in fuzz_expressions.RULES.values() for text, kinds, rule in of
    }
    x, y = np.array([-7, 7], I), np.array([2, -4], I)
    assert rules["np.int32({0} // ({1} | 1))", (I, I)](x, y).tolist() == [-3, -3]
    assert rules["np.int32({0} % ({1} | 1))", (I, I)](x, y).tolist() == [2, -2]
    assert rules["np.uint32({0} == {1})", (I, U)](x, x.view(U)).tolist() == [False, True]
    floats = np.array([np.nan, 2], F), np.array([1, np.nan], F)
    assert rules["min({0}, {1})", (F, F)](*floats).tolist() == [1, 2]


def test_lines_whose_result_a_compiler_may_choose_are_not_taken():
    large, small = typed.Number(2**62, typed.INT64), typed.Number(-1, typed.INT64)
    unsigned = typed.Number(2**63, typed.UINT64)
    assert not fuzz_uncast.stays(fuzz_uncast.operator.mul)(large, typed.number(2))
    assert fuzz_uncast.stays(fuzz_uncast.operator.mul)(unsigned, unsigned)
    assert not fuzz_uncast.shifts(large, typed.number(64))
    assert not fuzz_uncast.shifts_left(large, typed.number(1))
    assert not fuzz_uncast.divides(small, typed.number(0))
    assert not fuzz_uncast.casts_to("uint8")(typed.number(256.5))
    for number in range(0, 60, 3):
        for result in fuzz_uncast.Uncast(number).values.values():
            assert all(np.isfinite(float(one.value)) for one in result)


#: Prints the types that numba-cuda's own front end, which needs no GPU, gives a kernel's names.
FRONT_END = """
import json, runpy, sys
from numba.cuda import types
from numba.cuda.compiler import compile_cuda

kernels = runpy.run_path(sys.argv[1])
given = types.Array(types.uint64, 1, "C"), types.Array(types.float64, 2, "C")
for name in sys.argv[2:]:
    done = compile_cuda(kernels[name].py_func, types.void, given, cc=(7, 5))
    print(json.dumps({one: str(kind) for one, kind in done.type_annotation.typemap.items()}))
"""


@pytest.mark.nightly("other kernels than those by day, asked of the compiler")
def test_types_of_lines_without_casts_are_those_of_the_compiler(tmp_path, request):
    first = request.config.getoption("--seed", 0) * 1_000_000
    kernels = [fuzz_uncast.Uncast(number) for number in range(first, first + 12)]
    path = tmp_path / "kernels.py"
    path.write_text("\n\n".join([fuzz_numba.PRELUDE, *(kernel.text for kernel in kernels)]))
    names = [kernel.name for kernel in kernels]
    command = [sys.executable, "-c", FRONT_END, str(path), *names]
    done = completed(command, cwd=tmp_path, check=True)  # where no engine stands in its place
    for kernel, line in zip(kernels, done.stdout.splitlines(), strict=True):
        types = json.loads(line)
        mine = {name: typed.type_of(types[name]) for name in kernel.values if types[name] != "bool"}
        assert mine == {name: kernel.values[name][0].kind for name in mine}


SLIPS = {
    "types of sums": (expressions, "together", lambda a, b: expressions.signed(64)),
    "what leaves its type": (widths, "size_of", lambda *_: 1),
    "masks of lanes": (warps, "_mask_of", lambda values, chosen: sum(1 << lane for lane in values)),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_random_kernels_find_a_slip_of_the_engine(slip, tmp_path, monkeypatch):
    monkeypatch.setattr(*SLIPS[slip])
    assert fuzz_numba.differences(FEW, tmp_path) != {}


def test_nothing_is_begun_after_the_end():
    assert fuzz_numba.some(FEW, gpu=False, end=0) == (0, {})


def test_the_command_names_what_differs(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fuzz_numba", "--only", "7", "--show"])
    monkeypatch.setattr(fuzz_numba.fuzz, "ProcessPoolExecutor", ThreadPoolExecutor)
    assert not fuzz_numba.main()
    printed = capsys.readouterr().out
    assert "def k7(out, reals):" in printed and printed.endswith("1 kernels, 0 differences\n")
    monkeypatch.setattr(*SLIPS["masks of lanes"])
    assert fuzz_numba.main()
    printed = capsys.readouterr().out
    assert "\nk7: printed " in printed and printed.endswith("1 kernels, 1 differences\n")
