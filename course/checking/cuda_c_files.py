"""Answers in files are checked: kernels in CUDA C, launched through a child, and tested C++."""

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from course.checking import cpp, engines, work
from course.checking.by_launch import large_says
from course.checking.engines import Failure, Run
from course.checking.evidence import failed
from course.checking.model import Exercise
from course.checking.rejected import (
    ASKS_WHO_IS_HERE,
    OUTSIDE,
    WHO_IS_HERE,
    Rejected,
    reject_if_wrong,
    reject_mistake,
    tally,
)
from course.checking.trials import (
    Trial,
    cases,
    large_trials,
    probe_trials,
    scaled_trials,
    special_trials,
)
from utils import has_gpu
from utils.cpu.cuda_c.cache import cache_folder, hash_of
from utils.engine import FORCE_CPU, target_arch
from utils.files import scratch_folder, write_whole
from utils.tools import process
from utils.tools.diagnostics import excerpt
from utils.tools.toolkit import find_nvcc

#: (runs, what ended them, if anything did)
Launched = tuple[list[Run], Failure | None]
WATCHED_THREADS = 1 << 17  # launches up to this size are searched for races: they are compiled
PATIENCE = 5  # times the usual seconds, for launches with large arrays that took longer
NVCC_SECONDS = 300  # by the clock, for nvcc, which without a GPU has the last word
MOST_POLLS = 64  # besides one for each thread, looks at one place again that may be no waiting
LANES_APART = {FORCE_CPU: "1", "CUDA_CPU_APART": "1"}


def as_path(exercise: Exercise, answer: Any) -> Path:
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


def check_cpp(exercise: cpp.CppExercise, answer: Any, seed: int) -> str:
    failure = cpp.run(as_path(exercise, answer), exercise.tests, seed, exercise.launches)
    if failure:
        reason, message, code = failure
        raise Rejected(reason, message, code=code)
    return "It compiled, passed its tests on fresh inputs, and the sanitizers found nothing."


def check_cuda_c(exercise: Exercise, answer: Any, seed: int) -> str:
    """Say what was tried, or raise Rejected."""
    path = as_path(exercise, answer)
    slip = exercise.slip and exercise.slip(path.read_text(encoding="utf-8"))
    says, proved = slip or ("", "")
    if proved:  # it is not run: it might not end
        raise Rejected(proved, says)
    try:
        return tried_cuda_c(exercise, path, seed)
    except Rejected as rejected:
        if says and rejected.reason in ("race", "timeout"):
            where = [line for line in rejected.lines if line.startswith("in kernel")]
            raise Rejected(rejected.reason, says, *where, code=rejected.code) from None
        raise


def tried_cuda_c(exercise: Exercise, path: Path, seed: int) -> str:
    """Say what was tried, or raise Rejected for what was found when it ran."""
    trials, special = list(cases(exercise, seed)), special_trials(exercise, seed)
    scaled = scaled_trials(exercise, seed)
    once = special + scaled + large_trials(exercise, seed)
    watched, counts, mistake = watch_cuda_c(exercise, path, trials + once, special, scaled, seed)
    if mistake and mistake[0] in ("timeout", "too_slow"):  # no second try: it takes as long again
        reject_if_wrong(watched, exercise)
        raise Rejected(*mistake)
    orders = engines.orders_in_cuda_c(seed, exercise.orders)
    jobs = [(orders[0], trials + once), *((order, trials) for order in orders[1:])]
    runs: list[Run] = []
    # All was watched, and nothing found: then the same build serves for the other orders, too.
    whole = len(watched) == len(trials + once) and not mistake
    if whole:
        reject_if_wrong(watched, exercise)
        runs, jobs = watched, jobs[1:]
    for number, (order, these) in enumerate(jobs):
        rng = np.random.default_rng((seed, number))
        done, failure = launched(exercise, path, these, rng, order, whole)
        mark(done, special, scaled)
        mark_counted(done, watched)
        runs += done
        if failure and failure[0] == "not_checked" and order is not orders[-1]:
            continue  # no C++ compiler, but there is a GPU
        reject_failure(failure, runs, exercise)
        reject_if_wrong(runs, exercise, mistake)
    reject_leaks(runs, path)
    reject_by_counts(runs, exercise)
    reject_if_it_remembers(runs, exercise, path)
    reject_cuda_c_that_needs_all_lanes(exercise, path, trials, seed)
    reject_unmet(mistake, counts, exercise)
    if not has_gpu():
        reject_if_nvcc_does(path)
    return tally(runs)


def launched(
    exercise: Exercise,
    path: Path,
    trials: list[Trial],
    rng: np.random.Generator,
    order: dict[str, str],
    watched: bool,
) -> Launched:
    """(runs, failure or None) of these trials in one order of the threads.

    watched: whether the build that watches every access serves, where it is the CPU engine's.
    """
    on_cpu = not has_gpu() or FORCE_CPU in order
    check, awaited = watched and on_cpu, exercise.awaited if on_cpu else None
    run = runner(exercise, path, check, awaited)
    return patiently(run, exercise, trials, rng, order)


def runner(
    exercise: Exercise, path: Path, check: bool, awaited: Callable | None
) -> Callable[..., Launched]:
    """`engines.run_cuda_c` of these trials, rng and order, and of a patience."""
    name = exercise.kernel_name
    return functools.partial(engines.run_cuda_c, path, name, check=check, waits_for=awaited)


def patiently(
    run: Callable[..., Launched],
    exercise: Exercise,
    trials: list[Trial],
    rng: np.random.Generator,
    order: dict[str, str],
) -> Launched:
    """(runs, failure or None) of run(trials, rng, order), a `runner`.

    Who was stopped only where the arrays are large gets more time: on a slow or busy computer a
    right answer takes long there, too.
    """
    runs, failure = run(trials, rng, order)
    left = trials[len(runs) :]
    if failure and failure[0] == "timeout":
        if not left:  # it was stopped behind its last launch
            return runs, None
        if left[0][0] in exercise.large_shapes:
            more, failure = run(left, rng, order, patience=PATIENCE)
            runs = runs + more
    return runs, failure


def mark(runs: Iterable[Run], special: Sequence[Trial], scaled: Sequence[Trial]) -> None:
    """Note in each run whether it was one of these trials, or one of those."""
    of_special, of_scaled = ({id(trial[2]) for trial in trials} for trials in (special, scaled))
    for run in runs:
        run.special = id(run.arguments) in of_special
        run.scaled = id(run.arguments) in of_scaled


def mark_counted(runs: Iterable[Run], watched: Iterable[Run]) -> None:
    """Note in each run what was counted when it was watched: it tells more of why it is wrong."""
    counts_of = {id(run.arguments): run.counts for run in watched}
    for run in runs:
        run.counts = run.counts or counts_of.get(id(run.arguments))
        if run.counts:
            run.most_of_one_thread = engines.most_of_one_thread(run)


def reject_failure(failure: Failure | None, runs: list[Run], exercise: Exercise) -> None:
    """Reject for what ended the launches, unless an earlier launch tells more."""
    if not failure:
        return
    if failure[0] == "crashed" and any(failed(run, exercise) for run in runs):
        reject_if_wrong(runs, exercise)
    reject_mistake(failure, exercise=exercise)
    message, _, code = failure[1].partition("\n")
    raise Rejected(failure[0], message, code=code)


def reject_unmet(mistake: Failure | None, counts: Iterable[work.Work], exercise: Exercise) -> None:
    """Reject right values that were computed in another way than the task asks for.

    mistake: what stopped whoever watched the accesses, if anything did.
    """
    if mistake:
        reject_mistake(mistake, OUTSIDE)
        raise Rejected(*mistake)
    for one, least in zip(counts, least_counts(exercise), strict=False):
        unmet = work.unmet(one, least, exercise)
        if unmet:
            raise Rejected(*unmet)


def reject_leaks(runs: Iterable[Run], path: Path) -> None:
    """Reject where a launch left memory of the device's heap behind."""
    for run in runs:
        if run.counts and run.counts["heap"]:
            line = run.counts["heap_line"]
            code = excerpt(path, line).rstrip() if line else ""
            says = "What a kernel has from `malloc` or `new` stays after it: give it back there."
            raise Rejected("leak", f"{says} {run.counts['heap']:,} blocks were left.", code=code)


def reject_by_counts(runs: Iterable[Run], exercise: Exercise) -> None:
    """Reject what is right, and was stored by several threads, or by one that waited for others."""
    for run in runs:
        if not run.counts:
            continue
        if run.counts["rewrites"] and not exercise.shared_output:
            raise Rejected("duplicate_work", work.STORED_TWICE, run=run)
        polls = 0 if exercise.waits else run.counts["polls"]
        if polls > MOST_POLLS + np.prod(run.launch.threads):
            raise Rejected("other_means", work.WAITS)


REMEMBERS = (
    "A `__device__` variable holds something else after each launch, of the same work, too. What a"
    " launch computes must come of its arguments alone."
)


def reject_if_it_remembers(runs: Iterable[Run], exercise: Exercise, path: Path) -> None:
    """Reject where each of the same launches leaves something else in a device variable.

    What is written there anew, or put back at the end, is the same each time.
    """
    if not any(run.counts and run.counts["lasting"] for run in runs):
        return
    trials, rng = 2 * probe_trials(exercise), np.random.default_rng(0)
    again, _ = engines.run_cuda_c(path, exercise.kernel_name, trials, rng, ON_CPU, check=True)
    left = [engines.counts_of(run)["lasting"] for run in again[-1 :: -len(trials) // 2]]
    if len(set(left)) > 1:
        raise Rejected("remembers", REMEMBERS)


def reject_cuda_c_that_needs_all_lanes(
    exercise: Exercise, path: Path, trials: list[Trial], seed: int
) -> None:
    """Launch where `__activemask()` names a part of the lanes only: a GPU promises no more."""
    if not ASKS_WHO_IS_HERE.search(path.read_text()):
        return
    rng = np.random.default_rng(seed)
    runs, failure = engines.run_cuda_c(path, exercise.kernel_name, trials, rng, LANES_APART)
    if failure and failure[0] == "not_checked":  # a GPU, and no C++ compiler
        return
    if failure or any(failed(run, exercise) for run in runs):
        raise Rejected("warp_mask", WHO_IS_HERE)


def reject_if_nvcc_does(path: Path) -> None:
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


def watch_cuda_c(
    exercise: Exercise,
    path: Path,
    trials: list[Trial],
    special: list[Trial],
    scaled: list[Trial],
    seed: int,
) -> tuple[list[Run], list[work.Work], Failure | None]:
    """Watch every access of the smaller launches, and of the probes; reject races and the like.

    special, scaled: those of the trials that have such numbers. Returns (runs, the Work of each
    probe, None or (reason, message) of what stopped the launches).
    """
    small = [trial for trial in trials if np.prod(trial[1].threads) <= WATCHED_THREADS]
    both = small + probe_trials(exercise)
    rng = np.random.default_rng(seed)
    name, awaited = exercise.kernel_name, exercise.awaited
    run = runner(exercise, path, True, awaited)
    runs, failure = patiently(run, exercise, both, rng, ON_CPU)
    if awaited and failure and failure[0] == "timeout":  # unwatched, a kernel has no copies
        once, again = both[len(runs) : len(runs) + 1], functools.partial(engines.run_cuda_c, path)
        failure = again(name, once, rng, ON_CPU, waits_for=awaited)[1] or failure
    mark(runs, special, scaled)
    stopped_by_it = failure and failure[0] not in ("too_slow", "not_checked")
    if stopped_by_it and len(runs) < len(small) and small[len(runs)][0] in exercise.large_shapes:
        reject_if_only_small(runs, small[len(runs)], exercise)
    reject_mistake(failure, exercise=exercise, source=Path(path).read_text())
    if failure and failure[0] == "not_checked":
        if exercise.race_free or not has_gpu():
            raise Rejected(*failure)
        return [], [], None  # no C++ compiler here; only a race needs one, as no GPU notices it
    probed = runs[len(small) :]
    counts = [work.counted(engines.counts_of(run), run.launch) for run in probed]
    return runs[: len(small)], counts, failure


def reject_if_only_small(runs: list[Run], trial: Trial, exercise: Exercise) -> None:
    """Reject where all launches were right until the one with the large arrays."""
    if not any(failed(run, exercise) for run in runs):
        raise Rejected("only_small", large_says(runs, trial[2]))


ON_CPU = {FORCE_CPU: "1"}


@functools.cache
def least_counts(exercise: Exercise) -> list[work.Work]:
    """The Work of the solution, a CUDA C file, in each of the probes."""
    trials, rng = probe_trials(exercise), np.random.default_rng(0)
    path, name = solution_file(exercise), exercise.kernel_name
    runs, _ = engines.run_cuda_c(path, name, trials, rng, ON_CPU, check=True)
    return [work.counted(engines.counts_of(run), run.launch) for run in runs]


def solution_file(exercise: Exercise) -> Path:
    """The solution's file, among what is built: the same one each time, so it is built once."""
    text = str(exercise.solution)
    path = cache_folder() / "solutions" / hash_of(text) / Path(exercise.path).name
    if not path.is_file():
        write_whole(path, text)
    return path
