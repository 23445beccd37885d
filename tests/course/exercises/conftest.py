"""What the tests of exercises share."""

import pytest

from course.checking import checker


@pytest.fixture(autouse=True)
def all_cases(monkeypatch):
    """Tests ask for the very reason of a rejection. A slow machine tries fewer cases, and may then
    name another one.
    """
    monkeypatch.setattr(checker, "ENOUGH_SECONDS", 2.5 * checker.ENOUGH_SECONDS)
