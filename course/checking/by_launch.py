"""Rules that ask which launches go wrong: of which sizes, grids, blocks and orders of threads.

Each takes the runs that went wrong, those that did not and the exercise, and gives a Finding or
None.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from course.checking.by_element import duplicate_work
from course.checking.engines import Run
from course.checking.evidence import (
    Finding,
    elements,
    largest,
    right,
    surplus,
    trim,
    unwritten,
    where,
)
from course.checking.model import Exercise

TELLING = 20  # elements along an axis: of fewer, a wrong one here and there may be every nth
LITTLE = 1e-3  # of the largest value: what a sum of many terms may lose in a type with few digits


def race(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """An element right in one order of the threads is wrong in another, with the same inputs."""
    for run in bad:
        for other in [*good, *bad]:
            if (run.shape, run.launch) != (other.shape, other.launch):
                continue
            if not np.array_equal(run.expected, other.expected):
                continue
            if not (right(other, exercise) & ~right(run, exercise)).any():
                continue
            # Threads that do the same work race as well, but the work done twice is the mistake.
            twice = None if exercise.shared_output else duplicate_work([run], good, exercise)
            return twice or Finding(
                "race",
                "The same launch on the same inputs gave different results in different "
                "orders of the threads: some thread uses what another one writes, or gives up "
                "where another one was faster.",
                run,
            )
    return None


def contention(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Wrong only where all threads of a block go on in step: the last one is last each time."""
    if good and all(run.in_step and not run.outside_by for run in bad):
        return Finding(
            "contention",
            "Right as long as a thread seldom meets another; wrong where all threads of a block"
            " come to the same element again and again. Does it give up after some tries, or do"
            " two operations leave room for others between them?",
            bad[0],
        )
    return None


def only_square(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Right with equal sides only."""
    wrong = {run.shape for run in bad}
    # a side of 1 can be right by accident
    fine = {run.shape for run in good if min(run.shape) > 1} - wrong
    only_square_is_fine = len(fine) >= 2 and all(map(exercise.is_square, fine))
    if only_square_is_fine and not any(map(exercise.is_square, wrong)):
        says = (
            "Right whenever all sides are equal, wrong when they are not: is one side used for "
            "another?"
        )
        if all(np.array_equal(unwritten(run, exercise), ~right(run, exercise)) for run in bad):
            x, y, *_ = bad[0].launch.threads
            says = (
                "All that was written is right, but when the sides are not equal, elements are"
                f" missing. This launch has {x} threads along x and {y} along y: does the kernel"
                " ask for more along one of them, and for fewer along the other?"
            )
        return Finding("only_square", says, bad[0])
    return None


def guard_by_grid(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Wrong exactly when there are surplus threads (along one axis): they damaged the array."""
    if not good or not any(fills_blocks(run, exercise) for run in bad):
        return None
    for axes in ((0,), (1,), (2,), (0, 1), (0, 1, 2)):

        def too_many(run: Run, axes: tuple[int, ...] = axes) -> bool:
            return any(surplus(run, exercise)[axis] > 0 for axis in axes)

        if all(map(too_many, bad)) and not any(map(too_many, good)):
            along = " and ".join("xyz"[axis] for axis in axes)
            return Finding(
                "missing_guard",
                f"Right with exactly as many threads as needed along {along}, wrong as soon as "
                "there are more: the surplus threads change elements that are not theirs.",
                bad[0],
            )
    return None


def fixed_block(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """All is right with blocks of one size, and what is wrong has blocks of another."""
    other = exercise.other_block
    blocks = {run.launch.block for run in bad}
    fine = {run.launch.block for run in good} - blocks
    shapes = {run.shape for run in good if run.launch.block in fine}
    if other is None or blocks != {other} or fine != {exercise.block} or len(shapes) < 3:
        return None
    launches = {(run.shape, run.launch) for run in good}
    if any((run.shape, run.launch) in launches for run in bad):  # it is the order that matters
        return None
    smallest = min(threads_needed(run, exercise) for run in bad)
    others = [run for run in good if run.launch.block in blocks]
    larger = any(threads_needed(run, exercise) >= smallest for run in others)
    if larger or all(here_and_there(run, exercise) for run in bad):  # it is the numbers
        return None
    return Finding(
        "fixed_block",
        f"Right with blocks of {trim(exercise.block)} threads, wrong with blocks of "
        f"{trim(other)}: is a number written where `blockDim` belongs?",
        bad[0],
    )


def only_small(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Nothing is wrong but what has the large arrays, or but those with few threads."""
    if not good or not {run.shape for run in bad} <= {*exercise.large_shapes}:
        return None
    if all(here_and_there(run, exercise) for run in bad):  # many numbers, so rare ones, too
        return None
    run = bad[0]
    fine = next((other for other in good if other.shape == run.shape), None)
    if fine is None and all(map(nearly_right, bad)):
        return Finding(
            "only_small",
            f"Nearly right with {elements(run.arguments):,} elements, and quite right with fewer:"
            " does a sum of many terms keep too few digits for them, or leave some of them out?",
            run,
        )
    if fine is None:
        return Finding("only_small", large_says(good, run.arguments), run)
    most, few = np.prod(fine.launch.threads), np.prod(run.launch.threads)
    return Finding(
        "few_rounds",
        f"Right with {most:,} threads for {elements(run.arguments):,} elements, wrong with {few:,}:"
        " does each loop go on to the end, or is a number of rounds written in?",
        run,
    )


def nearly_right(run: Run) -> bool:
    """Whether no value is off by more than LITTLE."""
    if run.expected.dtype.kind != "f":
        return False
    return bool((np.abs(run.actual - run.expected) <= LITTLE * largest(run)).all())


def here_and_there(run: Run, exercise: Exercise) -> bool:
    """Whether along some axis few indices are wrong, in no order, with right ones among them."""
    wrong = ~right(run, exercise)
    for axis in range(wrong.ndim):
        others = tuple(i for i in range(wrong.ndim) if i != axis)
        at, length = np.flatnonzero(wrong.any(axis=others)), wrong.shape[axis]
        if length < TELLING or not at.size or at.size > length / 5 or at[-1] == length - 1:
            continue
        steps = np.diff(at)
        if np.count_nonzero(steps == 1) < at.size / 2 and (len(set(steps)) > 1 or at.size < 3):
            return True
    return False


def large_says(good: list[Run], arguments: dict[str, Any]) -> str:
    """The sentence on what is right in these runs, and goes wrong with these arguments."""
    name, axis, length = max(
        sides_of(arguments), key=lambda side: side[2] / max(1, longest(good, *side[:2]))
    )
    along = f"along axis {axis} of" if len(array_of(arguments[name]).shape) > 1 else "in"
    return (
        f"Right with up to {longest(good, name, axis):,} elements {along} `{name}`, wrong with"
        f" {length:,}: is an index kept in a type that is too small for it, or is a limit written"
        " in somewhere?"
    )


def sides_of(arguments: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """(name, axis, length) of each side of each array among a launch's arguments."""
    for name, value in arguments.items():
        for axis, length in enumerate(getattr(array_of(value), "shape", ())):
            yield name, axis, length


def longest(runs: list[Run], name: str, axis: int) -> int:
    """The most elements that an array had along an axis in some runs, 0 if there are none."""
    return max((array_of(run.arguments[name]).shape[axis] for run in runs), default=0)


def array_of(argument: Any) -> Any:
    """An argument's array, or what describes one."""
    return getattr(argument, "array", argument)


def only_powers(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Right with powers of two, be they no multiples of the block, and with nothing else."""

    def is_power(run: Run) -> bool:
        return int(np.prod(exercise.extents(run.shape))).bit_count() == 1

    fine = {run.shape for run in good if not fills_blocks(run, exercise)}
    if len(fine) >= 4 and all(map(is_power, good)) and not any(map(is_power, bad)):
        size = where(bad[0].shape)
        return Finding("only_powers", f"Right with powers of two, wrong for {size}.", bad[0])
    return None


def only_multiples(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Right with multiples of the block, or of the number of threads."""

    def of_block(run: Run) -> bool:
        return fills_blocks(run, exercise)

    def of_threads(run: Run) -> bool:
        return divides(run.launch.threads, run, exercise)

    run = bad[0]
    most = len(bad) / 2  # of the others that are right, too, by chance
    threads = Finding("only_multiples", last_round_says(run, exercise), run)
    if all(lacks_threads(each, exercise) for each in bad) and only_such(of_threads, bad, good):
        return threads
    if only_such(of_block, bad, good, most):
        size, block = where(run.shape), trim(run.launch.block)
        return Finding(
            "only_multiples",
            f"Right when the size is a multiple of the block {block}, wrong for {size}: what"
            " happens in the last, partly filled block?",
            run,
        )
    if only_such(of_threads, bad, good, most):
        return threads
    return None


def last_round_says(run: Run, exercise: Exercise) -> str:
    """The sentence on elements that are left over for a last round of all threads."""
    says = (
        "Right when the size is a multiple of the number of threads, wrong for"
        f" {where(run.shape)} elements and {run.launch.threads[0]} threads: what of the rest?"
    )
    if unwritten(run, exercise).any():
        return says
    return says + (
        " All of it was written: does a thread keep something from one round of its loop that"
        " belongs to another element in the next?"
    )


def only_such(
    kind: Callable[[Run], bool], bad: list[Run], good: list[Run], most: float = np.inf
) -> bool:
    """Runs of this kind are right, of two sizes at least, and of the others so many at most."""
    sizes = {run.shape for run in good if kind(run)}
    others = sum(not kind(run) for run in good)
    return len(sizes) >= 2 and others <= most and not any(map(kind, bad))


def threads_needed(run: Run, exercise: Exercise) -> int:
    """How many threads the extents are."""
    return int(np.prod(exercise.extents(run.shape)))


def fills_blocks(run: Run, exercise: Exercise) -> bool:
    """Whether the extents are whole multiples of the block's."""
    return divides(run.launch.block, run, exercise)


def divides(sides: Sequence[int], run: Run, exercise: Exercise) -> bool:
    """Whether the extents are whole multiples of these."""
    extents = exercise.extents(run.shape)
    return all(e % side == 0 for e, side in zip(extents, sides, strict=True))


def needs_full_grid(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Wrong exactly where there is no thread for every element."""
    if not good or any(lacks_threads(run, exercise) for run in good):
        return None
    if all(lacks_threads(run, exercise) for run in bad):
        run = bad[0]
        return Finding(
            "needs_full_grid",
            f"Right when there is a thread for every element; with {run.launch.threads[0]} "
            f"threads for {run.expected.size} elements the rest is not done. Let each thread loop.",
            run,
        )
    return None


def lacks_threads(run: Run, exercise: Exercise) -> bool:
    """Whether there are fewer threads than elements along an axis."""
    return min(surplus(run, exercise)) < 0
