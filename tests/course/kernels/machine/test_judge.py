"""Estimates against recorded times: how errors are told; the model stays as it was judged."""

import json

import pytest

from course.kernels.machine import judge
from course.kernels.machine.cases import CALIBRATION, cases, is_held_out
from utils import results
from utils.estimate.statement import JUDGED

RECORDED_ANEW = 0.03  # by which constants may move when a GPU is recorded again
QUICK = ("vector_add/numba", "copy_stride/stride_8", "layout/soa", "reduce/sequential/numba")


@pytest.fixture(scope="module")
def recorded():
    return json.loads(JUDGED.read_text(encoding="utf-8"))


def row(measured, estimate, family="f", **more):
    return {
        "family": family,
        "measured_ms": measured,
        "estimate_ms": estimate,
        "calibrates": False,
        "held_out": False,
        "gpu": "H200",
        "language": "numba",
        **more,
    }


def test_errors_are_shares_of_the_time_and_factors_look_both_ways():
    assert judge.error(row(2, 1)) == -0.5
    assert judge.off(row(2, 1)) == judge.off(row(1, 2)) == 2
    found = judge.summary([row(1, 1.1 * k) for k in (1, 1, 1, 1, 1, 1, 1, 1, 1, 4)])
    assert found["median_error"] == pytest.approx(0.1)
    assert found["p90_factor"] == pytest.approx(1.1)


def test_pairs_are_of_one_family_and_ties_of_the_clock_are_left_out():
    rows = [row(1, 5), row(2, 6), row(4, 1), row(1.01, 9), row(100, 1, family="other")]
    right, pairs = judge.ordered(rows)
    assert pairs == 5  # all but the tie, and none with the other family
    assert right == 1  # the first before the second


def test_calibration_kernels_have_no_stated_error():
    rows = [row(1, 1), row(1, 9, calibrates=True)]
    found = judge.report([*rows, row(1, 1, gpu="H100"), row(1, 2, language="cuda_c")])
    assert found["H200"]["numba"]["all"]["kernels"] == 1
    assert found["H200"]["cuda_c"]["all"]["median_error"] == 1
    assert found["H200"]["both"]["all"]["kernels"] == 2
    assert found["H100"].keys() == {"numba", "both"}
    assert any(case.calibrates for case in cases())
    assert all(case.name.startswith(CALIBRATION) for case in cases() if case.calibrates)


def test_metrics_are_of_both_languages_and_named_by_gpu():
    rows = [row(1, 1.1), row(1, 1.3, held_out=True, language="cuda_c")]
    named = judge.metrics(judge.report(rows))
    assert named == {
        "estimate/h200/median_error": pytest.approx(0.2),
        "estimate/h200/p90_factor": pytest.approx(1.3),
        "estimate/held_out/h200/median_error": pytest.approx(0.3),
        "estimate/held_out/h200/p90_factor": pytest.approx(1.3),
    }


def test_every_case_is_recorded_and_about_a_third_is_held_out(recorded):
    assert {case.language for case in cases()} == {"numba"}
    in_c = {one["name"] for one in recorded["kernels"] if one["language"] == "cuda_c"}
    assert len(in_c) > 20  # to ask cases_cuda_c would compile them all
    names = [*(case.name for case in cases()), *in_c]
    assert len(set(names)) == len(names)
    for name in names:
        assert results.find(f"{name}/time", "NVIDIA H200"), name
    share = sum(map(is_held_out, names)) / len(names)
    assert 0.25 < share < 0.4


@pytest.mark.parametrize("name", QUICK)
def test_the_model_is_the_one_that_was_judged(recorded, name):
    """Who changes counts or the model judges anew: the stated errors are of this one."""
    (case,) = [case for case in cases() if case.name == name]
    counted = judge.counts_of(case)
    for card in judge.GPUS:
        (was,) = [one for one in recorded["kernels"] if (one["name"], one["gpu"]) == (name, card)]
        now = judge.row_of(case, counted, card)
        assert now["estimate_ms"] == pytest.approx(was["estimate_ms"], rel=RECORDED_ANEW)


def test_what_was_written_agrees_with_its_rows(recorded):
    assert recorded["gpus"] == json.loads(json.dumps(judge.report(recorded["kernels"])))
    assert recorded["metrics"] == judge.metrics(recorded["gpus"])
    held_out = {one["name"] for one in recorded["kernels"] if one["held_out"]}
    assert all(map(is_held_out, held_out))


def test_the_picture_is_of_what_was_written(recorded):
    fig = judge.drawn(recorded["kernels"])
    assert judge.themed(fig) + "\n" == judge.PICTURE.read_text(encoding="utf-8")
    stated = [one for one in recorded["kernels"] if not one["calibrates"]]
    assert sum(len(points.get_offsets()) for points in fig.axes[0].collections) == len(stated)
