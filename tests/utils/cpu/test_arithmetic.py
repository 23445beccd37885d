"""Shifts and conversions of device code give what PTX's rules say, with a cast and without."""

import json

import pytest

from tests.conformance.rules import cuda_c
from tests.conformance.rules.record import RECORDED
from tests.processes import completed
from utils.cpu.cuda_c.build import build_program
from utils.cpu.cuda_c.rewrite import rewrite

CASES = cuda_c.cases()
EVERY = 7  # of the cases, in builds other than the plain one


DEBUG = pytest.mark.nightly("by day as it is, and with the slow checks")


@pytest.mark.parametrize("mode", ["plain", pytest.param("debug", marks=DEBUG), "check"])
def test_the_rules_of_ptx(tmp_path, mode):
    cases = CASES if mode == "plain" else [*CASES[::EVERY], *cuda_c.FORMS.items()]
    source = tmp_path / "rules.cu"
    source.write_text(cuda_c.program([code for code, _ in cases]))
    options = ["-G"] if mode == "debug" else []
    program = build_program(source, options, check=mode == "check")
    output = completed([program])
    got = [int(line) for line in output.stdout.split()]
    pairs = zip(cases, got, strict=True)
    assert [(code, right, value) for (code, right), value in pairs if right != value] == []


def test_there_are_cases_enough():
    assert len(CASES) > 1500


def rewritten(body):
    text, _ = rewrite(f'# 1 "x.cu"\n__device__ int f(int n) {{ {body} }}')
    return text


@pytest.mark.parametrize(
    "body",
    [
        "k<<<1, 2>>>(); A<B<int>> x; a.operator<<(1);",
        "int i = n + 2 * n; int j = blockIdx.x * blockDim.x + threadIdx.x;",
        "float x = y; x = 2 * y; x += y; auto z = y; int* p = q; int a[] = {1, 2};",
    ],
)
def test_what_needs_no_rule_stays(body):
    text = rewritten(body)
    assert "cuda_cpu::by" not in text and "Stored" not in text


@pytest.mark.parametrize("after", ["", " ? 4 : 8", " && n", " == n", "::value", "(n)"])
def test_a_comma_of_template_arguments_ends_no_expression(after):
    assert f"of(( same<int, float>{after} ))" in rewritten(f"return same<int, float>{after};")


def test_a_comma_behind_a_comparison_ends_it():
    assert "of(( n < k ))" in rewritten("n = n < k, m = 2.f >= k;")


def test_the_type_of_another_name_space_is_no_type_of_a_template():
    source = (
        '# 1 "x.cu"\ntemplate <class State> struct Box { State s; };\n'
        "template <class Op> __device__ typename Op::State f(typename Op::State x) {\n"
        "  typename Op::State y = x;\n  return y;\n}\n"
    )
    assert "Stored" not in rewrite(source)[0]


def test_an_error_in_an_initial_value_names_its_line(tmp_path):
    from utils.cpu.cuda_c.build import BuildError

    source = tmp_path / "wrong.cu"
    source.write_text("__device__ int f(float x) {\n  int n = x + nothing;\n  return n;\n}\n")
    with pytest.raises(BuildError, match=r"wrong.cu:2:.*nothing"):
        build_program(source)


def test_the_rules_are_those_of_a_gpu():
    """But for one: C leaves a shift by more than the width open, and nvcc folds the comparison."""
    recorded = json.loads((RECORDED / "cuda_c.json").read_text())["values"]
    differ = [code for (code, right), value in zip(CASES, recorded, strict=True) if right != value]
    assert differ == ["r = hidden(-1) >> 40 == -1 ? 5 : 6;"]
