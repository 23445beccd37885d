"""Wrong answers: changed in exactly the places that were meant, and debuggable like any other."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import inspect
import traceback

import numpy as np
import pytest
from numba import cuda

from course.checking.answers import but, replace
from course.checking.model import Wrong

FACTOR = 3


def scaled(value):
    share = value / 2
    return share * FACTOR


@cuda.jit
def scale(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor * a[i]


def test_pairs_are_changed_one_after_the_other():
    assert replace("x < n && y < m", ("x < n", "x <= n"), ("y < m", "y <= m")) == "x <= n && y <= m"
    assert replace("a b", ("a", "b c"), ("b c", "d")) == "d b"


@pytest.mark.parametrize(
    "changes, places",
    [(("missing", ""), 0), (("n", "m"), 2), ((("x", "n"), ("n", "m")), 3)],
    ids=["nowhere", "twice", "twice after the first change"],
)
def test_what_stands_not_in_one_place_is_refused(changes, places):
    with pytest.raises(ValueError, match=f"in {places} places"):
        replace("x < n, n", *changes)


def test_a_change_without_its_second_half_is_refused():
    with pytest.raises(ValueError):
        replace("x < n", "x")
    with pytest.raises(ValueError):
        but(scaled, ("value / 2", "value"), ("share",))


def test_a_changed_function_is_another_one_in_the_same_module():
    changed = but(scaled, ("value / 2", "value"), ("* FACTOR", "+ FACTOR"))
    assert (scaled(4), changed(4)) == (6, 7)
    assert changed.__globals__ is scaled.__globals__
    assert globals()["scaled"] is scaled


def test_a_change_of_a_change():
    changed = but(but(scaled, "value / 2", "value"), "* FACTOR", "- FACTOR")
    assert changed(4) == 1


def test_a_kernel_stays_a_kernel():
    changed = but(scale, "factor * a[i]", "factor + a[i]")
    out = np.zeros(40, np.float32)
    changed[2, 32](out, np.ones(40, np.float32), np.float32(2))
    assert (out == 3).all()
    assert "factor + a[i]" in inspect.getsource(changed.py_func)


def test_a_traceback_shows_the_changed_line():
    changed = but(scaled, "value / 2", "value / 0")
    with pytest.raises(ZeroDivisionError) as caught:
        changed(1)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.name, last.lineno, last.line) == ("scaled", 2, "share = value / 0")


@pytest.mark.parametrize(
    "entry, expected",
    [
        (("/ 2", "/ 4", "off_by_one"), (3, "off_by_one", "")),
        (("/ 2", "/ 4", "off_by_one", "Halves."), (3, "off_by_one", "Halves.")),
        ((("/ 2", "/ 4"), ("* F", "+ F"), "race"), (4, "race", "")),
        (Wrong(float, "race", "Nothing is done."), (4, "race", "Nothing is done.")),
    ],
)
def test_an_exercise_s_wrong_answer_is_what_differs_from_its_solution(entry, expected):
    wrong = Wrong.of(entry, scaled)
    assert (wrong.answer(4), wrong.reason, wrong.says) == expected


def test_a_file_s_wrong_answer_is_its_text():
    assert Wrong.of(("x < n", "x <= n", "off_by_one"), "x < n;").answer == "x <= n;"
