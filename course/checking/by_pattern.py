"""What all wrong launches have in common, where no rule and no guess has named the mistake.

Each sentence is an observation that holds in every launch that was tried. It names no cause, but it
says where to look: with which sizes it goes wrong, at which elements, and how their values differ.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course.checking.by_launch import array_of, sides_of
from course.checking.engines import Run
from course.checking.evidence import ATOL, right, unwritten
from course.checking.model import Exercise
from utils.check.comparison import NAN, OK, UNWRITTEN, WRONG, Differences, Tolerance
from utils.check.mismatch import reasons_for

#: (array, axis)
Side = tuple[str, int]
FEW = 0.2  # of the elements: so many at most are wrong "here and there"
SIZES = 3  # with fewer different sizes right, a rule about sizes may be chance
VALUES = 8  # with fewer values, so may one about values
PARTS = 4  # an axis with so many elements at most holds parts of one result, such as x, y and z
DIVISORS = (128, 64, 32, 16, 8, 4, 2)
LOST = ", as from lost precision"  # what `reasons_for` says of small errors
#: Keys of `reasons_for` that say how wrong values follow from the right ones.
FOLLOWS = {
    "transposed",
    "shifted",
    "reversed",
    "permuted",
    "zeros",
    "scaled",
    "negated",
    "offset",
    "imprecise",
}


def observations(bad: list[Run], good: list[Run], exercise: Exercise) -> str:
    """One or two sentences, or "" where nothing stands out."""
    good = [run for run in good if not run.special and not run.scaled]
    about_sizes = multiples(bad, good) or longest_right(bad, good)
    about_values = (
        follows(bad, exercise)
        or no_number(bad, exercise)
        or by_input(bad, good, exercise)
        or by_result(bad, good, exercise)
        or one_way(bad, exercise)
    )
    place = one_index(bad, exercise)
    few = "" if about_sizes or about_values or place else here_and_there(bad, exercise)
    return " ".join(filter(None, (about_sizes, place, about_values, few)))


# ---- with which sizes


def lengths(runs: Sequence[Run]) -> dict[Side, set[int]]:
    """(array, axis) -> the lengths that it had in these runs, in a set."""
    found: dict[Side, set[int]] = {}
    for run in runs:
        for name, axis, length in sides_of(run.arguments):
            found.setdefault((name, axis), set()).add(length)
    return found


def in_words(run: Run, name: str, axis: int) -> str:
    """A side of an array: "the length of `x`", "axis 1 of `x`"."""
    if len(array_of(run.arguments[name]).shape) == 1:
        return f"the length of `{name}`"
    return f"axis {axis} of `{name}`"


def apart(bad: list[Run], good: list[Run]) -> Iterator[tuple[Side, set[int], set[int]]]:
    """(side, lengths where it is wrong, where right) of sides of which no length is both."""
    of_good = lengths(good)
    for side, wrong in lengths(bad).items():
        fine = of_good.get(side, set())
        if len(fine) >= SIZES and len(wrong) >= 2 and not fine & wrong:
            yield side, wrong, fine


def multiples(bad: list[Run], good: list[Run]) -> str:
    """Right with multiples of a number only."""
    for (name, axis), wrong, fine in apart(bad, good):
        for divisor in DIVISORS:
            if not any(n % divisor for n in fine) and all(n % divisor for n in wrong):
                side = in_words(bad[0], name, axis)
                return (
                    f"Right wherever {side} is a multiple of {divisor}, wrong wherever it is none."
                )
    return ""


def longest_right(bad: list[Run], good: list[Run]) -> str:
    """Right up to a length, and wrong beyond."""
    for (name, axis), wrong, fine in apart(bad, good):
        if max(fine) < min(wrong):
            side = in_words(bad[0], name, axis)
            return f"Right with up to {max(fine):,} as {side}, wrong from {min(wrong):,} on."
    return ""


# ---- at which elements, and how


def differences(run: Run, exercise: Exercise) -> Differences:
    """What `reasons_for` takes: the elements that the exercise finds wrong."""
    return between(
        run.actual, run.expected, ~right(run, exercise), exercise, unwritten(run, exercise)
    )


def between(
    actual: np.ndarray,
    expected: np.ndarray,
    wrong: np.ndarray,
    exercise: Exercise,
    never: np.ndarray | bool = False,
) -> Differences:
    """The same of two arrays; wrong, never: elementwise, and not written at all."""
    codes = np.where(wrong, WRONG, OK).astype(np.uint8)
    codes[wrong & is_nan(actual)] = NAN
    codes[wrong & never] = UNWRITTEN
    codes = codes.reshape(-1)
    at = np.flatnonzero(codes == WRONG)
    tolerance = Tolerance(max(exercise.rtol, 1e-5), ATOL, 0.0, "")
    flat = actual.reshape(-1), expected.reshape(-1)
    wrong = np.flatnonzero(codes)
    first = int(wrong[0]) if wrong.size else -1
    return Differences(
        *flat, expected.shape, tolerance, codes, wrong.size, first, -1, 0.0, at[:4096]
    )


def codes_of(found: Differences) -> np.ndarray:
    """Of each element; none at all while nothing differs."""
    return np.zeros(0, np.uint8) if found.codes is None else found.codes


def of_one(actual: np.ndarray, expected: np.ndarray, wrong: np.ndarray, exercise: Exercise) -> str:
    """A sentence on how the wrong values of one launch follow from the right ones, or ""."""
    of_wrong = actual[wrong]
    for kind, word in ((np.isnan, "NaN"), (np.isinf, "infinite")):
        if of_wrong.size > 1 and kind(of_wrong).all():
            return f"Each of them is {word}."
    found = between(actual, expected, wrong, exercise)
    telling = next((reason for reason in reasons_for(found) if reason.key in FOLLOWS), None)
    if telling is None:
        return ""
    return with_the_rest(codes_of(found), telling.key, as_sentence(telling))


def with_the_rest(codes: np.ndarray, key: str, sentence: str) -> str:
    """A sentence on wrong numbers, and what the wrong elements are that hold no number."""
    rests = {NAN: "NaN", UNWRITTEN: "unwritten"}
    rest = " or ".join(word for code, word in rests.items() if (codes == code).any())
    if not rest:
        return sentence
    if key == "zeros":
        return f"Each wrong element is 0 or {rest}."
    return f"{sentence} The other wrong elements are {rest}."


def as_sentence(words: str) -> str:
    """What `reasons_for` says, as a sentence; small errors have more than one cause."""
    if not words:
        return ""
    words = words.replace(LOST, ": is precision lost, or something small left out?")
    end = "" if words.endswith("?") else "."
    return f"{words[0].upper()}{words[1:]}{end}"


def is_nan(values: np.ndarray) -> np.ndarray:
    """Elementwise; no integer is NaN."""
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)


def follows(bad: list[Run], exercise: Exercise) -> str:
    """In each launch the wrong values follow from the right ones in the same way."""
    words: dict[str, list[str]] = {}
    of_runs = [differences(run, exercise) for run in bad]
    for run, of_run in zip(bad, of_runs, strict=True):
        found = {r.key: str(r) for r in reasons_for(of_run)}
        telling = {key: text for key, text in found.items() if key in FOLLOWS}
        if telling:
            for key, text in telling.items():
                words.setdefault(key, []).append(text)
        elif np.count_nonzero(~right(run, exercise)) >= SIZES:
            return ""
    if len(words) != 1:
        return ""
    ((key, texts),) = words.items()
    codes = [codes_of(of_run) for of_run in of_runs]
    of_numbers = sum((each == WRONG).any() for each in codes)
    if len(texts) < 2 or key == "zeros" and len(texts) < of_numbers:
        return ""
    if key in ("scaled", "offset") and len(set(texts)) > 1:
        kind = "factor" if key == "scaled" else "number"
        sentence = f"Within a launch all wrong numbers are off by the same {kind}."
    else:
        sentence = as_sentence(max(texts, key=len))
    return with_the_rest(np.concatenate(codes), key, sentence)


def pooled(
    runs: Sequence[Run], exercise: Exercise, of: Callable[[Run], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(of each wrong element, of each right one) what `of(run)` gives, over all runs."""
    wrong, fine = [], []
    for run in runs:
        agree = right(run, exercise)
        values = np.broadcast_to(of(run), agree.shape)
        wrong.append(values[~agree])
        fine.append(values[agree])
    return np.concatenate(wrong), np.concatenate(fine)


def no_number(bad: list[Run], exercise: Exercise) -> str:
    """Each wrong element is NaN, or infinite."""
    if any(run.actual.dtype.kind != "f" or unwritten(run, exercise).any() for run in bad):
        return ""
    wrong, _ = pooled(bad, exercise, lambda run: run.actual)
    for kind, word in ((np.isnan, "NaN"), (np.isinf, "infinite")):
        if kind(wrong).all():
            return f"Each wrong element is {word}."
    return ""


def by_result(bad: list[Run], good: list[Run], exercise: Exercise) -> str:
    """Wrong just where the right result has something that all others lack."""
    wrong, fine = pooled([*bad, *good], exercise, lambda run: run.expected)
    what = what_sets_apart(wrong, fine)
    return f"Wrong just where the right result is {what}." if what else ""


def by_input(bad: list[Run], good: list[Run], exercise: Exercise) -> str:
    """The same for an input that has an element for each of the output."""
    runs = [*bad, *good]
    for name in bad[0].arguments:
        arrays = [run.arguments[name] for run in runs]
        if not all(
            isinstance(array, np.ndarray) and array.shape == run.expected.shape
            for array, run in zip(arrays, runs, strict=True)
        ):
            continue
        wrong, fine = pooled(runs, exercise, argument_of(name))
        what = what_sets_apart(wrong, fine)
        if what:
            return f"Wrong just where `{name}` is {what}."
    return ""


def argument_of(name: str) -> Callable[[Run], np.ndarray]:
    """What gives a run's argument of this name."""
    return lambda run: run.arguments[name]


def what_sets_apart(wrong: np.ndarray, fine: np.ndarray) -> str:
    """What all values in `wrong` are and none in `fine`, in words; "" for nothing."""
    if wrong.dtype.kind not in "iuf" or min(wrong.size, fine.size) < VALUES:
        return ""
    wrong, fine = wrong[~is_nan(wrong)], fine[~is_nan(fine)]
    if not wrong.size or not fine.size:
        return ""
    if (wrong == 0).all() and not (fine == 0).any():
        return "0"
    if (wrong < 0).all() and not (fine < 0).any():
        return "below 0"
    if (wrong > 0).all() and not (fine > 0).any():
        return "above 0"
    least, most = np.abs(fine).max(), np.abs(wrong).min()
    if most > least == 0:
        return "not 0"
    if most > least:
        return f"larger than {least:.6g}, of either sign"
    return ""


def one_way(bad: list[Run], exercise: Exercise) -> str:
    """All wrong values are too large, or all are too small."""
    if any(unwritten(run, exercise).any() for run in bad):
        return ""
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        gaps, _ = pooled(bad, exercise, lambda run: run.actual.astype(float) - run.expected)
    if gaps.size < VALUES or np.isnan(gaps).any():
        return ""
    if (gaps > 0).all():
        return "Each wrong value is too large."
    if (gaps < 0).all():
        return "Each wrong value is too small."
    return ""


def one_index(bad: list[Run], exercise: Exercise) -> str:
    """Of an axis with a few elements, the same in every launch, only some indices are wrong."""
    shape = bad[0].expected.shape
    for axis in reversed(range(len(shape))):
        lengths_of_axis = {run.expected.shape[axis] for run in bad}
        if len(lengths_of_axis) > 1 or not 2 <= shape[axis] <= PARTS or len(bad) < 2:
            continue
        others = tuple(i for i in range(len(shape)) if i != axis)
        wrong = np.any([(~right(run, exercise)).any(axis=others) for run in bad], axis=0)
        if not wrong.all():
            indices = " and ".join(map(str, np.flatnonzero(wrong)))
            return f"Along axis {axis} of the output only what has the index {indices} is wrong."
    return ""


def here_and_there(bad: list[Run], exercise: Exercise) -> str:
    """Only few elements are wrong, with right ones among them."""
    wrong = sum(np.count_nonzero(~right(run, exercise)) for run in bad)
    all_of_them = sum(run.expected.size for run in bad)
    if all_of_them < 50 or wrong > FEW * all_of_them:
        return ""
    return (
        f"In the launches that go wrong {wrong:,} of {all_of_them:,} elements are wrong: what have"
        " these, and the others have not?"
    )
