"""What sets wrong elements apart from right ones, in words that are true and of use."""

import numpy as np
import pytest

from course.checking.by_pattern import VALUES, what_sets_apart

BOTH_SIGNS = np.tile([-2.0, 0.5], VALUES)


@pytest.mark.parametrize(
    "wrong, fine, words",
    [
        (BOTH_SIGNS, np.zeros(VALUES), "not 0"),
        (np.abs(BOTH_SIGNS), np.zeros(VALUES), "above 0"),
        (-np.abs(BOTH_SIGNS), np.zeros(VALUES), "below 0"),
        (np.zeros(VALUES), BOTH_SIGNS, "0"),
        (BOTH_SIGNS, BOTH_SIGNS / 8, "larger than 0.25, of either sign"),
        (BOTH_SIGNS, BOTH_SIGNS, ""),
        (BOTH_SIGNS, np.zeros(VALUES - 1), ""),
    ],
)
def test_what_sets_values_apart_is_said_in_words(wrong, fine, words):
    assert what_sets_apart(wrong, fine) == words
