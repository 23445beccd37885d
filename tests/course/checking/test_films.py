"""A failed check whose mistake has a place in time offers the film of it."""

import pytest
from numba import cuda

from course.checking.checker import check_answer
from course.checking.films import IN_TIME, SUMMARY, film_of
from course.exercises import EXERCISES
from tests.needs import cpp_compiler
from utils import has_gpu

#: Wrong answers that go wrong only in launches too large to trace, or only with luck
WITHOUT = {"synchronization.count": 1, "reductions.any_block": 1, "reductions.look_back": 2}


def wrong_in_time(exercise):
    return [wrong for wrong in exercise.wrong if wrong.reason in IN_TIME[exercise.kind]]


TRACED = [e for e in EXERCISES.values() if e.kind in ("numba", "triton") and wrong_in_time(e)]


ANOTHER = pytest.mark.nightly("by day of exercises that have each reason once")


def traced():
    """pytest.param(exercise) of each of TRACED, by day the first with a reason."""
    seen = set()
    for exercise in TRACED:
        reasons = {(exercise.kind, wrong.reason) for wrong in wrong_in_time(exercise)}
        yield pytest.param(exercise, marks=[ANOTHER] if reasons <= seen else [])
        seen |= reasons


@pytest.mark.parametrize("exercise", list(traced()))
def test_a_film_is_offered_for_every_wrong_answer_with_a_place_in_time(exercise):
    films = [film_of(exercise, w.answer, 5, w.reason) for w in wrong_in_time(exercise)]
    offered = sum(SUMMARY in film for film in films)
    assert offered >= len(films) - WITHOUT.get(exercise.id, 0)


@cuda.jit
def hasty(a):
    t = cuda.threadIdx.x
    if t < a.size:
        value = a[(t + 1) % a.size]
        a[t] = value


@cuda.jit
def rotate_left(a):  # the starter
    t = cuda.threadIdx.x
    if t < a.size:
        a[t] = a[(t + 1) % a.size]


def test_the_outcome_unfolds_to_the_film_stopped_at_the_race():
    outcome = check_answer(EXERCISES["synchronization.rotate_left"], hasty, seed=3)
    page = outcome._repr_html_()
    assert outcome.reason == "race"
    assert f"<summary>{SUMMARY}</summary>" in page
    assert "RACE: thread" in page and '"start":0,"css"' not in page


def test_a_starter_and_what_is_wrong_all_the_time_have_none():
    exercise = EXERCISES["synchronization.rotate_left"]
    assert film_of(exercise, hasty, 3, "wrong_value") == ""
    outcome = check_answer(exercise, rotate_left, seed=3)
    assert outcome.untouched and outcome.reason == "race" and outcome.film == ""


def test_an_answer_in_cuda_c_has_its_film(tmp_path):
    cpp_compiler()
    exercise = EXERCISES["libraries.softmax"]
    wrong = next(wrong for wrong in exercise.wrong if wrong.reason == "race")
    file = tmp_path / "softmax.cu"
    file.write_text(wrong.answer)
    assert has_gpu() or "RACE: thread" in film_of(exercise, str(file), 5, "race")
