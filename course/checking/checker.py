"""Checking an answer: can it run, does it run, and is what it does right every time?"""

import ast
import copy
import functools
import inspect
import linecache
import re
import signal
import sys
import textwrap
import threading
import traceback
from pathlib import Path

import numpy as np

from course.checking import (
    apart,
    cpp,
    drawn,
    engines,
    report,
    specials,
    triton_kernels,
    typing,
    work,
)
from course.checking.diagnose import SOMETHING_ELSE, diagnose, failed, large_says, plain
from course.checking.limits import Budget, TooLong, TooMuch, TooSlow, print_limit
from course.checking.model import BROKEN
from course.checking.report import Outcome, as_html, describe, draw
from utils import has_gpu
from utils.cpu.numba_cuda import IN_STEP, KernelError, lanes_apart
from utils.engine import target_arch
from utils.files import scratch_folder
from utils.tools import process
from utils.tools.diagnostics import excerpt
from utils.tools.nvcc import find_nvcc
from utils.tracer import trace

SECONDS = 10  # of CPU time, for all launches of one check on the CPU engine, or all calls
EACH_SECONDS = 4  # of these, for one of them
ENOUGH_SECONDS = 2  # of these, after which a kernel that was wrong once is not tried any more
GPU_SECONDS = 30  # on a GPU, where what is launched is compiled first, for one of them
TRACED_THREADS = 512  # launches up to this size are searched for races
WATCHED_THREADS = 1 << 17  # and those of CUDA C, which is compiled, up to this one
NVCC_SECONDS = 60  # by the clock, for nvcc, which without a GPU has the last word
MOST_POLLS = 64  # besides one for each thread, looks at one place again that may be no waiting
PROBES = 2  # launches in which it is counted who does the work

#: Answers that ask which lanes are here run once more where that names a part of them only.
ASKS_WHO_IS_HERE = re.compile(r"activemask|coalesced_threads")
LANES_APART = {engines.FORCE_CPU: "1", "CUDA_CPU_APART": "1"}
WHO_IS_HERE = (
    "It asks which lanes are here now. On a GPU that may be fewer than should take part,"
    " and then it goes wrong: write down the mask of those that should."
)
MOST_SEED = 1 << 31
WHAT_A_SEED_IS = (
    f"a seed is a whole number from 0 to {MOST_SEED - 1:,}, such as a report names; leave it out"
    " for fresh inputs."
)


class Rejected(Exception):
    """The answer cannot be accepted: a reason key, lines for the learner, a piece of code."""

    def __init__(self, reason, *lines, code="", run=None, picture=""):
        super().__init__(reason)
        self.reason, self.lines, self.code = reason, lines, code
        self.run, self.picture = run, picture


_one_check = threading.RLock()


def check_answer(exercise, answer, seed=None):
    """The Outcome for an answer: a kernel, the path of a .cu file or a function.

    One at a time: what a check redirects and limits is the whole process's.
    """
    seed = fresh_seed() if seed is None else seed
    if not isinstance(seed, int | np.integer) or not 0 <= seed < MOST_SEED:
        no = Rejected("not_a_kernel", f"seed={seed!r}: {WHAT_A_SEED_IS}")
        return not_accepted(exercise, answer, None, no)
    with _one_check:
        return _check_answer(exercise, answer, int(seed))


def _check_answer(exercise, answer, seed):
    if not apart.POSSIBLE or exercise.kind not in apart_kinds():
        outcome, printed = outcome_of(exercise, answer, seed)
    else:
        prepare(exercise)
        try:
            outcome, printed = apart.result_of(lambda: outcome_in_copy(exercise, answer, seed))
        except apart.Ended as ended:
            typing.compiler.forget()  # it may have been asked, and not have answered
            outcome, printed = not_accepted(exercise, answer, seed, died(ended.status)), ""
        except BaseException:  # Kernel > Interrupt
            typing.compiler.forget()
            raise
    if printed:
        sys.stdout.write(printed)
    return outcome


def fresh_seed():
    """A seed for a check that was given none: each learner's inputs are others."""
    return int(np.random.default_rng().integers(MOST_SEED))


def apart_kinds():
    """Kinds of exercises that are tried in a copy of this process: those without a GPU."""
    return ("function",) if has_gpu() else ("function", "numba")


def prepare(exercise):
    """Do here what serves the next checks, too, and is no answer's doing."""
    drawn.get_ready()
    if exercise.kind == "numba":
        typing.compiler.ready()
        report.get_ready()
        least_work(exercise)


def died(status):
    """The Rejected for a copy of this process that ended before the check did."""
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        says = "It was ended by force: by itself, or for the time or memory that it took."
        return Rejected("timeout", says)
    return Rejected("crashed", f"It ended the program ({process.exit_reason(status)}).")


def outcome_of(exercise, answer, seed):
    """(Outcome, what the answer printed, or the beginning of it)."""
    with print_limit() as printed:
        try:
            tried = judge(exercise, answer, seed)
            outcome = Outcome(status="solved", lines=(tried,), **about(exercise, seed))
        except Rejected as no:
            outcome = not_accepted(exercise, answer, seed, no)
    return outcome, printed.shown


def outcome_in_copy(exercise, answer, seed):
    """The same in a copy of this process, which no interrupt reaches: the answer raised it."""
    try:
        return outcome_of(exercise, answer, seed)
    except Exception:
        raise
    except BaseException as error:
        no = Rejected("crashed", f"It raised {type(error).__name__}, which ends a program.")
        return not_accepted(exercise, answer, seed, no), ""


def about(exercise, seed):
    """What every Outcome of an exercise says."""
    return {
        "exercise": exercise.id,
        "title": exercise.title,
        "kind": exercise.kind,
        "seed": seed,
    }


def not_accepted(exercise, answer, seed, no):
    """The Outcome for an answer that was Rejected."""
    untouched = is_starter(exercise, answer)
    broken = no.reason in BROKEN and not untouched
    lines, picture = list(no.lines), no.picture
    if no.run is not None:
        lines += describe(no.run, exercise)
        picture = draw(no.run, exercise)
    if untouched:
        lines = [first_sentence(exercise.task), *lines]
    return Outcome(
        status="broken" if broken else "not yet",
        reason=no.reason,
        untouched=untouched,
        lines=tuple(lines),
        code=no.code,
        picture=picture,
        **about(exercise, seed),
    )


def judge(exercise, answer, seed):
    """Say what was tried, or raise Rejected, whatever the answer raises, prints or waits for."""
    try:
        return CHECKS[exercise.kind](exercise, answer, seed)
    except TooMuch:
        raise Rejected("flood", "It was stopped after a million characters.") from None
    except TooLong as long:
        says = too_long(exercise, long)
        raise Rejected("timeout", says) from None
    except TooSlow as slow:
        says = f"{slow.done} runs with small sizes took {slow.seconds:.0f} seconds together."
        raise Rejected("too_slow", says) from None
    except SystemExit as error:
        raise Rejected("crashed", f"It ended the program: SystemExit({error}).") from None
    except KernelError as error:
        raise crashed(engines.Stopped(error), getattr(answer, "py_func", answer)) from None


def first_sentence(text):
    return re.split(r"(?<=\.)\s", text.strip(), maxsplit=1)[0]


# ---- kernels in Python


def check_numba(exercise, answer, seed):
    """Say what was tried, or raise Rejected."""
    kernel = as_kernel(exercise, answer)
    try:
        return try_numba(exercise, kernel, seed)
    except Rejected as no:
        if not has_gpu() and no.reason != "does_not_compile":  # that is what was asked last
            reject_untyped(kernel, exercise, seed, no.reason)
        raise


def try_numba(exercise, kernel, seed):
    """The same for what is a kernel."""
    if exercise.race_free:
        reject_races(kernel, exercise, seed)
    runs, case = [], ()
    try:
        slow = run_all_watched(kernel, exercise, seed, runs) > ENOUGH_SECONDS
        reject_if_wrong(runs, exercise)
        if slow:  # is that its way to do the work? Then the many launches that follow can be spared
            reject_means(kernel, exercise, seed)
        reject_drawn(kernel, exercise, seed)
        # only now on the real engine: a GPU does not survive every mistake
        budget = Budget(GPU_SECONDS, 4 * GPU_SECONDS) if has_gpu() else budget_of_engine()
        for case in (*cases(exercise, seed), *large_trial(exercise, seed)):
            rng = np.random.default_rng((seed, len(runs)))
            order = None if case[0] == exercise.large else seed  # many threads, and one order
            with budget.piece():
                runs.append(engines.run_guarded(kernel, *case, rng, order))
        case = ()
        runs += special_runs(kernel, exercise, seed)
    except (engines.Stopped, TooLong, TooSlow) as stopped:
        # an earlier launch tells more than the crash does
        if any(failed(run, exercise) for run in runs):
            reject_if_wrong(runs, exercise)
        if isinstance(stopped, engines.Stopped):
            if case and case[0] == exercise.large:
                raise Rejected("only_small", large_says(runs, case[2])) from None
            raise crashed(stopped, kernel.py_func) from None
        raise
    reject_if_wrong(runs, exercise)
    if not slow:
        reject_means(kernel, exercise, seed)
    reject_numba_that_needs_all_lanes(kernel, exercise, seed)
    if not has_gpu():
        reject_untyped(kernel, exercise, seed)
    return tally(runs)


def reject_means(kernel, exercise, seed):
    """Reject what is right, but not by the accesses, or with as little work, as is asked for."""
    if exercise.demand:
        reject_if_unmet(kernel, exercise, seed)
    reject_if_unfair(kernel, exercise)


SPECIAL_INPUT = (
    "Ordinary numbers went well. The input of this launch holds infinity, NaN, -0 and the smallest"
    " numbers there are."
)


def too_long(exercise, long):
    """A sentence about what was stopped."""
    one = "call" if exercise.kind in ("function", "torch") else "launch"
    return f"One {one} was stopped after {long.seconds:g} seconds. Does every loop end?"


def special_runs(kernel, exercise, seed):
    """Launches on the real engine with inputs of special numbers."""
    budget, runs = budget_of_engine(), []
    for trial in special_trials(exercise, seed):
        rng = np.random.default_rng(seed)
        try:
            with budget.piece():
                runs.append(engines.run_guarded(kernel, *trial, rng, None))
        except engines.Stopped as stopped:
            found = crashed(stopped, kernel.py_func)
            raise Rejected(found.reason, *found.lines, SPECIAL_INPUT, code=found.code) from None
        except TooLong as long:
            raise Rejected("timeout", too_long(exercise, long), SPECIAL_INPUT) from None
        runs[-1].special = True
    return runs


def reject_numba_that_needs_all_lanes(kernel, exercise, seed):
    """Launch where `cuda.activemask()` names a part of the lanes only: a GPU promises no more."""
    if not ASKS_WHO_IS_HERE.search(inspect.getsource(kernel.py_func)):
        return
    budget, rng = budget_of_engine(), np.random.default_rng(seed)
    for case in cases(exercise, seed):
        try:
            with budget.piece(), lanes_apart():
                run = engines.run_watched(kernel, *case, rng, seed, exercise.always)
        except engines.Stopped:
            raise Rejected("warp_mask", WHO_IS_HERE) from None
        if failed(run, exercise):
            raise Rejected("warp_mask", WHO_IS_HERE)


def budget_of_engine():
    """What all launches of one kind may take on the CPU engine."""
    return Budget(EACH_SECONDS, SECONDS)


def run_all_watched(kernel, exercise, seed, runs):
    """Add to runs each case in several orders of the threads, every access watched.

    Returns the seconds of CPU time that they took.
    """
    budget = budget_of_engine()
    orders = [None, *range(seed, seed + exercise.orders)]
    if exercise.shared_output:  # where threads meet, one may come last each time
        orders.append(IN_STEP)
    for case in cases(exercise, seed):
        for order in orders:
            rng = np.random.default_rng((seed, len(runs)))
            with budget.piece():
                runs.append(engines.run_watched(kernel, *case, rng, order, exercise.always))
        if budget.used > ENOUGH_SECONDS and any(failed(run, exercise) for run in runs):
            break
    return budget.used


def reject_untyped(kernel, exercise, seed, reason=None):
    """Ask numba-cuda whether a GPU could run it at all: the CPU engine runs more than that.

    reason: why it is rejected otherwise. Most reasons tell more than the compiler does; it knows
    best what is outside, and why two launches differ.
    """
    arguments = exercise.inputs(np.random.default_rng(seed), exercise.shapes[-1])
    message, line = typing.refused(kernel, arguments) or (None, None)
    untyped = message and typing.UNTYPED in message
    if not message or not (untyped or reason in (None, "race")):
        return
    code = linecache.getline(kernel.py_func.__code__.co_filename, line).strip() if line else ""
    runs = "The CPU engine runs it, and numba-cuda's compiler does not: "
    says = (runs if reason is None else "numba-cuda's compiler says: ") + short_message(message)
    raise Rejected("does_not_compile", says, *([FROM_OUTSIDE] if untyped else []), code=code)


FROM_OUTSIDE = (
    "From outside, a kernel can use numbers, tuples, NumPy's arrays (as constants), modules and"
    " functions with `@cuda.jit(device=True)`."
)


def reject_drawn(kernel, exercise, seed):
    """Launch with sizes drawn by what they may be; reject by the smallest that goes wrong."""

    def runs_of(shape, rng):
        arguments = exercise.inputs(rng, shape)
        case = shape, exercise.launches_for(shape)[-1], arguments, as_output(exercise, arguments)
        with budget.piece():
            return [engines.run_watched(kernel, *case, rng, seed, exercise.always)]

    def fails(shape, rng):
        return diagnose(runs_of(shape, rng), exercise) is not None

    budget = Budget(EACH_SECONDS, SECONDS)
    smallest = drawn.smallest_failure(exercise, fails, seed, drawn.LAUNCHES)
    if smallest is not None:
        budget = Budget(EACH_SECONDS, SECONDS)  # the search may have used up the first
        reject_if_wrong(runs_of(*smallest), exercise)


def reject_if_unfair(kernel, exercise):
    """Count who does the work in a few launches; reject races and what no right answer needs."""
    for probe, least in zip(probes(exercise), least_work(exercise), strict=True):
        traced = traced_probe(kernel, exercise, probe)
        reject_traced_races(traced)
        unmet = work.unmet(work.work_of(traced), least, exercise)
        if unmet:
            raise Rejected(*unmet)


def probes(exercise):
    """(shape, launch) of the largest fixed shape's launches that are small enough to trace."""
    shapes = [exercise.probe] if exercise.probe else exercise.shapes
    for shape in sorted(shapes, key=np.prod, reverse=True):
        launches = exercise.launches_for(shape)
        small = [one for one in launches if np.prod(one.threads) <= TRACED_THREADS]
        if small:
            small.sort(key=lambda one: np.prod(one.threads), reverse=True)
            return [(shape, launch) for launch in small[:PROBES]]
    return []


def traced_probe(kernel, exercise, probe):
    """The Trace of a launch on inputs that are always the same."""
    shape, launch = probe
    arguments = exercise.inputs(np.random.default_rng(0), shape)
    expected = np.asarray(exercise.reference(**plain(arguments)))
    arrays = engines.host_arrays(arguments, expected, np.random.default_rng(0))
    return trace(kernel, launch.grid, launch.block, *arrays.values(), seconds=EACH_SECONDS)


@functools.cache
def least_work(exercise):
    """The Work of the solution in each of the probes."""
    traces = (traced_probe(exercise.solution, exercise, probe) for probe in probes(exercise))
    return [work.work_of(traced) for traced in traces]


def reject_if_unmet(kernel, exercise, seed):
    """Trace one more launch, or two; reject accesses that are not as the exercise demands."""
    for shape in filter(None, (exercise.demand.shape, exercise.demand.ragged)):
        reject_if_unmet_with(shape, kernel, exercise, seed)


def reject_if_unmet_with(shape, kernel, exercise, seed):
    """The same for one launch, on inputs of this shape."""
    arguments = exercise.inputs(np.random.default_rng(seed), shape)
    expected = np.asarray(exercise.reference(**plain(arguments)))
    arrays = engines.host_arrays(arguments, expected, np.random.default_rng(0))
    launch = exercise.launches_for(shape)[0]
    traced = trace(kernel, launch.grid, launch.block, *arrays.values())
    unmet = exercise.demand.unmet(traced)
    if not unmet:
        return
    reason, says, row = unmet
    if row is None:
        raise Rejected(reason, says)
    draw_row = traced.draw_banks if reason == "bank_conflict" else traced.draw_memory
    figure = draw_row(row.line, row.array, row.operation)
    raise Rejected(reason, says, code=row.code, picture=as_html(figure))


def reject_races(kernel, exercise, seed):
    """Trace the smaller launches; reject a kernel in which two threads race, right or wrong."""
    for _, launch, arguments, expected in cases(exercise, seed):
        if np.prod(launch.threads) > TRACED_THREADS:
            continue
        arrays = engines.host_arrays(arguments, expected, np.random.default_rng(seed))
        try:
            seconds = EACH_SECONDS
            traced = trace(kernel, launch.grid, launch.block, *arrays.values(), seconds=seconds)
            races = traced.races if traced.error is None else []
        except Exception:  # what stops the kernel is told, with its line, by the runs that follow
            return
        if races:
            reject_traced_races(traced)


SAME_PLACE = "Where two threads have chosen the same place to write to, that is the mistake."
PLAIN_READ = (
    "A plain read beside atomic operations may give anything, and a compiler may keep what it gave."
    " Let an atomic operation look, too: `cuda.atomic.add(array, i, 0)` returns what is there."
)


def reject_traced_races(traced):
    """Reject, with a picture, if threads of a Trace race."""
    if not traced.races:
        return
    problem = next(text for text in traced.problems if text.startswith("RACE"))
    race = traced.races[0]
    if race.operation == race.other_operation == "write":
        problem += f"\n{SAME_PLACE}"
    if {race.operation, race.other_operation} == {"read", "atomic"}:
        problem += f"\n{PLAIN_READ}"
    picture = as_html(traced.draw_races())
    raise Rejected("race", *problem.splitlines(), code=traced.races[0].code, picture=picture)


def tally(runs):
    """How much was tried."""
    sizes = len({run.shape for run in runs})
    on_gpu = " and on the GPU" if has_gpu() else ""
    return (
        f"{len(runs)} launches with {sizes} sizes gave what they should and touched nothing else, "
        f"with the threads in order, shuffled{on_gpu}."
    )


def cases(exercise, seed):
    """(shape, launch, arguments, expected) for every size and launch; the seed draws the inputs."""
    rng = np.random.default_rng(seed)
    for shape in exercise.all_shapes(rng):
        for launch in exercise.launches_for(shape):
            arguments = exercise.inputs(rng, shape)
            yield shape, launch, arguments, as_output(exercise, arguments)


def reject_if_wrong(runs, exercise, watched=None):
    """Reject if a run is wrong. watched: what stopped CUDA C, which may tell why."""
    finding = diagnose(runs, exercise)
    if finding and finding.says == SOMETHING_ELSE:
        reject_mistake(watched, OUTSIDE)
    if finding:
        raise Rejected(finding.reason, finding.says, run=finding.run)


def as_kernel(exercise, answer):
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


def what_it_is(exercise, answer):
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


def is_device_function(kernel):
    """Whether it was made with device=True (numba.cuda and the CPU engine say it differently)."""
    options = getattr(kernel, "targetoptions", {})
    return bool(options.get("device") or getattr(kernel, "device", False) is True)


def parameters(exercise):
    """The parameter names that the answer must take, in order."""
    if exercise.kind == "cuda_c":
        return list(exercise.inputs(np.random.default_rng(0), exercise.shapes[-1]))
    function = getattr(exercise.solution, "py_func", exercise.solution)
    return list(inspect.signature(function).parameters)


def check_arity(function, wanted):
    try:
        inspect.signature(function).bind(*wanted)
    except TypeError:
        has = list(inspect.signature(function).parameters)
        raise Rejected(
            "wrong_arity",
            f"`{function.__name__}({', '.join(has)})` is called with {len(wanted)} arguments: "
            f"`({', '.join(wanted)})`.",
        ) from None


def crashed(stopped, function):
    """A Rejected that shows the one line of the learner's code where it was, and the thread."""
    error, file = stopped.error, function.__code__.co_filename
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:  # made by `exec`
        lines, first = [], 0
    line, inside = getattr(error, "lineno", None), False
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == file:
            inside = inside or first <= number < first + len(lines)
            if inside:  # a device function that it calls may lie elsewhere in the file
                line = number
    if line is None:  # a compiler's message names lines instead
        spoken_of = [int(n) for n in re.findall(r"line (\d+)", str(error))]
        line = next((n for n in reversed(spoken_of) if first <= n < first + len(lines)), None)
    source = linecache.getline(file, line).strip() if line else ""
    where = ""
    if stopped.thread is not None and stopped.block is not None:
        where = f" (thread {stopped.thread} of block {stopped.block})"
    kind = type(error).__name__
    message = getattr(error, "problem", None) or short_message(error)
    if not hasattr(error, "problem") and not message.startswith(kind):
        message = f"{kind}: {message}"
    reason = CRASHES.get(kind, "crashed")
    if kind == "BarrierError" and "mask" in message:
        reason = "warp_mask"
    return Rejected(reason, message + where, code=source)


# Mistakes that the CPU engine itself names -> the reason.
CRASHES = {
    "BarrierError": "barrier",
    "UninitializedError": "uninitialized",
    "KernelIndexError": "out_of_bounds",
}


def short_message(error):
    """The first sentences of a message: Numba's compiler goes on with every failed overload."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Failed in ")]
    rest = ("There are ", "During: ", "File ")
    ends = [n for n, line in enumerate(lines) if line.startswith(rest)]
    return " ".join(lines[: min([*ends, 4])])[:500]


# ---- CUDA C and C++ files


def as_path(exercise, answer):
    """The path of the learner's file, or Rejected."""
    if answer is None or answer is Ellipsis:
        raise Rejected(
            "not_a_kernel",
            f'check() got `{answer}`. Pass the path of your file, "{exercise.path}".',
        )
    if not isinstance(answer, str | Path):
        raise Rejected(
            "not_a_kernel", f'This exercise is a file: pass its path, "{exercise.path}".'
        )
    path = Path(answer)
    if len(str(path).splitlines()) > 1:
        raise Rejected(
            "not_a_kernel",
            "check() got the text of a program. Write it to a file (`%%writefile"
            f' {exercise.path}`), and pass its path, "{exercise.path}".',
        )
    try:
        there = path.is_file()
    except (OSError, ValueError):  # no name of a file
        there = False
    if not there:
        raise Rejected(
            "missing_file",
            f"There is no file `{path}`. Run the cell that writes it (`%%writefile {path}`) first.",
        )
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Rejected(
            "does_not_compile",
            f"`{path}` is no text in UTF-8 from byte {error.start} on. Write it again, with"
            " `%%writefile` or an editor for text.",
        ) from None
    return path


def check_cpp(exercise, answer, seed):
    failure = cpp.run(as_path(exercise, answer), exercise.tests, seed)
    if failure:
        reason, message, code = failure
        raise Rejected(reason, message, code=code)
    return "It compiled, passed its tests on fresh inputs, and the sanitizers found nothing."


def check_cuda_c(exercise, answer, seed):
    path = as_path(exercise, answer)
    trials, special = list(cases(exercise, seed)), special_trials(exercise, seed)
    once = special + large_trial(exercise, seed)
    runs, counts, watched = watch_cuda_c(exercise, path, trials + once, special, seed)
    environments = engines.orders_in_cuda_c(seed, exercise.orders)
    if watched and watched[0] in ("timeout", "too_slow"):  # no second try: it takes as long again
        reject_if_wrong(runs, exercise)
        raise Rejected(*watched)
    counts_of = {id(run.arguments): run.counts for run in runs}
    # All was watched, and nothing found: then the same build serves for the other orders, too.
    whole = len(runs) == len(trials + once) and not watched
    if whole:
        reject_if_wrong(runs, exercise)
        environments = environments[1:]
    else:
        runs = []
    for number, environment in enumerate(environments):
        rng = np.random.default_rng((seed, number))
        name = exercise.kernel_name
        on_cpu = not has_gpu() or engines.FORCE_CPU in environment
        check = whole and on_cpu
        these = trials if whole or number else trials + once
        done, failure = engines.run_cuda_c(path, name, these, rng, environment, check=check)
        mark_special(done, special)
        for run in done:  # what was counted tells more of why this one is wrong
            run.counts = run.counts or counts_of.get(id(run.arguments))
        runs += done
        if failure and failure[0] == "not_checked" and environment is not environments[-1]:
            continue  # no C++ compiler, but there is a GPU
        if failure:
            if failure[0] == "crashed" and any(failed(r, exercise) for r in runs):
                reject_if_wrong(runs, exercise)  # an earlier launch tells more than the crash does
            reject_mistake(failure)
            message, _, code = failure[1].partition("\n")
            raise Rejected(failure[0], message, code=code)
        reject_if_wrong(runs, exercise, watched)
    reject_leaks(runs, path)
    reject_by_counts(runs, exercise)
    reject_cuda_c_that_needs_all_lanes(exercise, path, trials, seed)
    if watched:  # every value is right, but whoever watched the accesses had to stop
        reject_mistake(watched, OUTSIDE)
        raise Rejected(*watched)
    for one, least in zip(counts, least_counts(exercise), strict=False):
        unmet = work.unmet(one, least, exercise)
        if unmet:
            raise Rejected(*unmet)
    if not has_gpu():
        reject_if_nvcc_does(path)
    return tally(runs)


def mark_special(runs, special):
    """Note in each run whether it was one of these trials."""
    theirs = {id(arguments) for _, _, arguments, _ in special}
    for run in runs:
        run.special = id(run.arguments) in theirs


def reject_leaks(runs, path):
    """Reject where a launch left memory of the device's heap behind."""
    for run in runs:
        if run.counts and run.counts["heap"]:
            line = run.counts["heap_line"]
            code = excerpt(path, line).rstrip() if line else ""
            says = "What a kernel has from `malloc` or `new` stays after it: give it back there."
            raise Rejected("leak", f"{says} {run.counts['heap']:,} blocks were left.", code=code)


def reject_by_counts(runs, exercise):
    """Reject what is right, and was stored by several threads, or by one that waited for others."""
    for run in runs:
        if not run.counts:
            continue
        if run.counts["rewrites"] and not exercise.shared_output:
            raise Rejected("duplicate_work", work.STORED_TWICE, run=run)
        if run.counts["polls"] > MOST_POLLS + np.prod(run.launch.threads):
            raise Rejected("other_means", work.WAITS)


def reject_cuda_c_that_needs_all_lanes(exercise, path, trials, seed):
    """Launch where `__activemask()` names a part of the lanes only: a GPU promises no more."""
    if not ASKS_WHO_IS_HERE.search(path.read_text()):
        return
    rng = np.random.default_rng(seed)
    runs, failure = engines.run_cuda_c(path, exercise.kernel_name, trials, rng, LANES_APART)
    if failure and failure[0] == "not_checked":  # a GPU, and no C++ compiler
        return
    if failure or any(failed(run, exercise) for run in runs):
        raise Rejected("warp_mask", WHO_IS_HERE)


def reject_if_nvcc_does(path):
    """Compile with nvcc where it is: it reads C++ in its own way, and knows what each name means.

    The CPU engine refuses only those calls of the host's code that tokens alone tell.
    """
    nvcc = find_nvcc()
    if not nvcc:
        return
    with scratch_folder() as folder:
        command = [nvcc, "-ptx", "-std=c++17", f"-arch={target_arch()}", str(path)]
        try:
            done = process.run([*command, "-o", f"{folder}/kernel.ptx"], timeout=NVCC_SECONDS)
        except process.Timeout:
            return
    error = re.search(r"\((\d+)\): error: (.*)", done.output)
    if done.returncode and error:
        lines = path.read_text().splitlines()
        line = int(error[1]) - 1
        code = lines[line].strip() if line < len(lines) else ""
        raise Rejected(
            "does_not_compile", f"It runs on the CPU, but nvcc says: {error[2]}", code=code
        )


def watch_cuda_c(exercise, path, trials, special, seed):
    """Watch every access of the smaller launches, and of the probes; reject races and the like.

    special: those of the trials that have special numbers. Returns (runs, the Work of each probe,
    None or (reason, message) of what stopped the launches).
    """
    small = [trial for trial in trials if np.prod(trial[1].threads) <= WATCHED_THREADS]
    both = small + probe_trials(exercise)
    rng = np.random.default_rng(seed)
    runs, failure = engines.run_cuda_c(path, exercise.kernel_name, both, rng, ON_CPU, check=True)
    mark_special(runs, special)
    stopped_by_it = failure and failure[0] not in ("too_slow", "not_checked")
    if stopped_by_it and len(runs) < len(small) and small[len(runs)][0] == exercise.large:
        reject_if_only_small(runs, small[len(runs)], exercise)
    reject_mistake(failure)
    if failure and failure[0] == "not_checked":
        if exercise.race_free or not has_gpu():
            raise Rejected(*failure)
        return [], [], None  # no C++ compiler here; only a race needs one, as no GPU notices it
    counts = [work.counted(run.counts, run.launch) for run in runs[len(small) :]]
    return runs[: len(small)], counts, failure


def reject_if_only_small(runs, trial, exercise):
    """Reject where all launches were right until the one with the large arrays."""
    if not any(failed(run, exercise) for run in runs):
        raise Rejected("only_small", large_says(runs, trial[2]))


def special_trials(exercise, seed):
    """Launches with inputs of special numbers, in a list."""
    if exercise.specials == "finite":
        return []
    last = exercise.shapes[-1]
    trials = []
    for shape, launch in ((last, exercise.launches_for(last)[0]), *probes(exercise)[:1]):
        with np.errstate(all="ignore"):
            for arguments in specials.special_inputs(exercise, shape, seed):
                trials.append((shape, launch, arguments, as_output(exercise, arguments)))
    return trials


def large_trial(exercise, seed):
    """Launches with arrays that are larger than what 16 bits can count.

    One has the most threads and, where others have far fewer, one the fewest: then each thread has
    more to do than a limit that somebody wrote in.
    """
    if not exercise.large:
        return []
    launches = exercise.launches_for(exercise.large)
    launches = sorted(launches, key=lambda one: np.prod(one.threads))
    fewest, most = launches[0], launches[-1]
    chosen = [most]
    if 4 * np.prod(fewest.threads) <= np.prod(most.threads):
        chosen.append(fewest)
    arguments = exercise.inputs(np.random.default_rng(seed), exercise.large)
    expected = as_output(exercise, arguments)
    return [(exercise.large, launch, arguments, expected) for launch in chosen]


ON_CPU = {engines.FORCE_CPU: "1"}


def probe_trials(exercise):
    """The probes with inputs that are always the same."""
    trials = []
    for shape, launch in probes(exercise):
        arguments = exercise.inputs(np.random.default_rng(0), shape)
        trials.append((shape, launch, arguments, as_output(exercise, arguments)))
    return trials


@functools.cache
def least_counts(exercise):
    """The Work of the solution, a CUDA C file, in each of the probes."""
    with scratch_folder() as folder:
        path = folder / Path(exercise.path).name
        path.write_text(exercise.solution)
        trials, rng = probe_trials(exercise), np.random.default_rng(0)
        name = exercise.kernel_name
        runs, _ = engines.run_cuda_c(path, name, trials, rng, ON_CPU, check=True)
        return [work.counted(run.counts, run.launch) for run in runs]


def as_output(exercise, arguments):
    """What the output should be after a launch, in the output's type."""
    expected = np.asarray(exercise.reference(**plain(arguments)))
    output = arguments[engines.output_name(arguments)]
    dtype = output.dtype if hasattr(output, "dtype") else output.array.dtype
    return expected.astype(dtype)


OUTSIDE = {"out-of-bounds": "out_of_bounds"}
# Kinds of mistakes that the CPU runtime names in brackets -> the reason.
KINDS = {
    "data-race": "race",
    "uninitialised-shared": "uninitialized",
    "barrier-divergence": "barrier",
    "deadlock": "barrier",
    "lane-not-in-mask": "warp_mask",
}


def reject_mistake(failure, kinds=KINDS):
    """Reject for a mistake that the CPU runtime has named, with its sentence and thread."""
    for part in re.finditer(
        r"([^\n]*) \[([a-z-]+)\](?:\n *(in kernel [^\n]*))?", failure[1] if failure else ""
    ):
        if part[2] in kinds:
            before = failure[1][: part.start()].strip() if part[2] == "deadlock" else ""
            lines = [
                re.sub(r"^.*/", "", line)
                for line in (*before.splitlines(), part[1], part[3] or "")
                if line
            ]
            if re.search(r"this one writes it, and .* writes it", part[1]):
                lines.append(SAME_PLACE)
            in_a_loop = part[2] == "deadlock" and "waits in this loop" in part[0]
            raise Rejected("timeout" if in_a_loop else kinds[part[2]], *lines)


# ---- plain functions


def check_function(exercise, answer, seed):
    """A host function: the same idea without a launch. Values must be equal, of the right type."""
    if not inspect.isfunction(answer):
        what = f"an object of type {type(answer).__name__}"
        if answer is None or answer is Ellipsis:
            what = f"`{answer}`"
        raise Rejected(
            "not_a_kernel",
            f"check() got {what}; it takes the function itself, without parentheses.",
        )
    check_arity(answer, parameters(exercise))
    rng, budget = np.random.default_rng(seed), Budget(EACH_SECONDS, SECONDS)
    calls = [
        one_call(answer, exercise, exercise.inputs(rng, shape), budget)
        for shape in exercise.all_shapes(rng)
    ]
    bad = [one for one in calls if not same(one[2], one[1], exercise.real)]
    if not bad:
        calls += drawn_call(answer, exercise, seed, budget)
        bad = [one for one in calls if not same(one[2], one[1], exercise.real)]
    if bad:
        raise rejected_function(answer.__name__, exercise, calls, bad)
    drawn_too = drawn.CALLS if drawn.drawn_shapes(exercise) is not None else 0
    return f"{len(calls) + drawn_too} calls returned what they should."


def drawn_call(answer, exercise, seed, budget):
    """The smallest call that is wrong among many drawn by what the inputs may be, in a list."""

    def tried(shape, rng):
        return one_call(answer, exercise, exercise.inputs(rng, shape), budget)

    def fails(shape, rng):
        _, expected, got = tried(shape, rng)
        return not same(got, expected, exercise.real)

    smallest = drawn.smallest_failure(exercise, fails, seed, drawn.CALLS)
    if smallest is None:
        return []
    budget = Budget(EACH_SECONDS, SECONDS)  # the search may have used up the first
    return [tried(*smallest)]


def one_call(answer, exercise, arguments, budget):
    """(arguments, expected, what came) of a call."""
    expected = call(exercise.reference, arguments)
    given = copy.deepcopy(list(arguments.values()))
    try:
        with budget.piece():
            got = exercise.play(answer, *given) if exercise.play else answer(*given)
    except Exception as error:
        raise crashed(engines.Stopped(error), answer) from None
    for (name, before), after in zip(arguments.items(), given, strict=True):
        if isinstance(before, list | dict) and before != after:
            raise Rejected("modifies_input", f"`{name}` was {before}, and is now {after}.")
    if exercise.after and same(got, expected, exercise.real):
        unmet = exercise.after(dict(zip(arguments, given, strict=True)), expected)
        if unmet:
            raise Rejected("other_means", unmet)
    return arguments, expected, got


def rejected_function(name, exercise, calls, bad):
    """The Rejected for a function some of whose calls were wrong, with the first of these."""
    arguments, expected, got = bad[0]
    given = ", ".join(f"{parameter}={value}" for parameter, value in arguments.items())
    shown = f"{name}({given})"
    evidence = f"`{shown}` must return {expected}, and returned {got!r}."
    returned = [got for _, _, got in bad]
    if all(value is None for value in returned):
        return Rejected("no_return", f"`{shown}` returned None. Is there a `return`?")
    if not exercise.real and any(map(holds_float, returned)):
        hint = "Whole numbers are needed: `//` divides into whole numbers."
        return Rejected("wrong_dtype", f"{evidence} {hint}")
    hint = no_number(got)
    if hint:
        return Rejected("wrong_dtype", f"{evidence} {hint}")
    for guess in exercise.guesses:
        if explains(guess, calls):
            return Rejected(guess.reason, evidence, guess.says)
    return Rejected("wrong_value", evidence)


def no_number(value):
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


def holds_float(value):
    """Whether a value, or any number in it, is a float."""
    return any(isinstance(part, float) for part in np.ravel(np.array(value, dtype=object)))


def call(function, arguments):
    """What a function returns for copies of the arguments, which it may change."""
    return function(*copy.deepcopy(list(arguments.values())))


def explains(guess, calls):
    """Whether a guess returns what the answer did every time, and what is wrong at least twice."""
    wrong = 0
    for arguments, expected, got in calls:
        output = call(guess.output, arguments)
        if not same(got, output):
            return False
        wrong += not same(output, expected)
    return wrong >= 2


def same(got, expected, real=False):
    """Equal as tuples of ints (a list will do); real: or of floats that are equal to them."""
    try:
        got = as_tuple(got)
    except TypeError:
        return False
    expected = as_tuple(expected)
    return len(got) == len(expected) and all(
        is_number(g, real) and g == e for g, e in zip(got, expected, strict=True)
    )


def is_number(value, real):
    """Whether a value is an int, or perhaps a float; not of a class that can say what it equals."""
    kinds = (int, bool, float) if real else (int, bool)
    scalar = isinstance(value, np.integer | np.bool_) or real and isinstance(value, np.floating)
    return type(value) in kinds or scalar


def as_tuple(value):
    """The numbers of a list, tuple or array; anything else as the only one."""
    return tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,)


def check_triton(exercise, answer, seed):
    """A Triton kernel, on the engine that names mistakes a GPU would make silently."""
    failure = triton_kernels.run(exercise, answer, seed)
    if failure:
        reason, message, code = failure
        raise Rejected(reason, message, code=code)
    says = "Every shape gave the right values, and no program got in another's way."
    return says + triton_kernels.what_was_left_out()


CHECKS = {
    "numba": check_numba,
    "triton": check_triton,
    "cuda_c": check_cuda_c,
    "cpp": check_cpp,
    "function": check_function,
}


# ---- is it still the starter?


def is_starter(exercise, answer):
    """Whether the answer is the starter as given. Texts are compared; nothing is executed."""
    if exercise.in_file:
        try:
            return squeezed(Path(answer).read_text()) == squeezed(exercise.starter)
        except (OSError, TypeError, ValueError):
            return False
    try:
        text = textwrap.dedent(inspect.getsource(getattr(answer, "py_func", answer)))
        return body_of(text) == body_of(exercise.starter)
    except (OSError, TypeError, ValueError, SyntaxError, StopIteration):
        return False


def squeezed(text):
    """Text without `%%` lines and differences in spacing."""
    return " ".join(
        " ".join(line.split()) for line in text.splitlines() if not line.startswith("%%")
    ).strip()


def body_of(source):
    """What the first function of a source does: a syntax tree without its name and line numbers."""
    function = next(
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)
    )
    return ast.dump(function.args) + "".join(map(ast.dump, function.body))
