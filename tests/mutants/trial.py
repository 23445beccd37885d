"""One answer's outcome, in a process of its own: it may hang, exit, or fill the memory."""

import linecache
import multiprocessing
import os
import re
import tempfile
from pathlib import Path

from course.checking import checker, drawn
from course.checking.checker import check_answer

SECONDS = 60  # by the clock, until a trial is ended from outside


def outcome_of(exercise, source):
    """The status of an answer given as text: "solved", "not yet", "broken" or "no outcome"."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=hand_in, args=(exercise, source, sender), daemon=True)
    process.start()
    sender.close()
    status = "no outcome"
    try:
        if receiver.poll(SECONDS):
            status = receiver.recv()
    except EOFError:
        pass
    process.kill()
    process.join()
    return status


def hand_in(exercise, source, sender):
    """Send the status of the check; what the answer prints goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    checker.SECONDS = 3
    drawn.CALLS = 40
    with tempfile.TemporaryDirectory() as folder:
        answer = as_answer(exercise, source, folder)
        sender.send(check_answer(exercise, answer, seed=0).status)


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
