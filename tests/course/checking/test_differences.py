"""What a failed check of a function tells of long results: one place, not all of them."""

from course.checking.functions import SHOWN, difference


def test_short_results_are_told_whole():
    assert difference((1, 2), (1, 3)) == "(1, 2), and returned (1, 3)"
    assert difference(3, None) == "3, and returned None"


def test_of_a_long_result_the_first_wrong_place_is_told():
    right = tuple(range(1, 2 * SHOWN))
    wrong = right[:50] + (-1,) + right[51:]
    said = difference(right, wrong)
    assert said == "79 numbers. The one at index 50 must be 51, and is -1"
    assert len(difference(right, wrong[:-1])) > len(said), "of another length: both are told"
