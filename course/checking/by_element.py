"""Rules that ask which elements are wrong, which were touched outside, and by how many threads.

Each takes the runs that went wrong, those that did not and the exercise, and gives a Finding or
None.
"""

from collections.abc import Sequence

import numpy as np

from course.checking.engines import Run, output_name
from course.checking.evidence import Finding, modified, right, surplus, unwritten, where
from course.checking.model import Exercise, Out

HERE_AND_THERE = 0.2  # of the elements: so many may be right by chance, such as zeros


def modified_input(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """An input was stored to, and not by an index that leads out of another array."""
    astray = any(run.outside_writes for run in bad)
    for run in bad:
        names = modified(run, exercise)
        if names and not (astray and run.writers is None):
            return Finding(
                "modifies_input",
                f"`{names[0]}` is stored to, and should only be read, even where it holds"
                " in the end what it held before.",
                run,
            )
    return None


def reads_output(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """An output with garbage in it was read before it was written, where the result is wrong."""
    for run in bad:
        name = output_name(run.arguments)
        if isinstance(run.arguments[name], Out) and used_before_written(run, exercise).any():
            return Finding(
                "reads_output",
                f"`{name}` holds anything before the launch, here NaN or random numbers: set "
                "its elements before adding to them, or sum in a variable of the thread's own.",
                run,
            )
    return None


def used_before_written(run: Run, exercise: Exercise) -> np.ndarray:
    """Elementwise: wrong, and read early, or (CUDA C) just what it held added to what is right."""
    wrong = ~right(run, exercise)
    if run.early_reads is not None:
        early: np.ndarray = run.early_reads & wrong
        return early
    if run.initial.dtype.kind != "f" or not np.isfinite(run.initial).all():
        return np.zeros_like(wrong)
    sums = run.expected.astype(np.float64) + run.initial
    added = np.isclose(run.actual, sums, rtol=1e-4) & (run.actual != run.initial)
    just_added: np.ndarray = wrong & added & (added | ~wrong).all()
    return just_added


def swapped_axes(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """The elements that were touched are those of the picture with its two axes exchanged."""
    if not exercise.swapped:
        return None
    a, b = exercise.swapped
    uneven = [run for run in bad if run.expected.shape[a] != run.expected.shape[b]]
    even = [run for run in bad if run not in uneven]
    if not uneven or any(run.outside_writes or unwritten(run, exercise).any() for run in even):
        return None
    for run in uneven:
        written = np.argwhere(~unwritten(run, exercise)).tolist()
        outside = run.outside_writes.get(output_name(run.arguments), ())
        if {*map(tuple, written), *outside} != reached_when_swapped(run, a, b):
            return None
    run = uneven[0]
    return Finding(
        "swapped_axes",
        f"In an output of shape {run.expected.shape} exactly those elements are filled that "
        f"threads reach when the indices of axis {a} and axis {b} are exchanged. `cuda.grid(2)` "
        "gives (x, y): x runs along a row, so it is the column, the last index.",
        run,
    )


def reached_when_swapped(run: Run, a: int, b: int) -> set[tuple[int, ...]]:
    """Both ways to swap: indices checked against the wrong sides, or too few threads."""
    shape = run.expected.shape
    threads = dict(zip(range(len(shape) - 1, -1, -1), run.launch.threads, strict=False))
    limits = list(shape)
    # the guard compares x with the width and y with the height, then swaps
    if output_name(run.arguments) in run.outside_writes:
        limits[a], limits[b] = shape[b], shape[a]
    else:
        limits[a], limits[b] = min(shape[a], threads[b]), min(shape[b], threads[a])
    return set(np.ndindex(*limits))


BELOW_ZERO = "Is an index below 0 kept out (`>= 0`), or is it too small by one?"
TOO_FAR = (
    "Nothing further out is touched: does a comparison let one thread too many pass (`<=` for `<`),"
    " is an index too large by one, or must it begin at 0 again there (`% size`)?"
)
BY_THREADS_WITH_WORK = (
    " Threads that have work to do go there: is an index that follows from theirs wrong, or must it"
    " be kept inside?"
)


def outside_arrays(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Accesses out of bounds: exactly one beyond (off by one), or by all threads without work."""
    outside = [run for run in bad if run.outside_writes or run.outside_reads]
    if not outside:
        return None
    run = outside[0]
    kind = "writes" if run.outside_writes else "reads"
    name, indices = next(iter(first_outside(run).items()))
    shape = shape_of(run, name)
    if len(indices[0]) == 1:
        shape = (int(np.prod(shape)),)
    index = min(indices)
    before = any(i < 0 for i in index)
    side = "before the start of" if before else "past the end of"
    says = f"It {kind} {side} `{name}`: index {where(index)}, but its size is {where(shape)}."
    if one_beyond(outside, exercise):
        return Finding("off_by_one", f"{says} {BELOW_ZERO if before else TOO_FAR}", run)
    if all(by_surplus(one, exercise) for one in outside):
        axes = along_axes(indices, shape) if len(shape) > 1 else ""
        says += f" Is there a guard{axes}, and does it stop this thread?"
        return Finding("missing_guard", says, run)
    return Finding("out_of_bounds", says + BY_THREADS_WITH_WORK * bool(run.outside_by), run)


def first_outside(run: Run) -> dict[str, list[tuple[int, ...]]]:
    """array -> indices out of bounds: the writes or, where there is none, the reads."""
    return run.outside_writes or run.outside_reads


def shape_of(run: Run, name: str) -> tuple[int, ...]:
    """The shape of an array among a launch's arguments."""
    argument = run.arguments[name]
    shape: tuple[int, ...] = getattr(argument, "array", argument).shape
    return shape


def by_surplus(run: Run, exercise: Exercise) -> bool:
    """Whether there are surplus threads, and one left an array, or it is not known who did."""
    if max(surplus(run, exercise)) <= 0:
        return False
    extents = exercise.extents(run.shape)
    return not run.outside_by or any(
        any(i >= n for i, n in zip(thread, extents, strict=True)) for thread in run.outside_by
    )


def along_axes(indices: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> str:
    """In words along which axis of the shape the indices lie outside."""
    axes = set()
    for index in indices:
        pairs = zip(index, shape, strict=False)
        axes |= {axis for axis, (i, n) in enumerate(pairs) if not 0 <= i < n}
    return f" along axis {axes.pop()}" if len(axes) == 1 else " along every axis"


def one_beyond(runs: list[Run], exercise: Exercise) -> bool:
    """Every write (or else read) out of bounds is one beyond, although threads reach further.

    Where a thread reads follows from what it writes, perhaps several elements further. A flat index
    into a picture (CUDA C) is one beyond in the row after the last or before the first.
    """
    for run in runs:
        for name, indices in first_outside(run).items():
            shape = shape_of(run, name)
            if len(indices[0]) < len(shape):
                row = int(np.prod(shape[1:]))
                indices, shape = [(index[0] // row,) for index in indices], shape[:1]
            for index in indices:
                if not all(-1 <= i <= n for i, n in zip(index, shape, strict=True)):
                    return False
    return any(max(surplus(run, exercise)) > 1 for run in runs)


def last_missing(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """The only wrong elements are the last of more on an axis, and nobody wrote them."""
    axes = bad[0].expected.ndim
    for axis in range(axes):
        run = max(bad, key=lambda run: run.expected.shape[axis] > 1)
        size = run.expected.shape[axis]
        if size > 1 and all(only_last_missing(each, exercise, axis) for each in bad):
            of_axis = f" of axis {axis}" if axes > 1 else ""
            return Finding(
                "off_by_one",
                f"Everything is right except index {size - 1}, the last one{of_axis}, which was"
                " never written.",
                run,
            )
    return None


def only_last_missing(run: Run, exercise: Exercise, axis: int) -> bool:
    """All wrong elements are unwritten and lie at the end of one axis, and all of it is wrong."""
    wrong = ~right(run, exercise)
    rest = np.delete(wrong, -1, axis=axis)
    return not rest.any() and np.take(unwritten(run, exercise), -1, axis=axis).all()


def first_block(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Only what the threads of one block can reach is filled."""
    ndim = bad[0].expected.ndim
    for run in bad:
        reach = tuple(reversed(run.launch.block[:ndim]))
        mask = np.zeros(run.expected.shape, bool)
        mask[tuple(slice(n) for n in reach)] = True
        if run.outside_writes or not np.array_equal(right(run, exercise), mask):
            return None
        if not np.array_equal(unwritten(run, exercise), ~mask):
            return None
    return Finding(
        "first_block_only",
        "Only the first block's elements are filled: `threadIdx` starts at 0 again in every block."
        " Which block is this one, and how many threads has it?",
        bad[0],
    )


def duplicate_work(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """More than one thread wrote an element of the output."""
    for run in bad:
        writers = run.writers
        if writers is None:
            continue
        if run.updaters is not None and not exercise.shared_output:
            writers = np.maximum(writers, run.updaters)
        if (writers > 1).any():
            index = np.unravel_index(int(np.argmax(writers)), writers.shape)
            return Finding(
                "duplicate_work",
                f"Element {where(index)} of the output was written by {int(writers.max())} "
                "threads; each element is one thread's job.",
                run,
            )
    return None


def too_many_elements(runs: list[Run], exercise: Exercise) -> Finding | None:
    """A thread wrote more elements of the output than the text gives it, and there were enough."""
    if not exercise.elements:
        return None
    for run in runs:
        most = run.most_of_one_thread or 0
        if most > exercise.elements and min(surplus(run, exercise)) >= 0:
            elements = "one element" if exercise.elements == 1 else f"{exercise.elements} elements"
            return Finding(
                "one_thread",
                f"One thread stores to {most:,} elements of `{output_name(run.arguments)}`. The"
                f" task gives each thread {elements}: here others have no work left.",
                run,
            )
    return None


def never_written(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """What was written is right."""
    for run in bad:
        holes = unwritten(run, exercise)
        if not holes.any():
            continue
        if holes.all() and run.most_of_one_thread:  # written, with the value that stood there
            continue
        if holes.all():
            return Finding("unwritten", "No element of the output was written.", run)
        if np.array_equal(holes, ~right(run, exercise)):
            first = where(np.argwhere(holes)[0])
            return Finding(
                "unwritten",
                f"What was written is right, but {holes.sum():,} of {holes.size:,} elements never"
                f" were, the first at index {first}.",
                run,
            )
    return None


def absent_lanes(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """Wrong where shuffles read from lanes that took no part, and what they give is undefined."""
    for run in bad:
        if run.counts and run.counts["absent"]:
            return Finding(
                "warp_mask",
                "A shuffle reads from lanes that take no part in it: they have ended, or stand "
                "elsewhere. What it gives is undefined. Let every lane of the mask come to it, "
                "those without an element with a value that changes nothing.",
                run,
            )
    return None


def only_thread_zero(bad: list[Run], good: list[Run], exercise: Exercise) -> Finding | None:
    """A block to a row, and in each row what its thread 0 writes is right, and little else."""
    fine, others = [], []
    for run in bad:
        if run.expected.ndim != 2 or run.launch.grid[0] != len(run.expected):
            return None
        of_zero = np.arange(run.expected.shape[1]) % run.launch.block[0] == 0
        agree = right(run, exercise)
        fine.append(agree[:, of_zero].ravel())
        others.append(agree[:, ~of_zero].ravel())
    if not np.concatenate(fine).all() or np.concatenate(others).mean() > HERE_AND_THERE:
        return None
    return Finding(
        "wrong_value",
        "In each row what thread 0 writes is right, and little else. What thread 0 alone has (as"
        " the result of a reduction) the others must get from it: through shared memory, behind a"
        " barrier.",
        bad[0],
    )
