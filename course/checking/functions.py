"""Plain functions are checked: what they return for many arguments, drawn ones among them."""

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from course.checking import by_call, drawn, engines, kept, limits
from course.checking.by_call import Call, Calls
from course.checking.limits import Budget
from course.checking.model import Exercise, Hypothesis
from course.checking.rejected import Rejected, check_arity, crashed, parameters
from course.checking.text import shown
from utils.cpu.greenlets import greenlet

MANY = 10**7  # rounds of a loop in Python that take about a second, or more
SHOWN = 40  # numbers of a tuple that are still told one by one
FLOATS = (
    "Whole numbers are needed, and this is a float. `float(...)`, `/` and numbers such as 1e9 make"
    " one; `int(...)`, `//` and 10**9 do not, as long as no float takes part."
)


def check_function(exercise: Exercise, answer: Any, seed: int) -> str:
    """A host function: the same idea without a launch. Values must be equal, of the right type."""
    if isinstance(answer, functools._lru_cache_wrapper):
        answer = answer.__wrapped__  # what it returns, computed each time
    if not inspect.isfunction(answer):
        what = f"an object of type {type(answer).__name__}"
        if answer is None or answer is Ellipsis:
            what = f"`{answer}`"
        raise Rejected(
            "not_a_kernel",
            f"check() got {what}; it takes the function itself, without parentheses.",
        )
    check_arity(answer, parameters(exercise))
    rng, budget = np.random.default_rng(seed), limits.budget_of_engine()
    before = kept.outside(answer)
    calls = [
        one_call(answer, exercise, exercise.inputs(rng, shape), budget)
        for shape in exercise.all_shapes(rng)
    ]
    bad = [one for one in calls if not same(one[2], one[1], exercise.real)]
    if not bad:
        calls += drawn_call(answer, exercise, seed, budget)
        bad = [one for one in calls if not same(one[2], one[1], exercise.real)]
    if bad:
        raise rejected_function(answer, exercise, calls, bad)
    kept.reject_if_each_run_changes(
        answer, before, lambda: one_call(answer, exercise, calls[-1][0], budget)
    )
    drawn_too = drawn.CALLS if drawn.drawn_shapes(exercise) is not None else 0
    return f"{len(calls) + drawn_too} calls returned what they should."


def drawn_call(answer: FunctionType, exercise: Exercise, seed: int, budget: Budget) -> list[Call]:
    """The smallest call that is wrong among many drawn by what the inputs may be, in a list."""

    def tried(shape: tuple, rng: np.random.Generator) -> Call:
        return one_call(answer, exercise, exercise.inputs(rng, shape), budget)

    def fails(shape: tuple, rng: np.random.Generator) -> bool:
        _, expected, got = tried(shape, rng)
        return not same(got, expected, exercise.real)

    smallest = drawn.smallest_failure(exercise, fails, seed, drawn.CALLS)
    if smallest is None:
        return []
    budget = limits.budget_of_engine()  # the search may have used up the first
    return [tried(*smallest)]


def one_call(
    answer: FunctionType, exercise: Exercise, arguments: dict[str, Any], budget: Budget
) -> Call:
    """(arguments, expected, what came) of a call."""
    given = copy.deepcopy(list(arguments.values()))
    run = functools.partial(exercise.play, answer) if exercise.play else answer
    try:
        with budget.piece():
            # on a stack of its own: it cannot look at who calls it, and what they know
            got = plain(greenlet(run).switch(*given) if greenlet else run(*given))
    except limits.TooLong as long:
        raise Rejected("timeout", stopped(answer.__name__, arguments, long)) from None
    except Exception as error:
        raise crashed(engines.Stopped(error), answer) from None
    expected = call(exercise.reference, arguments)  # not before: it could be found
    for (name, before), after in zip(arguments.items(), given, strict=True):
        if isinstance(before, list | dict) and before != after:
            raise Rejected("modifies_input", f"`{name}` was {before}, and is now {shown(after)}.")
    if exercise.after and same(got, expected, exercise.real):
        unmet = exercise.after(dict(zip(arguments, given, strict=True)), expected)
        if unmet:
            raise Rejected("other_means", unmet)
    return arguments, expected, got


def stopped(name: str, arguments: dict[str, Any], long: limits.TooLong) -> str:
    """What is said of a call that was stopped: which it was, and that numbers may be too large."""
    this = called(name, arguments)
    says = f"`{this}` was stopped after {long.seconds:g} seconds. Does every loop end?"
    numbers = [value for value in arguments.values() if by_call.is_number(value)]
    if any(abs(number) >= MANY for number in numbers):
        return f"{says} Even if it does, counting so far takes too long: find a formula."
    return says


def _as_written(value: object) -> str:
    """A value in a call: a text in its quotes."""
    return repr(value) if isinstance(value, str) else str(value)


def called(name: str, arguments: dict[str, Any]) -> str:
    """A call as it is written."""
    given = ", ".join(f"{name}={_as_written(value)}" for name, value in arguments.items())
    return f"{name}({given})"


def plain(value: Any) -> Any:
    """What an answer returned, without what a class of its own says of its length and items."""
    if inspect.iscoroutine(value):
        value.close()  # Python warns of one that nobody waits for
    kind = next((kind for kind in (list, tuple) if isinstance(value, kind)), None)
    return kind(value) if kind else value


NO_RETURN = "Is there a `return`?"
EMPTY_RETURN = "What stands behind its `return` gives back nothing."


def rejected_function(
    answer: FunctionType, exercise: Exercise, calls: Calls, bad: Calls
) -> Rejected:
    """The Rejected for a function some of whose calls were wrong, with the first of these."""
    arguments, expected, got = bad[0]
    this = called(answer.__name__, arguments)
    evidence = f"`{this}` must return {difference(expected, got)}."
    returned = [got for _, _, got in bad]
    if all(value is None for value in returned):
        why = EMPTY_RETURN if returns_a_call(answer) else NO_RETURN
        return Rejected("no_return", f"`{this}` returned None. {why}")
    hint = no_number(got)
    if not hint and not exercise.real and any(map(holds_float, returned)):
        hint = FLOATS
    for guess in exercise.guesses:
        if explains(guess, calls, exercise.real or bool(hint)):
            return Rejected(guess.reason, evidence, guess.says)
    if hint:
        return Rejected("wrong_dtype", f"{evidence} {hint}")
    seen = "" if exercise.names else by_call.observations(calls, bad)
    return Rejected("wrong_value", evidence, *filter(None, [seen]))


def returns_a_call(answer: Callable) -> bool:
    """Whether a function returns what some other one does, which may be nothing."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(answer)))
    except (OSError, TypeError, SyntaxError):
        return False
    returned = [node.value for node in ast.walk(body) if isinstance(node, ast.Return)]
    return any(isinstance(value, ast.Call) for value in returned)


def difference(expected: Any, got: Any) -> str:
    """What must be returned, and what was; of long tuples the first place where they differ."""
    alike = isinstance(got, tuple) and isinstance(expected, tuple) and len(got) == len(expected)
    if not alike or len(expected) <= SHOWN:
        return f"{expected}, and returned {shown(got)}"
    place = next((n for n, e in enumerate(expected) if not same(got[n], e, real=True)), 0)
    return (
        f"{len(expected):,} numbers. The one at index {place} must be {expected[place]}, and is"
        f" {shown(got[place])}"
    )


def no_number(value: Any) -> str | None:
    """A sentence on what was returned that is no number, and no tuple of numbers; or None."""
    if inspect.iscoroutine(value):
        return "That is a coroutine, as `async def` makes one: write `def`."
    if inspect.isgenerator(value):
        return "That is a generator, as `yield` makes one: return all of it with `return`."
    parts = list(np.ravel(value) if isinstance(value, np.ndarray) else as_tuple(value))
    for part in parts:
        if not is_number(part, real=True) and not isinstance(part, list | tuple | np.ndarray):
            where = "Its type" if part is value else "The type of a part of it"
            return f"{where} is `{type(part).__name__}`: numbers are needed."
    return None


def holds_float(value: Any) -> bool:
    """Whether a value, or any number in it, is a float."""
    return any(isinstance(part, float) for part in np.ravel(np.array(value, dtype=object)))


def call(function: Callable, arguments: dict[str, Any]) -> Any:
    """What a function returns for copies of the arguments, which it may change."""
    return function(*copy.deepcopy(list(arguments.values())))


def explains(guess: Hypothesis, calls: Calls, real: bool) -> bool:
    """Whether a guess returns what the answer did every time, and what is wrong at least twice."""
    wrong = 0
    for arguments, expected, got in calls:
        output = call(guess.output, arguments)
        if not same(got, output, real):
            return False
        wrong += not same(output, expected, real)
    return wrong >= 2


def same(got: Any, expected: Any, real: bool = False) -> bool:
    """Equal as tuples of ints (a list will do); real: or of floats that are equal to them."""
    try:
        got = as_tuple(got)
    except TypeError:
        return False
    expected = as_tuple(expected)
    return len(got) == len(expected) and all(
        is_number(g, real) and g == e for g, e in zip(got, expected, strict=True)
    )


def is_number(value: object, real: bool) -> bool:
    """Whether a value is an int, or perhaps a float; not of a class that can say what it equals."""
    kinds = (int, bool, float) if real else (int, bool)
    scalar = isinstance(value, np.integer | np.bool_) or real and isinstance(value, np.floating)
    return type(value) in kinds or scalar


def as_tuple(value: Any) -> tuple:
    """The numbers of a list, tuple or array; anything else as the only one."""
    return tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,)
