"""What changes were said to bring, beside what they brought: told as it was found."""

import json

import pytest

from course.kernels.machine import changes
from course.kernels.machine.cases import CALIBRATION, cases
from course.kernels.machine.judge import counts_of
from utils import results
from utils.estimate.improving import CHANGES


@pytest.fixture(scope="module")
def recorded():
    return json.loads(changes.CHANGED.read_text(encoding="utf-8"))


def test_pairs_are_of_recorded_kernels_and_none_of_them_calibrates():
    for name, words, after in changes.PAIRS:
        assert words in CHANGES
        assert not name.startswith(CALIBRATION)
        assert all(results.find(f"{one}/time", "NVIDIA H200") for one in (name, after))


def test_what_was_written_agrees_with_its_rows(recorded):
    for name, found in recorded["gpus"].items():
        rows = [row for row in recorded["changes"] if row["gpu"] == name]
        assert found == changes.summary(rows)
        assert found["changes"] + len(recorded["unknown"]) == len(changes.PAIRS)


def test_factors_look_both_ways_and_directions_are_counted():
    rows = [{"said": 2, "brought": 1}, {"said": 1, "brought": 2}, {"said": 3, "brought": 3}]
    found = changes.summary(rows)
    assert found == {"changes": 3, "median_factor": 2, "p90_factor": 2, "same_way": 1}


def test_the_changes_are_those_that_were_held_against_the_clock(recorded):
    """Who changes one runs `changes` anew, and adds pairs that nobody has compared."""
    name = "copy_stride/stride_8"
    (case,) = [case for case in cases() if case.name == name]
    (words,) = [words for one, words, _ in changes.PAIRS if one == name]
    now = changes.rows_of(case, counts_of(case), words, "copy_stride/stride_1")
    was = [row for row in recorded["changes"] if row["name"] == name]
    for one, other in zip(now, was, strict=True):
        assert one["said"] == pytest.approx(other["said"], rel=0.03)
