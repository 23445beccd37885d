"""What the tests of exercises share."""

import dataclasses

import pytest

from course.checking import apart, checker, drawn, limits, report
from tests.mutants.trial import DRAWN_BY_DAY


@pytest.fixture(autouse=True)
def all_cases(monkeypatch):
    """Tests ask for the very reason of a rejection. A slow machine tries fewer cases, and may then
    name another one.
    """
    monkeypatch.setattr(limits, "ENOUGH_SECONDS", 2.5 * limits.ENOUGH_SECONDS)


@pytest.fixture
def in_this_process(monkeypatch):
    """Answers that do no harm need no copy of a process as large as a test run's."""
    monkeypatch.setattr(apart, "POSSIBLE", False)


@pytest.fixture
def pictures_undrawn(monkeypatch):
    """Where the verdict alone is looked at: pictures and films take longer than many a launch."""
    monkeypatch.setattr(report, "page", lambda picture: picture.alt)
    monkeypatch.setattr(checker, "film_of", lambda *_: "")


@pytest.fixture
def small(request):
    """What makes an exercise, by day, one without its large arrays: a mistake that shows in small
    ones is told by those, and what is wrong in large ones alone by them. At night all are launched.
    """
    by_day = request.config.getoption("--tier", "nightly") != "nightly"
    return lambda exercise: dataclasses.replace(exercise, large=None) if by_day else exercise


@pytest.fixture
def few_draws(monkeypatch):
    """What is right is right in each draw: a few of them show that none is rejected."""
    for name, count in DRAWN_BY_DAY.items():
        monkeypatch.setattr(drawn, name, count)
