"""The limits of an answer: on a busy computer who works is not taken for one who sleeps."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

from course import exercises
from course.checking import drawn, limits
from course.checking.numba_kernels import reject_drawn
from course.checking.rejected import Rejected


def work(seconds):
    """Use so much CPU time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_who_sleeps_is_stopped(monkeypatch):
    monkeypatch.setattr(limits, "PATIENCE", 1)
    with pytest.raises(limits.TooLong), limits.time_limit(0.1):
        time.sleep(600)


def test_who_works_has_cpu_time_however_long_it_takes(monkeypatch):
    """The clock runs out several times: the share of a core is what a busy computer gives."""
    monkeypatch.setattr(limits, "PATIENCE", 0.1)
    monkeypatch.setattr(limits, "AWAKE", 0)  # a busy computer may give nothing for a while
    with limits.time_limit(0.5):
        work(0.2)
    with pytest.raises(limits.TooLong), limits.time_limit(0.1):
        work(600)


def test_what_is_lost_comes_again_and_not_in_the_midst_of_the_ending(monkeypatch):
    monkeypatch.setattr(limits, "AGAIN", 0.3)
    with limits.time_limit(0.5):  # a shorter one takes a process that waits for its turn for asleep
        with pytest.raises(limits.TooLong):
            work(600)
        work(0.1)
        with pytest.raises(limits.TooLong):
            work(600)


def test_a_search_that_takes_too_long_keeps_what_it_has_found():
    exercise = SimpleNamespace(draws=None, fresh=lambda rng: (int(rng.integers(9)),))
    asked = []

    def fails(shape, rng):
        asked.append(shape)
        if len(asked) > 1:
            raise limits.TooSlow(2, 10)
        return True

    shape, rng = drawn.smallest_failure(exercise, fails, seed=1, examples=5)
    assert shape == asked[0]
    assert isinstance(rng, np.random.Generator)


@cuda.jit
def scale_the_first(out, a, factor):
    i = cuda.grid(1)
    if i < min(out.size, 1):
        out[i] = factor * a[i]


@pytest.fixture
def slow_launches(monkeypatch):
    """Each launch takes two of the ten seconds that a search has, by its own clock."""
    ticks = itertools.count()
    clock = SimpleNamespace(**{**vars(time), "process_time": lambda: next(ticks)})
    monkeypatch.setattr(limits, "time", clock)


def test_an_answer_found_wrong_is_told_so_where_the_search_takes_too_long(slow_launches):
    exercise = exercises.EXERCISES["first_kernels.scale_guard"]
    with pytest.raises(Rejected) as rejected:
        reject_drawn(scale_the_first, exercise, seed=1)
    assert rejected.value.reason == "unwritten"


def test_an_answer_not_found_wrong_is_too_slow_where_the_search_takes_too_long(slow_launches):
    exercise = exercises.EXERCISES["first_kernels.scale_guard"]
    with pytest.raises(limits.TooSlow):
        reject_drawn(exercise.solution, exercise, seed=1)
