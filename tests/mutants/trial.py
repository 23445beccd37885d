"""One answer's outcome, in a process of its own: it may hang, exit, or fill the memory."""

import itertools
import linecache
import multiprocessing
import os
import re
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from course.checking import apart, checker, cuda_c_files, drawn, engines, limits, typing
from course.checking.diagnose import diagnose
from course.checking.evidence import failed
from course.checking.limits import TooLong, print_limit, time_limit
from course.checking.model import BROKEN
from course.checking.rejected import crashed
from course.checking.trials import cases

SECONDS = 300  # by the clock, until a trial is ended from outside
EACH_SECONDS = 2  # of CPU time, for one launch or call
MOST_BYTES = 2 << 30  # of memory that a trial may use beside what is there already
FEW = 6  # launches of a file that are tried before all
#: How much is drawn in a trial, as names in course/checking/drawn.py have it
DRAWN = {"CALLS": 40}
#: and by `make test`, which tries one order of the threads
DRAWN_BY_DAY = {"CALLS": 30, "LAUNCHES": 2}


def warm_up(exercise):
    """Do here, once, and not in each of the trials, what every check needs.

    That is Hypothesis, numba-cuda's compiler and the solution's own work, counted.
    """
    checker.prepare(exercise)
    if exercise.kind == "cuda_c":
        cuda_c_files.least_counts(exercise)


def outcome_of(exercise, source):
    """(status, reason) of an answer given as text; status: as of `Outcome`, or "no outcome"."""
    with tempfile.TemporaryDirectory() as folder:  # ours: a trial that is killed removes nothing
        return outcome_in(folder, exercise, source)


def outcome_in(folder, exercise, source):
    """The same, with a folder for the answer's file and for whatever else the trial writes."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=hand_in, args=(exercise, source, folder, sender), daemon=True)
    process.start()
    sender.close()
    outcome = "no outcome", ""
    try:
        if receiver.poll(SECONDS):
            outcome = receiver.recv()
    except EOFError:
        pass
    process.kill()
    process.join()
    if outcome[0] == "no outcome" and exercise.kind == "numba":
        typing.compiler.forget()  # it may have been asked, and not have answered
        warm_up(exercise)
    return outcome


def hand_in(exercise, source, folder, sender):
    """Send status and reason of the check; what the answer prints goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    if exercise.kind != "cpp":  # the sanitizers map terabytes, and have a limit of their own
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (apart.memory() + MOST_BYTES, most))
    limits.EACH_SECONDS = EACH_SECONDS
    engines.LAUNCH_SECONDS = EACH_SECONDS
    vars(drawn).update(DRAWN)
    tempfile.tempdir = folder
    answer = as_answer(exercise, source, folder)
    first = FIRST.get(exercise.kind, lambda exercise, answer: None)
    sender.send(first(exercise, answer) or whole_outcome(exercise, answer))


def whole_outcome(exercise, answer):
    """(status, reason) of the check itself; a kernel needs no second copy of this process."""
    if exercise.kind == "numba":
        outcome, _ = checker.outcome_of(exercise, answer, seed=0)
    else:
        outcome = checker.check_answer(exercise, answer, seed=0)
    return outcome.status, outcome.reason


def first_failure(exercise, kernel):
    """(status, reason) of the first launch that goes wrong, or None.

    The check starts with the same launches, and goes on after the first that is wrong: it looks
    for what they have in common. A mutant is rejected by one.
    """
    for number, case in enumerate(cases(exercise, 0)):
        rng, begin = np.random.default_rng((0, number)), time.process_time()
        try:
            with print_limit(), time_limit(EACH_SECONDS):
                run = engines.run_watched(kernel, *case, rng, None, exercise.always)
        except engines.Stopped as stopped:
            return with_status(crashed(stopped, kernel.py_func).reason)
        except TooLong:
            waited = time.process_time() - begin < EACH_SECONDS  # for its turn on this machine
            return None if waited else with_status("timeout")
        if failed(run, exercise):
            finding = diagnose([run], exercise)
            return finding and with_status(finding.reason)
    return None


def first_failure_in_c(exercise, path):
    """The same of the first few launches of a file, where they end and leave something wrong."""
    trials = itertools.islice(cases(exercise, 0), FEW)
    small = [each for each in trials if np.prod(each[1].threads) <= cuda_c_files.WATCHED_THREADS]
    rng = np.random.default_rng(0)
    runs, failure = engines.run_cuda_c(
        path, exercise.kernel_name, small, rng, cuda_c_files.ON_CPU, check=True
    )
    wrong = [run for run in runs if failed(run, exercise)]
    finding = None if failure or not wrong else diagnose(wrong, exercise)
    return finding and with_status(finding.reason)


FIRST = {"numba": first_failure, "cuda_c": first_failure_in_c}


def with_status(reason):
    """(status, reason) of an Outcome with this reason."""
    return "broken" if reason in BROKEN else "not yet", reason


def as_answer(exercise, source, folder):
    """What a learner hands in: the path of a file, else the last function of the text."""
    if exercise.in_file:
        path = Path(folder) / Path(exercise.path).name
        path.write_text(source)
        return path
    solution = getattr(exercise.solution, "py_func", exercise.solution)
    filename = f"<mutant of {exercise.id}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    namespace = dict(solution.__globals__)
    exec(compile(source, filename, "exec"), namespace)
    return namespace[re.findall(r"^def (\w+)", source, re.M)[-1]]
