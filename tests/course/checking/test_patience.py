"""A right answer that is slow on a busy computer, where the arrays are large, gets more time."""

from types import SimpleNamespace

import pytest

from course.checking import cuda_c_files

LARGE, SMALL = (66_000,), (5,)
EXERCISE = SimpleNamespace(large_shapes=(LARGE,))
STOPPED = ("timeout", "One launch was stopped after 4 seconds.")


def run_of(asked, needs):
    """A runner whose launches with large arrays need so many times the usual seconds."""

    def run(trials, rng, order, patience=1):
        asked.append(([shape for shape, *_ in trials], patience))
        done = []
        for shape, *_ in trials:
            if patience < needs.get(shape, 1):
                return done, STOPPED
            done.append(shape)
        return done, None

    return run


@pytest.mark.parametrize("needs", [2, 1000])
def test_only_a_large_launch_is_tried_again(needs):
    asked = []
    trials = [(SMALL,), (LARGE,), (SMALL,)]
    run = run_of(asked, {LARGE: needs})
    runs, failure = cuda_c_files.patiently(run, EXERCISE, trials, None, {})
    assert asked == [([SMALL, LARGE, SMALL], 1), ([LARGE, SMALL], cuda_c_files.PATIENCE)]
    if needs <= cuda_c_files.PATIENCE:
        assert (runs, failure) == ([SMALL, LARGE, SMALL], None)
    else:
        assert (runs, failure) == ([SMALL], STOPPED)


def test_an_endless_small_launch_ends_it():
    asked = []
    run = run_of(asked, {SMALL: 1000})
    found = cuda_c_files.patiently(run, EXERCISE, [(SMALL,), (LARGE,)], None, {})
    assert found == ([], STOPPED)
    assert len(asked) == 1


@pytest.mark.parametrize("why", ["timeout", "crashed"])
def test_who_is_stopped_behind_the_last_launch_has_done_all_and_a_crash_still_counts(why):
    stopped = (why, "It ended.")
    found = cuda_c_files.patiently(lambda *_: ([SMALL], stopped), EXERCISE, [(SMALL,)], None, {})
    assert found == ([SMALL], None if why == "timeout" else stopped)
