"""A solved kernel's time at a GPU's size: an estimate beside the solution's, and marked as one."""

from dataclasses import replace

import pytest

from course import exercises
from course.checking import speed
from course.checking.report import Outcome
from course.exercises import EXERCISES
from utils import has_gpu
from utils.cpu.numba_cuda.settings import only_blocks
from utils.estimate import Unknown
from utils.estimate.gpus import NAMES
from utils.hardware import data_sheet
from utils.timing import Comparison, Timing

QUICK = ["memory.scale_four", "synchronization.privatized"]
TIMED = [one.id for one in EXERCISES.values() if getattr(one, "speed", None)]
SLOW = "uncoalesced", "too_much_traffic", "no_shared", "one_thread"

pytestmark = pytest.mark.skipif(has_gpu(), reason="a GPU has a clock")


def slow_answers(exercise):
    """Its wrong answers that are right, and slow."""
    return [wrong.answer for wrong in exercise.wrong if wrong.reason in SLOW]


@pytest.mark.parametrize("id", QUICK)
def test_a_right_and_slow_answer_would_take_longer_than_the_solution(id):
    exercise = EXERCISES[id]
    ours = speed.of_solution(exercise).seconds
    slow = [speed.estimate_of(exercise, answer).seconds for answer in slow_answers(exercise)]
    assert slow and min(slow) > speed.ALIKE * ours


@pytest.mark.nightly("how many times each is read stands in its own tests")
@pytest.mark.parametrize("id", TIMED)
def test_no_solution_is_estimated_faster_than_its_memory_allows(id):
    exercise = EXERCISES[id]
    launch = speed.launch_of(exercise, exercise.speed.size)
    moved = sum(getattr(arg, "nbytes", 0) for arg in launch.args)
    least = moved / (data_sheet(NAMES[exercise.speed.gpu][1])["bandwidth_gb_s"] * 1e9)
    assert speed.of_solution(exercise).seconds > least


def test_a_solved_exercise_tells_its_time_and_that_it_is_an_estimate():
    exercise = EXERCISES["memory.scale_four"]
    outcome = exercises.check(exercise.id, exercise.solution)
    text, page = repr(outcome), outcome._repr_html_()
    assert outcome.speed.estimated and "as long as the solution of this exercise." in text
    assert "an estimate and not a measurement" in text and "dashed #7b1fa2" in page


def test_a_slower_answer_is_told_by_how_much_and_why():
    exercise = EXERCISES["memory.scale_four"]
    slow = speed.estimate_of(exercise, slow_answers(exercise)[0])
    first, why, _ = speed.sentences(exercise, slow)
    assert "times as long as the solution of this exercise (" in first
    assert "With its global accesses side by side it would take about" in why


def test_what_cannot_be_known_is_said(monkeypatch):
    def unknown(*args):
        raise Unknown("its loop depends on data")

    monkeypatch.setattr(speed, "estimate", unknown)
    exercise = EXERCISES["memory.scale_four"]
    told = speed.speed_of(exercise, exercise.solution)
    assert told.lines == ("There is no estimate of its time: its loop depends on data.",)


def test_a_goal_refuses_no_answer_that_has_no_estimate(monkeypatch):
    def unknown(*args):
        raise Unknown("its loop depends on data")

    monkeypatch.setattr(speed, "estimate_of", unknown)
    exercise = EXERCISES["estimates.rows"]
    assert speed.reject_over_goal(exercise, exercise.solution) is None


@pytest.mark.parametrize("id", TIMED)
def test_on_a_gpu_both_kernels_are_launched_and_told_in_turn(id, monkeypatch):
    def compare(works):
        for work in works.values():
            work()
        times = zip(works, (2.0, 1.0), strict=True)
        return Comparison({label: Timing(None, (ms, ms)) for label, ms in times})

    monkeypatch.setattr(speed, "compare", compare)
    exercise = EXERCISES[id]
    small = replace(exercise, speed=replace(exercise.speed, size=32))
    last = speed.launch_of(small, 32).blocks - 1  # of 16,384 where the size is the inner side alone
    with only_blocks({0, last}):
        (told,) = speed.measured(small, exercise.solution)
    assert "on this GPU, 2.0 times as long as the solution of this exercise (1 ms)." in told


def test_an_exercise_without_a_size_tells_no_time():
    exercise = EXERCISES["start.hello"]
    assert speed.speed_of(exercise, exercise.solution) is None
    assert Outcome("start.hello", "", "numba", "solved").speed is None
