"""What an answer keeps outside itself: told where the same run changes it each time."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import functools
import itertools
import threading

import numpy as np
import pytest
from numba import cuda

from course.checking import kept
from course.checking.rejected import Rejected

total, table, numbers, on_device = [0], {}, itertools.count(), cuda.to_device(np.zeros(1))
generated, of_thread, view = (n for n in numbers), threading.local(), memoryview(bytearray(1))


def a_class():
    class Counter:
        calls = 0

    return Counter


Counter = a_class()
counter = Counter()


def in_a_list():
    total[0] += 1


def in_a_class():
    Counter.calls += 1


def in_an_object():
    counter.calls += 1


def in_an_iterator():
    return next(numbers)


def on_the_device():
    on_device[0] += 1


def in_a_generator():
    return next(generated)


def in_a_thread():
    of_thread.calls = getattr(of_thread, "calls", 0) + 1


def in_a_view():
    view[0] += 1


def in_a_default(calls=[0]):  # noqa: B006
    calls[0] += 1


def in_itself():
    in_itself.calls = getattr(in_itself, "calls", 0) + 1


def around():
    calls = 0

    def inside():
        nonlocal calls
        calls += 1

    return inside


helper = around()


def in_a_helper():
    return [helper() for _ in range(2)]


COUNT = [
    in_a_list,
    in_a_class,
    in_an_object,
    in_an_iterator,
    on_the_device,
    in_a_generator,
    in_a_thread,
    in_a_view,
    in_a_default,
    in_itself,
    in_a_helper,
    around(),
]


def in_a_table():
    table.setdefault("answer", 42)


@functools.cache
def cached():
    return np.float32(42)


def in_a_cache():
    return cached()


def nothing():
    return np.sum(np.arange(3)) + len(total)


def run(function):
    before = kept.outside(function)
    function()
    kept.reject_if_each_run_changes(function, before, function)


@pytest.mark.parametrize("function", COUNT)
def test_what_counts_its_runs_is_told(function):
    with pytest.raises(Rejected) as told:
        run(function)
    assert told.value.reason == "remembers"


@pytest.mark.parametrize("function", [in_a_table, in_a_cache, nothing])
def test_what_is_kept_once_for_all_is_fine(function):
    run(function)
