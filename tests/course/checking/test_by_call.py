"""What is told of a plain function's wrong calls where nothing names the mistake."""

import pytest

from course.checking.by_call import observations
from course.checking.functions import stopped
from course.checking.limits import TooLong


def calls(answer, reference, *given):
    """(arguments, expected, what came) of calls with these a and b."""
    return [({"a": a, "b": b}, reference(a, b), answer(a, b)) for a, b in given]


SOME = [(6, 3), (7, 3), (9, 3), (10, 4), (12, 4), (15, 2), (16, 8)]
CASES = {
    "a multiple": (
        lambda a, b: a // b,
        lambda a, b: -(-a // b),
        "Of the calls tried, those are right where `a` is a multiple of `b`, and no others."
        " Each wrong one is 1 too small.",
    ),
    "zero": (
        lambda a, b: a + b if b != 3 else 0,
        lambda a, b: a + b,
        "Each wrong one is 0.",
    ),
    "twice": (lambda a, b: 2 * a, lambda a, b: a, "Each wrong one is 2 times what it should be."),
    "the other way round": (
        lambda a, b: (b, a),
        lambda a, b: (a, b),
        "The numbers are right each time, and in another order.",
    ),
    "one of two": (
        lambda a, b: (a, b + 2),
        lambda a, b: (a, b),
        "Only number 2 of what it returns is wrong. Each wrong one is 2 too large.",
    ),
    "where 0 is right": (
        lambda a, b: a % b or 7,
        lambda a, b: a % b,
        "Wrong just where 0 is right. Each wrong one is 7 too large.",
    ),
    "where False is right": (
        lambda a, b: True,
        lambda a, b: a % b == 0,
        "Wrong just where False is right.",
    ),
    "no number": (lambda a, b: None, lambda a, b: a, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_calls_say_what_they_share(case):
    answer, reference, words = CASES[case]
    tried = calls(answer, reference, *SOME)
    bad = [one for one in tried if one[1] != one[2]]
    assert words in observations(tried, bad)


def test_a_single_wrong_call_shares_nothing():
    tried = calls(lambda a, b: a if a != 7 else 0, lambda a, b: a, *SOME)
    assert observations(tried, [one for one in tried if one[1] != one[2]]) == ""


@pytest.mark.parametrize("size, formula", [(8, False), (2**60, True)])
def test_a_call_that_was_stopped_is_shown(size, formula):
    says = stopped("places", {"size": size}, TooLong(4))
    assert says.startswith(f"`places(size={size})` was stopped after 4 seconds.")
    assert says.endswith("find a formula.") == formula
