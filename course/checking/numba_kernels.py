"""Kernels in Python are checked: every access watched, in several orders of the threads."""

import ast
import functools
import inspect
import linecache
import textwrap
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from course.checking import drawn, engines, kept, limits, typing, work
from course.checking.by_launch import large_says
from course.checking.diagnose import diagnose
from course.checking.engines import Run
from course.checking.evidence import failed, plain
from course.checking.limits import Budget, TooLong, TooSlow
from course.checking.model import Demand, Exercise, Launch
from course.checking.rejected import (
    ASKS_WHO_IS_HERE,
    SAME_PLACE,
    TWO_LINES,
    WHO_IS_HERE,
    Rejected,
    check_arity,
    crashed,
    parameters,
    reject_if_wrong,
    short_message,
    tally,
    too_long,
)
from course.checking.report import as_html
from course.checking.trials import (
    TRACED_THREADS,
    Trial,
    as_output,
    cases,
    large_trials,
    probes,
    scaled_trials,
    special_trials,
)
from utils import has_gpu
from utils.cpu.numba_cuda import IN_STEP, lanes_apart
from utils.cpu.numba_cuda.arguments import argument, match, type_of
from utils.tracer import Trace, trace

GONE = (
    "A kernel, of this cell or of an earlier one, read or wrote outside its arrays, and the GPU"
    " takes no more work from this notebook: Kernel > Restart Kernel, then run the set-up cell and"
    " what you need."
)


def check_numba(exercise: Exercise, answer: Any, seed: int) -> str:
    """Say what was tried, or raise Rejected."""
    kernel = as_kernel(exercise, answer)
    reject_declared_types(exercise, kernel, seed)
    try:
        return try_numba(exercise, kernel, seed)
    except Rejected as no:
        if not has_gpu() and no.reason != "does_not_compile":  # that is what was asked last
            reject_untyped(kernel, exercise, seed, no.reason)
        if engines.context_is_gone():
            no.lines += (GONE,)
        raise


def try_numba(exercise: Exercise, kernel: Any, seed: int) -> str:
    """The same for what is a kernel."""
    before = kept.outside(kernel.py_func)
    if exercise.race_free:
        reject_races(kernel, exercise, seed)
    runs: list[Run] = []
    case: Trial | None = None
    try:
        run_all_watched(kernel, exercise, seed, runs)
        reject_if_wrong(runs, exercise)
        reject_means(kernel, exercise, seed)  # before many launches that another way would spare
        reject_drawn(kernel, exercise, seed)
        # only now on the real engine: a GPU does not survive every mistake
        if engines.context_is_gone():
            raise Rejected("not_checked", "Nothing is known against the answer.")
        usual, patient = limits.budgets_of_launches()
        for case in (*cases(exercise, seed), *large_trials(exercise, seed)):
            rng = np.random.default_rng((seed, len(runs)))
            # in order where threads are many, and where a trace has looked for races
            large = case[0] in exercise.large_shapes
            order = None if exercise.race_free or large else seed
            with (patient if large else usual).piece():
                runs.append(engines.run_guarded(kernel, *case, rng, order, not large))
        case = None
        runs += special_runs(kernel, exercise, seed)
        runs += scaled_runs(kernel, exercise, seed)
    except (engines.Stopped, TooLong, TooSlow) as stopped:
        # an earlier launch tells more than the crash does
        if any(failed(run, exercise) for run in runs):
            reject_if_wrong(runs, exercise)
        if isinstance(stopped, engines.Stopped):
            if isinstance(stopped.error, NumbaError):  # a GPU's compiler: told as without a GPU
                reject_untyped(kernel, exercise, seed)
            if case and case[0] in exercise.large_shapes:
                raise Rejected("only_small", large_says(runs, case[2])) from None
            found = crashed(stopped, kernel.py_func)
            early = left_early(kernel.py_func)
            if found.reason in ("uninitialized", "barrier"):
                found.lines += early
            if found.reason == "uninitialized" and not early:
                found.lines += in_small_blocks(stopped.launch, runs)
            raise found from None
        raise
    reject_if_wrong(runs, exercise)
    reject_numba_that_needs_all_lanes(kernel, exercise, seed)
    kept.reject_if_each_run_changes(
        kernel.py_func,
        before,
        lambda: [traced_probe(kernel, exercise, probe) for probe in probes(exercise)],
    )
    if not has_gpu():
        reject_untyped(kernel, exercise, seed)
    return tally(runs)


def reject_means(kernel: Any, exercise: Exercise, seed: int) -> None:
    """Reject what is right, but not by the accesses, or with as little work, as is asked for."""
    if exercise.demand:
        reject_if_unmet(kernel, exercise, exercise.demand, seed)
    reject_if_unfair(kernel, exercise)


SPECIAL_INPUT = (
    "Ordinary numbers went well. The input of this launch holds infinity, NaN, -0 and the smallest"
    " numbers there are."
)


def scaled_runs(kernel: Any, exercise: Exercise, seed: int) -> list[Run]:
    """Launches on the real engine with inputs of very small and very large numbers."""
    budget, runs = limits.budget_of_engine(), []
    for trial in scaled_trials(exercise, seed):
        with budget.piece():
            rng = np.random.default_rng(seed)
            runs.append(engines.run_guarded(kernel, *trial, rng, None, watched=False))
        runs[-1].scaled = True
    return runs


def special_runs(kernel: Any, exercise: Exercise, seed: int) -> list[Run]:
    """Launches on the real engine with inputs of special numbers."""
    budget, runs = limits.budget_of_engine(), []
    for trial in special_trials(exercise, seed):
        rng = np.random.default_rng(seed)
        try:
            with budget.piece():
                runs.append(engines.run_guarded(kernel, *trial, rng, None, watched=False))
        except engines.Stopped as stopped:
            found = crashed(stopped, kernel.py_func)
            raise Rejected(found.reason, *found.lines, SPECIAL_INPUT, code=found.code) from None
        except TooLong as long:
            raise Rejected("timeout", too_long(exercise, long), SPECIAL_INPUT) from None
        runs[-1].special = True
    return runs


def reject_numba_that_needs_all_lanes(kernel: Any, exercise: Exercise, seed: int) -> None:
    """Launch where `cuda.activemask()` names a part of the lanes only: a GPU promises no more."""
    if not ASKS_WHO_IS_HERE.search(inspect.getsource(kernel.py_func)):
        return
    budget, rng = limits.budget_of_engine(), np.random.default_rng(seed)
    for case in cases(exercise, seed):
        try:
            with budget.piece(), lanes_apart():
                run = engines.run_watched(kernel, *case, rng, seed, exercise.always)
        except engines.Stopped:
            raise Rejected("warp_mask", WHO_IS_HERE) from None
        if failed(run, exercise):
            raise Rejected("warp_mask", WHO_IS_HERE)


def left_early(function: FunctionType) -> tuple[str, ...]:
    """A line that says so where a thread may `return` before a barrier that follows."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # made by `exec`
        return ()
    returns = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Return)]
    barriers = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "syncthreads"
    ]
    if not returns or min(returns) > max(barriers, default=0):
        return ()
    return (
        "A thread that returns before a barrier neither loads for the others nor waits with them:"
        " let it stay, and guard what it stores.",
    )


def in_small_blocks(launch: Launch | None, runs: list[Run]) -> tuple[str, ...]:
    """A line that says so where all blocks that went well had more threads than this launch's."""
    if launch is None:
        return ()
    threads = int(np.prod(launch.block))
    least = min((int(np.prod(run.launch.block)) for run in runs), default=0)
    if least <= threads:
        return ()
    return (
        f"It went well in blocks of {least} threads and more, and here a block has {threads}: a"
        " load is left to a thread that is not there.",
    )


def run_all_watched(kernel: Any, exercise: Exercise, seed: int, runs: list[Run]) -> None:
    """Add to runs each case in several orders of the threads, every access watched."""
    budget, wrong = limits.budget_of_engine(), False
    shuffled = range(seed, seed + exercise.orders)
    in_step = [IN_STEP] if exercise.shared_output else []  # where threads meet, each may come last
    for case in cases(exercise, seed):
        # What was wrong once is tried on to name it; two orders that differ name a race, unless
        # traces have found none.
        more = shuffled[: 0 if exercise.race_free else 1] if wrong else shuffled
        for order in (None, *more, *in_step):
            rng = np.random.default_rng((seed, len(runs)))
            with budget.piece():
                runs.append(engines.run_watched(kernel, *case, rng, order, exercise.always))
            wrong = wrong or failed(runs[-1], exercise)
        if wrong and budget.used > limits.ENOUGH_SECONDS:
            break


def reject_untyped(kernel: Any, exercise: Exercise, seed: int, reason: str | None = None) -> None:
    """Ask numba-cuda whether a GPU could run it at all: the CPU engine runs more than that.

    reason: why it is rejected otherwise. Most reasons tell more than the compiler does; it knows
    best what is outside, and why two launches differ.
    """
    arguments = exercise.inputs(np.random.default_rng(seed), exercise.shapes[-1])
    whole = reason in (None, "race")
    message, line = typing.refused(kernel, arguments, whole) or (None, None)
    untyped = message and typing.UNTYPED in message
    if not message or not (untyped or whole):
        return
    code = linecache.getline(kernel.py_func.__code__.co_filename, line).strip() if line else ""
    runs = "The CPU engine runs it, and numba-cuda's compiler does not: "
    says = (runs if reason is None else "numba-cuda's compiler says: ") + short_message(message)
    raise Rejected("does_not_compile", says, *([FROM_OUTSIDE] if untyped else []), code=code)


FROM_OUTSIDE = (
    "From outside, a kernel can use numbers, tuples, NumPy's arrays (as constants), modules and"
    " functions with `@cuda.jit(device=True)`."
)


def reject_drawn(kernel: Any, exercise: Exercise, seed: int) -> None:
    """Launch with sizes drawn by what they may be; reject by the smallest that goes wrong."""

    def runs_of(shape: tuple, rng: np.random.Generator) -> list[Run]:
        arguments = exercise.inputs(rng, shape)
        case = shape, exercise.launches_for(shape)[-1], arguments, as_output(exercise, arguments)
        with budget.piece():
            return [engines.run_watched(kernel, *case, rng, seed, exercise.always)]

    def fails(shape: tuple, rng: np.random.Generator) -> bool:
        return diagnose(runs_of(shape, rng), exercise) is not None

    budget = limits.budget_of_engine()
    smallest = drawn.smallest_failure(exercise, fails, seed, drawn.LAUNCHES)
    if smallest is not None:
        budget = Budget(
            limits.EACH_SECONDS, limits.SECONDS
        )  # the search may have used up the first
        reject_if_wrong(runs_of(*smallest), exercise)


def reject_if_unfair(kernel: Any, exercise: Exercise) -> None:
    """Count who does the work in a few launches; reject races and what no right answer needs."""
    for probe, least in zip(probes(exercise), least_work(exercise), strict=True):
        traced = traced_probe(kernel, exercise, probe)
        reject_traced_races(traced)
        unmet = work.unmet(work.work_of(traced), least, exercise)
        if unmet:
            raise Rejected(*unmet)


def traced_probe(kernel: Any, exercise: Exercise, probe: tuple[tuple, Launch]) -> Trace:
    """The Trace of a launch on inputs that are always the same."""
    shape, launch = probe
    arguments = exercise.inputs(np.random.default_rng(0), shape)
    expected = np.asarray(exercise.reference(**plain(arguments)))
    arrays = engines.host_arrays(arguments, expected, np.random.default_rng(0))
    return trace(kernel, launch.grid, launch.block, *arrays.values(), seconds=limits.EACH_SECONDS)


@functools.cache
def least_work(exercise: Exercise) -> Any:
    """The Work of the solution in each of the probes."""
    traces = (traced_probe(exercise.solution, exercise, probe) for probe in probes(exercise))
    return [work.work_of(traced) for traced in traces]


def reject_if_unmet(kernel: Any, exercise: Exercise, demand: Demand, seed: int) -> None:
    """Trace one more launch, or two; reject accesses that are not as the exercise demands."""
    for shape in filter(None, (demand.shape, demand.ragged)):
        reject_if_unmet_with(shape, kernel, exercise, demand, seed)


def reject_if_unmet_with(
    shape: tuple, kernel: Any, exercise: Exercise, demand: Demand, seed: int
) -> None:
    """The same for one launch, on inputs of this shape."""
    arguments = exercise.inputs(np.random.default_rng(seed), shape)
    expected = np.asarray(exercise.reference(**plain(arguments)))
    arrays = engines.host_arrays(arguments, expected, np.random.default_rng(0))
    launch = exercise.launches_for(shape)[0]
    traced = trace(kernel, launch.grid, launch.block, *arrays.values())
    unmet = demand.unmet(traced)
    if not unmet:
        return
    reason, says, row = unmet
    if row is None:
        raise Rejected(reason, says)
    draw_row = traced.draw_banks if reason == "bank_conflict" else traced.draw_memory
    figure = draw_row(row.line, row.array, row.operation)
    raise Rejected(reason, says, code=row.code, picture=as_html(figure))


def reject_races(kernel: Any, exercise: Exercise, seed: int) -> None:
    """Trace the smaller launches; reject a kernel in which two threads race, right or wrong."""
    for _, launch, arguments, expected in cases(exercise, seed):
        if np.prod(launch.threads) > TRACED_THREADS:
            continue
        arrays = engines.host_arrays(arguments, expected, np.random.default_rng(seed))
        try:
            seconds = limits.EACH_SECONDS
            traced = trace(kernel, launch.grid, launch.block, *arrays.values(), seconds=seconds)
            races = traced.races if traced.error is None else []
        except Exception:  # what stops the kernel is told, with its line, by the runs that follow
            return
        if races:
            reject_traced_races(traced)


PLAIN_READ = (
    "A plain read beside atomic operations may give anything, and a compiler may keep what it gave."
    " Let an atomic operation look, too: `cuda.atomic.add(array, i, 0)` returns what is there."
)


def reject_traced_races(traced: Trace) -> None:
    """Reject, with a picture, if threads of a Trace race."""
    if not traced.races:
        return
    problem = next(text for text in traced.problems if text.startswith("RACE"))
    race = traced.races[0]
    if race.operation == race.other_operation == "write":
        problem += f"\n{SAME_PLACE if race.line == race.other.line else TWO_LINES}"
    operations = {race.operation, race.other_operation}
    if operations == {"read", "atomic"} and space_of(race, traced) != "shared":
        problem += f"\n{PLAIN_READ}"
    picture = as_html(traced.draw_races())
    raise Rejected("race", *problem.splitlines(), code=traced.races[0].code, picture=picture)


def space_of(race: Any, traced: Trace) -> str:
    """The kind of memory that a race is in: in shared memory a barrier helps."""
    space: str = traced.events.spaces[traced.events.memory[race.events[0]]]
    return space


def as_kernel(exercise: Exercise, answer: Any) -> Any:
    """The kernel itself, or Rejected with what it is instead."""
    function = getattr(answer, "py_func", None)
    if not inspect.isfunction(function):
        raise Rejected("not_a_kernel", what_it_is(exercise, answer))
    if is_device_function(answer):
        raise Rejected(
            "not_a_kernel",
            f"`{function.__name__}` is a device function (device=True): only other kernels can "
            "call it. Write `@cuda.jit` for a kernel.",
        )
    wanted = parameters(exercise)
    check_arity(function, wanted)
    try:
        inspect.getsource(function)
    except (OSError, TypeError):
        raise Rejected("not_a_kernel", NO_SOURCE.format(function.__name__)) from None
    return answer


DECLARED = (
    "The signature in `@cuda.jit(...)` does not fit: {} Leave it out, and Numba finds the types."
)


def reject_declared_types(exercise: Exercise, kernel: Any, seed: int) -> None:
    """Reject a kernel whose signature takes other types, or changes the numbers that it is given.

    A GPU's Numba says so itself.
    """
    if not getattr(kernel, "signatures_given", None):
        return
    rng, shape = np.random.default_rng(seed), exercise.shapes[-1]
    arguments = exercise.inputs(rng, shape)
    given = engines.host_arrays(arguments, as_output(exercise, arguments), rng)
    ready = [argument(one, name, []) for name, one in given.items()]
    try:
        cast, _ = match(kernel, ready, tuple(map(type_of, ready)))
    except TypeError as error:
        raise Rejected("wrong_dtype", DECLARED.format(f"{error}.")) from None
    for name, before, after in zip(given, ready, cast, strict=True):
        if np.isscalar(before) and before != after:
            says = f"`{name}` is {before!s}, and the type that is declared makes it {after!s}."
            raise Rejected("wrong_dtype", DECLARED.format(says))


def what_it_is(exercise: Exercise, answer: Any) -> str:
    """A sentence on an answer that is no kernel."""
    if answer is None or answer is Ellipsis:
        return f"check() got `{answer}`, not a kernel. Did the cell that defines it run?"
    if isinstance(answer, str | Path):
        return "check() got text. Pass the kernel itself, without quotes."
    if inspect.isfunction(answer):
        return f"`{answer.__name__}` is a plain Python function: write `@cuda.jit` above it."
    if hasattr(answer, "griddim"):
        return (
            "check() got a kernel with a launch attached. Pass the kernel alone, without [grid,"
            " block]; check() chooses the launches."
        )
    names = ", ".join(parameters(exercise))
    return (
        f"check() got an object of type {type(answer).__name__}; it takes a kernel, a function"
        f" `({names})` with `@cuda.jit` above it."
    )


NO_SOURCE = (
    "The check reads a kernel's source, and there is none for `{}`: was it made by `exec`? Write it"
    " in a cell of its own, or in a file that you import."
)


def is_device_function(kernel: Any) -> bool:
    """Whether it was made with device=True (numba.cuda and the CPU engine say it differently)."""
    options = getattr(kernel, "targetoptions", {})
    return bool(options.get("device") or getattr(kernel, "device", False) is True)
