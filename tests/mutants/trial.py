"""One answer's outcome, in a process of its own: it may hang, exit, or fill the memory."""

import linecache
import multiprocessing
import os
import re
import resource
import tempfile
from pathlib import Path

from course.checking import checker, drawn, engines
from course.checking.checker import check_answer

SECONDS = 120  # by the clock, until a trial is ended from outside
MOST_BYTES = 2 << 30  # of memory that a trial may use beside what is there already


def warm_up(exercise):
    """Count the solution's own work here, once, and not in each of the trials."""
    if exercise.kind == "numba":
        checker.least_work(exercise)
    if exercise.kind == "cuda_c":
        checker.least_counts(exercise)


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
    return outcome


def hand_in(exercise, source, folder, sender):
    """Send status and reason of the check; what the answer prints goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, most))
    checker.EACH_SECONDS = 2
    engines.LAUNCH_SECONDS = 2
    drawn.CALLS = 40
    tempfile.tempdir = folder
    answer = as_answer(exercise, source, folder)
    outcome = check_answer(exercise, answer, seed=0)
    sender.send((outcome.status, outcome.reason))


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
