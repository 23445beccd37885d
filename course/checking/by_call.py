"""What all wrong calls of a plain function have in common, where no guess has named the mistake.

As in `by_pattern`, each sentence is an observation that holds in every call that was tried.
"""

import operator
import sys
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np

#: (arguments, expected, what came)
Call = tuple[dict[str, Any], Any, Any]
Calls = Sequence[Call]
#: Of the arguments of a call
Condition = Callable[[dict[str, Any]], bool]
FEWEST = 3  # right calls, and wrong ones of which a rule about arguments is made
NUMBERS = (int, float, np.integer, np.floating)


def observations(calls: Calls, bad: Calls) -> str:
    """Sentences on which calls are wrong, and how, or "" where nothing stands out.

    calls, bad: (arguments, expected, what came) of all, and of the wrong ones, as `functions` has
    them.
    """
    if len(bad) < 2:
        return ""
    wrong = [id(one) for one in bad]
    good = [one for one in calls if id(one) not in wrong]
    return " ".join(filter(None, (by_arguments(good, bad), at_zero(good, bad), by_results(bad))))


# ---- with which arguments


def by_arguments(good: Calls, bad: Calls) -> str:
    """Right with some values of an argument, or of two, and never with others."""
    if min(len(good), len(bad)) < FEWEST:
        return ""
    names = [
        name
        for name in bad[0][0]
        if all(is_number(arguments[name]) for arguments, _, _ in [*good, *bad])
    ]
    for name in names:
        for value in (0, 1):
            if divides(good, bad, of_one(name, value)):
                return f"Right wherever `{name}` is {value}, and nowhere else."
            if divides(bad, good, of_one(name, value)):
                return f"Wrong wherever `{name}` is {value}, and nowhere else."
    for one, other in permutations(names, 2):
        if divides(good, bad, of_two(one, other, a_multiple)):
            return in_no_other(f"`{one}` is a multiple of `{other}`")
        if divides(good, bad, of_two(one, other, operator.le)):
            return in_no_other(f"`{one}` is no larger than `{other}`")
        if divides(good, bad, of_two(one, other, operator.lt)):
            return in_no_other(f"`{one}` is smaller than `{other}`")
    return ""


def in_no_other(condition: str) -> str:
    """The sentence on two arguments, which may be a chance of the calls that were tried."""
    return f"Of the calls tried, those are right where {condition}, and no others."


def of_one(name: str, value: int) -> Condition:
    """Whether an argument is this number."""
    return lambda given: bool(given[name] == value)


def of_two(one: str, other: str, compared: Callable[[Any, Any], bool]) -> Condition:
    """Whether two arguments are so to one another."""
    return lambda given: compared(given[one], given[other])


def divides(those: Calls, others: Calls, holds: Condition) -> bool:
    """Whether something holds for all arguments of those calls, and for none of the others."""
    return all(holds(given) for given, _, _ in those) and not any(
        holds(given) for given, _, _ in others
    )


def a_multiple(number: float, of: float) -> bool:
    """Whether a number is a multiple of another one, which is not 0."""
    return of != 0 and number % of == 0


# ---- and how


def at_zero(good: Calls, bad: Calls) -> str:
    """Wrong just where 0 is right, or False."""
    zero = [all(part == 0 for part in parts(expected)) for _, expected, _ in bad]
    others = [all(part == 0 for part in parts(expected)) for _, expected, _ in good]
    nothing = "False" if all(isinstance(expected, bool) for _, expected, _ in bad) else "0"
    return f"Wrong just where {nothing} is right." if all(zero) and good and not any(others) else ""


def by_results(bad: Calls) -> str:
    """How the wrong numbers differ from the right ones."""
    pairs = [(parts(got), parts(expected)) for _, expected, got in bad]
    count = len(pairs[0][1])
    if any(len(got) != count or len(expected) != count for got, expected in pairs):
        return ""
    if not all(is_number(part) for got, expected in pairs for part in (*got, *expected)):
        return ""
    if count > 1 and all(sorted(got) == sorted(expected) for got, expected in pairs):
        return "The numbers are right each time, and in another order."
    wrong = [i for i in range(count) if any(got[i] != right[i] for got, right in pairs)]
    if len(wrong) > 1:
        return ""
    (at,) = wrong
    which = f"Only number {at + 1} of what it returns is wrong. " if count > 1 else ""
    gaps = [got[at] - expected[at] for got, expected in pairs]
    return (which + gap_in_words(gaps, [expected[at] for _, expected in pairs])).strip()


def gap_in_words(gaps: Sequence[float], expected: Sequence[float]) -> str:
    """A sentence on differences from what is expected, the same every time or of one sign."""
    if 0 not in expected and all(gap == -right for gap, right in zip(gaps, expected, strict=True)):
        return "Each wrong one is 0."
    if len(set(gaps)) == 1:
        return f"Each wrong one is {abs(gaps[0])} too {'large' if gaps[0] > 0 else 'small'}."
    if (
        0 not in expected
        and len({gap / right for gap, right in zip(gaps, expected, strict=True)}) == 1
    ):
        factor = gaps[0] / expected[0] + 1
        return f"Each wrong one is {factor:.6g} times what it should be."
    if all(gap > 0 for gap in gaps):
        return "Each wrong one is too large."
    if all(gap < 0 for gap in gaps):
        return "Each wrong one is too small."
    return ""


def parts(value: Any) -> tuple:
    """The numbers of a tuple or list; anything else as the only one."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def is_number(value: Any) -> bool:
    """Whether a value is one that can be compared, subtracted and divided."""
    is_one = isinstance(value, NUMBERS) and not isinstance(value, bool)
    return is_one and not abs(value) > sys.float_info.max  # an int may be larger; NaN is not
