"""From evidence to a reason: what do all the launches that went wrong have in common?

Every rule looks at what was observed (which sizes and grids fail, which elements are wrong, which
indices were touched outside) and none at the source of the answer.
"""

from collections.abc import Iterator

import numpy as np

from course.checking import by_element, by_launch, by_pattern
from course.checking.engines import Run
from course.checking.evidence import Finding, agrees, failed, plain, right
from course.checking.model import Exercise


def diagnose(runs: list[Run], exercise: Exercise) -> Finding | None:
    """The finding for a list of runs, or None if all of them are right."""
    runs = sorted(runs, key=telling)
    bad = [run for run in runs if failed(run, exercise)]
    if not bad:
        return too_much_work(runs, exercise)
    ordinary = [run for run in bad if not run.special and not run.scaled]
    if not ordinary:
        scaled = [run for run in bad if run.scaled]
        says = FAR_FROM_1 if scaled else SPECIAL_VALUES
        return Finding("special_values", says, (scaled or bad)[0])
    bad = ordinary
    good = [run for run in runs if not failed(run, exercise)]
    findings: Iterator[Finding | None] = (rule(bad, good, exercise) for rule in RULES)
    return next(filter(None, findings))


def telling(run: Run) -> tuple[bool, bool, int]:
    """Sorts runs by how well they show a mistake: small arrays first, but not all edge."""
    thin = run.expected.ndim > 1 and min(run.expected.shape) < 2
    return thin, run.expected.size < 8, run.expected.size


def too_much_work(runs: list[Run], exercise: Exercise) -> Finding | None:
    """The finding for runs with right results, where threads do what others do or could."""
    twice = [run for run in runs if by_element.duplicate_work([run], [], exercise)]
    if not twice:
        return by_element.too_many_elements(runs, exercise)
    once = [run for run in runs if run not in twice]
    rules = by_launch.fixed_block, by_element.duplicate_work
    findings: Iterator[Finding | None] = (rule(twice, once, exercise) for rule in rules)
    return next(filter(None, findings))


SPECIAL_VALUES = (
    "Right until an input holds infinity, NaN, -0 or a number of the very smallest. Zero times"
    " infinity is NaN, so a zero is no reason to leave a product out, nor a product with zero a way"
    " to leave something out."
)


FAR_FROM_1 = (
    "It is right with numbers around 1, and those of one input are far smaller here, or far larger."
    " Is a small number taken for zero, or a large one cut off, or does a product leave what its"
    " type can hold?"
)


def broken_promise(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Everything is right in the end, and some store was not."""
    if exercise.always and all(right(run, exercise).all() for run in bad):
        for run in bad:
            if run.broken:
                return Finding("for_a_moment", exercise.always.says, run)
    return None


def known_mistake(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """A named guess gives exactly what came, wherever the guess differs from right."""
    inside = [run for run in bad if not run.outside_writes and not run.outside_reads]
    for guess in exercise.hypotheses:
        witnesses: list[Run] = []
        for run in inside:
            given = plain(run.arguments)
            if guess.by_blocks:
                given["blocks"] = int(np.prod(run.launch.grid))
            output = np.asarray(guess.output(**given))
            if output.shape != run.actual.shape or agrees(output, run.expected, exercise).all():
                continue  # here the guess could not be told from the right answer
            if not as_guessed(run, output.astype(run.actual.dtype), exercise).all():
                witnesses = []
                break
            witnesses.append(run)
        if len(witnesses) >= 2:
            return Finding(guess.reason, guess.says, witnesses[0])
    return None


def as_guessed(run: Run, output: np.ndarray, exercise: Exercise) -> np.ndarray:
    """Elementwise: this is what the guess gives, and no number where it gives none."""
    agree = agrees(run.actual, output, exercise)
    if output.dtype.kind == "f":
        agree = agree | np.isnan(run.actual) & np.isnan(output)
    return agree


SOMETHING_ELSE = "The kernel runs and stays inside its arrays, but computes something else."


OR_OUTSIDE = "The kernel runs, but computes something else, or reads past the end of an array."


def wrong_value(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding:
    """What nothing else explains: what can be seen of it."""
    seen = by_pattern.observations(bad, good, exercise)
    return Finding("wrong_value", f"{SOMETHING_ELSE} {seen}".strip(), bad[0])


def may_have_read_outside(run: Run, exercise: Exercise) -> bool:
    """Whether a CUDA C kernel, whose reads are not seen, made NaN of numbers: around its arrays
    lies NaN.
    """
    inputs = [np.asarray(value) for value in plain(run.arguments).values()]
    numbers = all(np.isfinite(array).all() for array in inputs if array.dtype.kind == "f")
    made = run.actual.dtype.kind == "f" and np.isnan(run.actual).any()
    return exercise.kind == "cuda_c" and numbers and bool(made)


#: From the most telling to the most general.
RULES = (
    by_element.modified_input,
    by_launch.only_small,
    by_launch.fixed_block,
    by_element.reads_output,
    by_launch.contention,
    by_launch.race,
    broken_promise,
    known_mistake,
    by_element.swapped_axes,
    by_launch.only_square,
    by_element.outside_arrays,
    by_launch.guard_by_grid,
    by_element.first_block,
    by_element.last_missing,
    by_launch.needs_full_grid,
    by_launch.only_powers,
    by_launch.only_multiples,
    by_element.duplicate_work,
    by_element.never_written,
    by_element.absent_lanes,
    by_element.only_thread_zero,
    wrong_value,
)
