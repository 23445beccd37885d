"""What the tests of exercises share."""

import pytest

from course.checking import limits


@pytest.fixture(autouse=True)
def all_cases(monkeypatch):
    """Tests ask for the very reason of a rejection. A slow machine tries fewer cases, and may then
    name another one.
    """
    monkeypatch.setattr(limits, "ENOUGH_SECONDS", 2.5 * limits.ENOUGH_SECONDS)
