"""A kernel as it stands: right, wrong at a first value and on a map, or a mistake with its line."""

import functools

import numpy as np
import pytest
from numba import cuda

from course.kernels.trying import first_of, sketch, tried, verdict, watched
from utils.tools.diagnostics import LearnerError

EXACT = np.arange(6.0).reshape(2, 3)


@functools.cache
def module():
    """What a test's kernel is loaded by."""


def test_a_right_result_is_called_right_with_its_error():
    said = verdict(EXACT + 1e-6, EXACT)
    assert said == "✓ right: 6 values, off by 2e-07 of the largest at most"


def test_a_wrong_result_is_shown_at_its_first_place_and_on_a_map():
    found = EXACT.copy()
    found[1, 2] = np.nan
    said = verdict(found, EXACT, places=sketch)
    assert said.startswith("wrong: 1 of 6 values. The first is [1, 2]: nan, and 5 would be right")
    assert said.endswith(" . . .\n . . x")


def test_nothing_is_raised(capsys):
    def compute():
        raise LearnerError("line 3 is wrong")

    tried(compute, EXACT, module)
    tried(lambda: EXACT, EXACT, module)
    assert capsys.readouterr().out.split("\n")[:2] == ["line 3 is wrong", verdict(EXACT, EXACT)]


def test_what_a_gpu_would_compute_is_shown_after_a_read_out_of_bounds(capsys):
    runs = []

    def compute():
        runs.append(1)
        if len(runs) == 1:
            raise LearnerError("this reads before `x` [out-of-bounds]")
        return EXACT + 1

    tried(compute, EXACT, module, goes_on=True)
    said = capsys.readouterr().out
    assert said.startswith("this reads before `x`")
    assert "Without this check: wrong: 6 of 6 values." in said


def test_of_many_errors_the_first_is_told_and_the_others_are_counted():
    one = "/a/tile.cu:20: error: two threads use it [data-race]\n    in kernel `matmul`"
    two = "/a/tile.cu:16: error: another"
    assert first_of(one) == one
    assert first_of(f"{one}\n{two}\n{two}").startswith(f"{one}\n(and 2 more")
    assert first_of("this kernel is wrong at 3 × 3 × 3") == "this kernel is wrong at 3 × 3 × 3"


@pytest.mark.parametrize("exact, words", [(2.0, "✓ right"), (1.0, "wrong: 4 of 4 values")])
def test_a_numba_kernel_is_watched(exact, words, capsys):
    @cuda.jit
    def double(out, x):
        i = cuda.grid(1)
        out[i] = 2 * x[i]

    watched(double, 1, 4, np.empty(4, np.float32), np.ones(4, np.float32), exact=np.full(4, exact))
    assert words in capsys.readouterr().out
