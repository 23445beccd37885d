"""From evidence to a reason: what do all the launches that went wrong have in common?

Every rule looks at what was observed (which sizes and grids fail, which elements are wrong, which
indices were touched outside) and none at the source of the answer.
"""

from dataclasses import dataclass

import numpy as np

from course.checking.model import InOut, Out
from utils.check.comparison import agreement

#: Allowed besides the relative tolerance. An exercise's inputs are of the order of 1: where their
#: terms cancel, this much is left of the rounding.
ATOL = 4 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Finding:
    """A reason key, a sentence with the evidence, and the run that shows it best."""

    reason: str
    says: str
    run: object


def plain(arguments):
    """The arguments as the reference takes them; an `Out` stays one, for its shape."""
    return {n: v.array.copy() if isinstance(v, InOut) else v for n, v in arguments.items()}


def agrees(actual, expected, exercise):
    """Elementwise: equal up to the rounding that the exercise allows."""
    if expected.dtype.kind == "f" and exercise.copies:
        return (actual == expected) & (np.signbit(actual) == np.signbit(expected))
    if exercise.rtol == 0:
        return actual == expected
    return agreement(actual, expected, exercise.rtol, ATOL)


def right(run, exercise):
    """Elementwise: this element of the output is right."""
    agree = agrees(run.actual, run.expected, exercise)
    if run.special and run.expected.dtype.kind == "f":
        agree = agree | np.isnan(run.actual) & np.isnan(run.expected)
    return agree


def unwritten(run, exercise):
    """Elementwise: wrong, and nobody wrote it (or it holds, bit for bit, what it held before)."""
    if run.writers is not None:
        return (run.writers == 0) & ~right(run, exercise)
    bits = f"V{run.actual.dtype.itemsize}"
    before = np.ascontiguousarray(run.initial).view(bits)
    after = np.ascontiguousarray(run.actual).view(bits)
    same = (before == after).reshape(run.actual.shape)
    return same & ~right(run, exercise)


def failed(run, exercise):
    """Whether anything at all was wrong with a run."""
    stray = run.outside_writes or run.outside_reads or run.modified or run.broken
    return bool(stray or not right(run, exercise).all())


def surplus(run, exercise):
    """How many threads too many there are along x, y and z."""
    extents = exercise.extents(run.shape)
    return tuple(t - e for t, e in zip(run.launch.threads, extents, strict=True))


def is_multiple(run, exercise):
    """Whether the extents are whole multiples of the block's."""
    extents = exercise.extents(run.shape)
    return all(e % b == 0 for e, b in zip(extents, run.launch.block, strict=True))


def output_name(run):
    """The name of the one argument that the kernel writes."""
    return next(n for n, v in run.arguments.items() if isinstance(v, Out | InOut))


def where(index):
    """An index as it is written in a program: 5 or [2, 7]."""
    index = tuple(int(i) for i in index)
    return str(index[0]) if len(index) == 1 else "[" + ", ".join(map(str, index)) + "]"


def telling(run):
    """Sorts runs by how well they show a mistake: small arrays first, but not all edge."""
    thin = run.expected.ndim > 1 and min(run.expected.shape) < 2
    return thin, run.expected.size < 8, run.expected.size


def diagnose(runs, exercise):
    """The finding for a list of runs, or None if all of them are right."""
    runs = sorted(runs, key=telling)
    bad = [r for r in runs if failed(r, exercise)]
    if not bad:
        twice = [r for r in runs if duplicate_work([r], exercise)]
        if not twice:
            return too_many_elements(runs, exercise)
        once = [r for r in runs if r not in twice]
        return rule_fixed_block(twice, once, exercise) or duplicate_work(twice, exercise)
    if all(run.special for run in bad):
        return Finding("special_values", SPECIAL_VALUES, bad[0])
    bad = [r for r in bad if not r.special]
    good = [r for r in runs if not failed(r, exercise)]
    for rule in RULES:
        finding = rule(bad, good, exercise)
        if finding:
            return finding
    raise AssertionError("the last rule always finds something")


SPECIAL_VALUES = (
    "Right until an input holds infinity, NaN, -0 or a number of the very smallest. Zero times"
    " infinity is NaN, so a zero is no reason to leave a product out, nor a product with zero a way"
    " to leave something out."
)


# ---- the rules, from the most telling to the most general


def rule_modified(bad, good, exercise):
    changed = [r for r in bad if r.modified]
    if changed:
        run = changed[0]
        return Finding(
            "modifies_input",
            f"`{run.modified[0]}` is stored to, and should only be read, even where it holds in the"
            " end what it held before.",
            run,
        )


def rule_race(bad, good, exercise):
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
            twice = None if exercise.shared_output else duplicate_work([run], exercise)
            return twice or Finding(
                "race",
                "The same launch on the same inputs gave different results in different "
                "orders of the threads: some thread uses what another one writes, or gives up "
                "where another one was faster.",
                run,
            )


def rule_contention(bad, good, exercise):
    """Wrong only where all threads of a block go on in step: the last one is last each time."""
    if good and all(run.in_step and not run.outside_by for run in bad):
        return Finding(
            "contention",
            "Right as long as a thread seldom meets another; wrong where all threads of a block"
            " come to the same element again and again. Does it give up after some tries, or do"
            " two operations leave room for others between them?",
            bad[0],
        )


def rule_always(bad, good, exercise):
    """Everything is right in the end, and some store was not."""
    if all(right(run, exercise).all() for run in bad):
        for run in bad:
            if run.broken:
                return Finding("for_a_moment", exercise.always.says, run)


def rule_hypotheses(bad, good, exercise):
    """A named guess gives exactly what came, wherever the guess differs from right."""
    for guess in exercise.hypotheses:
        witnesses = []
        for run in bad:
            if run.outside_writes or run.outside_reads:
                continue
            output = np.asarray(guess.output(**plain(run.arguments)))
            if output.shape != run.actual.shape or agrees(output, run.expected, exercise).all():
                continue  # here the guess could not be told from the right answer
            if not agrees(run.actual, output.astype(run.actual.dtype), exercise).all():
                witnesses = []
                break
            witnesses.append(run)
        if len(witnesses) >= 2:
            return Finding(guess.reason, guess.says, witnesses[0])


def rule_reads_output(bad, good, exercise):
    """An output with garbage in it was read before it was written, where the result is wrong."""
    for run in bad:
        name = output_name(run)
        if isinstance(run.arguments[name], Out):
            if used_before_written(run, exercise).any():
                return Finding(
                    "reads_output",
                    f"`{name}` holds anything before the launch, here NaN or random numbers: set "
                    "its elements before adding to them, or sum in a variable of the thread's own.",
                    run,
                )


def used_before_written(run, exercise):
    """Elementwise: wrong, and read early, or (CUDA C) just what it held added to what is right."""
    wrong = ~right(run, exercise)
    if run.early_reads is not None:
        return run.early_reads & wrong
    if run.initial.dtype.kind != "f" or not np.isfinite(run.initial).all():
        return np.zeros_like(wrong)
    sums = run.expected.astype(np.float64) + run.initial
    added = np.isclose(run.actual, sums, rtol=1e-4) & (run.actual != run.initial)
    return wrong & added & (added | ~wrong).all()


def rule_swapped(bad, good, exercise):
    """The elements that were touched are those of the picture with its two axes exchanged."""
    if not exercise.swapped:
        return None
    a, b = exercise.swapped
    uneven = [r for r in bad if r.expected.shape[a] != r.expected.shape[b]]
    even_bad = [r for r in bad if r not in uneven]
    if not uneven or any(r.outside_writes or unwritten(r, exercise).any() for r in even_bad):
        return None
    for run in uneven:
        written = np.argwhere(~unwritten(run, exercise)).tolist()
        touched = {tuple(index) for index in written}
        touched |= set(run.outside_writes.get(output_name(run), ()))
        if touched != reached_when_swapped(run, run.expected.shape, a, b):
            return None
    run = uneven[0]
    return Finding(
        "swapped_axes",
        f"In an output of shape {run.expected.shape} exactly those elements are filled that "
        f"threads reach when the indices of axis {a} and axis {b} are exchanged. `cuda.grid(2)` "
        "gives (x, y): x runs along a row, so it is the column, the last index.",
        run,
    )


def reached_when_swapped(run, shape, a, b):
    """Both ways to swap: indices checked against the wrong sides, or too few threads."""
    threads = dict(zip(range(len(shape) - 1, -1, -1), run.launch.threads, strict=False))
    limits = list(shape)
    # the guard compares x with the width and y with the height, then swaps
    if output_name(run) in run.outside_writes:
        limits[a], limits[b] = shape[b], shape[a]
    else:
        limits[a], limits[b] = min(shape[a], threads[b]), min(shape[b], threads[a])
    return {tuple(map(int, i)) for i in np.ndindex(*limits)}


def rule_square(bad, good, exercise):
    wrong = {r.shape for r in bad}
    # a side of 1 can be right by accident
    fine = {r.shape for r in good if min(r.shape) > 1} - wrong
    only_square_is_fine = len(fine) >= 2 and all(map(exercise.is_square, fine))
    if only_square_is_fine and not any(map(exercise.is_square, wrong)):
        return Finding(
            "only_square",
            "Right whenever all sides are equal, wrong when they are not: is one side used for "
            "another?",
            bad[0],
        )


BELOW_ZERO = "Is an index below 0 kept out (`>= 0`), or is it too small by one?"


def rule_outside(bad, good, exercise):
    """Accesses out of bounds: exactly one beyond (off by one), or by all threads without work."""
    outside = [r for r in bad if r.outside_writes or r.outside_reads]
    if not outside:
        return None
    run = outside[0]
    kind = "writes" if run.outside_writes else "reads"
    name, indices = next(iter((run.outside_writes or run.outside_reads).items()))
    argument = run.arguments[name]
    shape = argument.shape if isinstance(argument, np.ndarray) else np.shape(run.actual)
    if len(indices[0]) == 1:
        shape = (int(np.prod(shape)),)
    index = min(indices)
    before = any(i < 0 for i in index)
    side = "before the start of" if before else "past the end of"
    says = f"It {kind} {side} `{name}`: index {where(index)}, but its size is {where(shape)}."
    if one_beyond(outside, exercise):
        if before:
            return Finding("off_by_one", f"{says} {BELOW_ZERO}", run)
        return Finding(
            "off_by_one",
            f"{says} Nothing further out is touched: does a comparison let one thread too many "
            "pass (`<=` for `<`), or is an index too large by one?",
            run,
        )
    if all(any(s > 0 for s in surplus(r, exercise)) and by_surplus(r, exercise) for r in outside):
        axes = along_axes(indices, shape) if len(shape) > 1 else ""
        return Finding("missing_guard", f"{says} Is there a guard{axes}?", run)
    if run.outside_by:
        says += (
            " Threads that have work to do go there: is an index that follows from theirs wrong, or"
            " must it be kept inside?"
        )
    return Finding("out_of_bounds", says, run)


def by_surplus(run, exercise):
    """Whether a thread without work left an array, or it is not known who did."""
    extents = exercise.extents(run.shape)
    return not run.outside_by or any(
        any(i >= n for i, n in zip(thread, extents, strict=True)) for thread in run.outside_by
    )


def along_axes(indices, shape):
    """In words along which axis of the shape the indices lie outside."""
    axes = set()
    for index in indices:
        pairs = zip(index, shape, strict=False)
        axes |= {axis for axis, (i, n) in enumerate(pairs) if not 0 <= i < n}
    return f" along axis {axes.pop()}" if len(axes) == 1 else " along every axis"


def one_beyond(runs, exercise):
    """Every write (or else read) out of bounds is one beyond, although threads reach further.

    Where a thread reads follows from what it writes, perhaps several elements further. A flat index
    into a picture (CUDA C) is one beyond in the row after the last or before the first.
    """
    told = False
    for run in runs:
        for name, indices in (run.outside_writes or run.outside_reads).items():
            value = run.arguments[name]
            shape = value.shape if isinstance(value, np.ndarray | Out) else value.array.shape
            if len(indices[0]) < len(shape):
                row = int(np.prod(shape[1:]))
                indices, shape = [(index[0] // row,) for index in indices], shape[:1]
            for index in indices:
                if not all(-1 <= i <= n for i, n in zip(index, shape, strict=True)):
                    return False
        told |= max(surplus(run, exercise)) > 1
    return told


def rule_guard_by_grid(bad, good, exercise):
    """Wrong exactly when there are surplus threads (along one axis): they damaged the array."""
    for axes in ((0,), (1,), (2,), (0, 1), (0, 1, 2)):

        def too_many(run, axes=axes):
            return any(surplus(run, exercise)[a] > 0 for a in axes)

        multiples = [r for r in bad if is_multiple(r, exercise)]
        if good and multiples and all(map(too_many, bad)) and not any(map(too_many, good)):
            along = " and ".join("xyz"[a] for a in axes)
            return Finding(
                "missing_guard",
                f"Right with exactly as many threads as needed along {along}, wrong as soon as "
                "there are more: the surplus threads change elements that are not theirs.",
                bad[0],
            )


def rule_last_missing(bad, good, exercise):
    """The only wrong elements are the last ones of an axis, and nobody wrote them."""
    for axis in range(bad[0].expected.ndim):
        if all(wrong_at_edge(r, exercise, axis, -1) for r in bad):
            run = bad[0]
            last = run.expected.shape[axis] - 1
            of_axis = f" of axis {axis}" if run.expected.ndim > 1 else ""
            return Finding(
                "off_by_one",
                f"Everything is right except index {last}, the last one{of_axis}, which was never "
                "written.",
                run,
            )


def wrong_at_edge(run, exercise, axis, edge):
    """All wrong elements are unwritten and lie at one edge of one axis, and all of it is wrong."""
    wrong = ~right(run, exercise)
    rest = np.delete(wrong, edge, axis=axis)
    return not rest.any() and np.take(unwritten(run, exercise), edge, axis=axis).all()


def rule_fixed_block(bad, good, exercise):
    """All is right with blocks of one size, and what is wrong has blocks of another."""
    blocks = {run.launch.block for run in bad}
    fine = {run.launch.block for run in good} - blocks
    shapes = {run.shape for run in good if run.launch.block in fine}
    if blocks != {exercise.other_block} or fine != {exercise.block} or len(shapes) < 3:
        return None
    launches = {(run.shape, run.launch) for run in good}
    if any((run.shape, run.launch) in launches for run in bad):  # it is the order that matters
        return None
    return Finding(
        "fixed_block",
        f"Right with blocks of {trim(fine.pop())} threads, wrong with blocks of "
        f"{trim(bad[0].launch.block)}: is a number written where `blockDim` belongs?",
        bad[0],
    )


def large_says(good, arguments):
    """The sentence on what is right in these runs, and goes wrong with these arguments."""
    most = max((elements(run.arguments) for run in good), default=0)
    return (
        f"Right with up to {most:,} elements, wrong with {elements(arguments):,}: is an index kept"
        " in a type that is too small for it, or is a limit written in somewhere?"
    )


def elements(arguments):
    """How many the largest array among a launch's arguments has."""
    arrays = (getattr(value, "array", value) for value in arguments.values())
    return max(int(np.prod(array.shape)) for array in arrays if hasattr(array, "shape"))


def rule_only_small(bad, good, exercise):
    """Nothing is wrong but what has the large arrays, or but those with few threads."""
    if not exercise.large or not good or {run.shape for run in bad} != {exercise.large}:
        return None
    run = bad[0]
    shared_out = [other for other in good if other.shape == run.shape]
    if not shared_out:
        return Finding("only_small", large_says(good, run.arguments), run)
    most, few = (np.prod(one.launch.threads) for one in (shared_out[0], run))
    return Finding(
        "few_rounds",
        f"Right with {most:,} threads for {elements(run.arguments):,} elements, wrong with {few:,}:"
        " does each loop go on to the end, or is a number of rounds written in?",
        run,
    )


def rule_multiples(bad, good, exercise):
    run = bad[0]
    size, block = where(run.shape), trim(run.launch.block)
    of_block = (
        f"Right when the size is a multiple of the block {block}, wrong for {size}: what happens"
        " in the last, partly filled block?"
    )
    of_threads = (
        f"Right when the size is a multiple of the number of threads, wrong for {size} elements"
        f" and {run.launch.threads[0]} threads: what of the rest?"
    )
    if not unwritten(run, exercise).any():
        of_threads += (
            " All of it was written: does a thread keep something from one round of its loop that"
            " belongs to another element in the next?"
        )

    def fills_grid(run):
        extents = exercise.extents(run.shape)
        return all(e % t == 0 for e, t in zip(extents, run.launch.threads, strict=True))

    if all(min(surplus(r, exercise)) < 0 for r in bad) and only_such(fills_grid, bad, good):
        return Finding("only_multiples", of_threads, run)
    most = len(bad) / 2  # of the others that are right, too, by chance
    if only_such(lambda run: is_multiple(run, exercise), bad, good, most):
        return Finding("only_multiples", of_block, run)
    if only_such(fills_grid, bad, good, most):
        return Finding("only_multiples", of_threads, run)


def only_such(kind, bad, good, most=np.inf):
    """Runs of this kind are right, of two sizes at least, and of the others so many at most."""
    sizes = {run.shape for run in good if kind(run)}
    others = sum(not kind(run) for run in good)
    return len(sizes) >= 2 and others <= most and not any(map(kind, bad))


def rule_needs_full_grid(bad, good, exercise):
    def lacks_threads(run):
        return min(surplus(run, exercise)) < 0

    if good and all(map(lacks_threads, bad)) and not any(map(lacks_threads, good)):
        run = bad[0]
        return Finding(
            "needs_full_grid",
            f"Right when there is a thread for every element; with {run.launch.threads[0]} "
            f"threads for {run.expected.size} elements the rest is not done. Let each thread loop.",
            run,
        )


def rule_first_block(bad, good, exercise):
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


def rule_duplicates(bad, good, exercise):
    return duplicate_work(bad, exercise)


def duplicate_work(runs, exercise):
    """More than one thread wrote an element of the output."""
    for run in runs:
        writers = run.writers
        if run.updaters is not None and not exercise.shared_output:
            writers = np.maximum(writers, run.updaters)
        if writers is not None and (writers > 1).any():
            index = np.unravel_index(int(np.argmax(writers)), writers.shape)
            return Finding(
                "duplicate_work",
                f"Element {where(index)} of the output was written by {int(writers.max())} "
                "threads; each element is one thread's job.",
                run,
            )


def too_many_elements(runs, exercise):
    """A thread wrote more elements of the output than the text gives it, and there were enough."""
    if not exercise.elements:
        return None
    for run in runs:
        most = run.most_of_one_thread or 0
        if most > exercise.elements and min(surplus(run, exercise)) >= 0:
            elements = "one element" if exercise.elements == 1 else f"{exercise.elements} elements"
            return Finding(
                "one_thread",
                f"One thread stores to {most:,} elements of `{output_name(run)}`. The task gives"
                f" each thread {elements}: here others have no work left.",
                run,
            )


def rule_unwritten(bad, good, exercise):
    for run in bad:
        holes = unwritten(run, exercise)
        if holes.all() and run.most_of_one_thread:  # written, with the value that stood there
            continue
        if holes.any() and np.array_equal(holes, ~right(run, exercise)):
            count, size = int(holes.sum()), run.expected.size
            first = where(np.argwhere(holes)[0])
            says = (
                f"What was written is right, but {count:,} of {size:,} elements never were, "
                f"the first at index {first}."
            )
            if count == size:
                says = "No element of the output was written."
            return Finding("unwritten", says, run)


def rule_absent_lanes(bad, good, exercise):
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


SOMETHING_ELSE = "The kernel runs and stays inside its arrays, but computes something else."


def rule_wrong_value(bad, good, exercise):
    return Finding("wrong_value", SOMETHING_ELSE, bad[0])


RULES = (
    rule_modified,
    rule_only_small,
    rule_fixed_block,
    rule_reads_output,
    rule_contention,
    rule_race,
    rule_always,
    rule_hypotheses,
    rule_swapped,
    rule_square,
    rule_outside,
    rule_guard_by_grid,
    rule_first_block,
    rule_last_missing,
    rule_needs_full_grid,
    rule_multiples,
    rule_duplicates,
    rule_unwritten,
    rule_absent_lanes,
    rule_wrong_value,
)


def trim(dims):
    """(32, 1, 1) -> (32,): without the trailing ones."""
    dims = tuple(dims)
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return dims
