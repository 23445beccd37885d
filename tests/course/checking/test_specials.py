"""Inputs far from 1, and long ones: what they are, and what is said where they go wrong."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import numpy as np
import pytest

from course import exercises
from course.checking import specials, trials
from course.checking.answers import but
from course.checking.checker import check_answer
from course.checking.diagnose import FAR_FROM_1
from course.exercises import first_kernels, matmul

pytestmark = pytest.mark.usefixtures("in_this_process")
AXPY = exercises.EXERCISES["first_kernels.grid_stride"]


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr("course.checking.apart.POSSIBLE", False)


def test_each_array_of_floats_comes_near_each_power():
    given = list(specials.scaled_inputs(AXPY, (97,), seed=0))
    largest = [
        {name: np.abs(getattr(one[name], "array", one[name])).max() for name in "yx"}
        for one in given
    ]
    assert [sorted(one, key=one.get)[0] for one in largest[:2]] == ["y", "x"]
    assert [sorted(one, key=one.get)[1] for one in largest[2:]] == ["y", "x"]
    assert 2.0**-101 <= largest[0]["y"] <= 2.0**-100
    assert 2.0**99 <= largest[2]["y"] <= 2.0**100


def test_half_precision_stays_within_its_range():
    half = np.array([0.5, -1.5, 0, np.inf], np.float16)
    assert specials.scaled(half, 100)[1] == -(2.0**12) * 1.5
    assert specials.scaled(half, 100)[3] == np.inf


@pytest.mark.parametrize(
    "changed",
    [("* a[i]", "* (a[i] if abs(a[i]) > 1e-7 else a[i] * 0)"), ("* a[i]", "* min(a[i], 1e6)")],
    ids=["small ones taken for zero", "large ones cut off"],
)
def test_numbers_far_from_1_are_neither_dropped_nor_cut(changed):
    exercise = exercises.EXERCISES["first_kernels.scale_guard"]
    outcome = check_answer(exercise, but(first_kernels.scale, changed))
    assert outcome.reason == "special_values"
    assert outcome.lines[0] == FAR_FROM_1


@pytest.mark.nightly("by day a wrong answer of each kind is right in small arrays alone")
def test_of_several_large_shapes_the_axis_that_is_too_long_is_named():
    assert len(exercises.EXERCISES["matmul.tile"].large_shapes) > 1
    cut = but(matmul.matmul_tile, ("range(0, a.shape[1], 8)", "range(0, min(a.shape[1], 256), 8)"))
    outcome = check_answer(exercises.EXERCISES["matmul.tile"], cut)
    assert outcome.reason == "only_small"
    assert "elements along axis 1 of `a`, wrong with 260" in outcome.lines[0]


def test_a_large_trial_has_a_thread_for_everything_and_no_more_than_it_must():
    pool = exercises.EXERCISES["first_kernels.max_pool"]
    for shape, launch, _, _ in trials.large_trials(pool, seed=0):
        enough = [
            one for one in pool.launches_for(shape) if trials.has_enough(one, pool.extents(shape))
        ]
        assert np.prod(launch.threads) == min(np.prod(one.threads) for one in enough)
