"""Is an answer right where it cannot reach its check? Asked of every answer that its check accepts.

A check runs in the process that the answer is in, so the answer may have written the verdict. Here
a copy of the process that checks loads the answer and computes its results for fresh inputs, and no
more; the results come back as bytes, and are compared in the process that no learner's code ever
ran in. What the copy knows of the exercise the learner can read, too: only the comparison must be
out of reach. The judge of `course.judge` says what is drawn, sent and compared.

Only results are compared. How they are made (few accesses, barriers, given means, speed) stays the
check's word.
"""

import dataclasses
import functools
import importlib
import os
import socket
from collections.abc import Callable

from course import exercises
from course.checking.checker import fresh_seed
from course.judge import handed_in, judging, of_exercises, right, sandbox, worker
from course.judge.report import Reason

SECONDS = 30  # of CPU time for a call
LOADING = 400  # seconds by the clock, to build CUDA C on a busy machine
CHANNEL = 3  # the only descriptor that a copy has, besides the first three
MOST_DESCRIPTORS = 1 << 16


@functools.cache
def possible(id: str) -> bool:
    """Whether an exercise's results can be compared apart: it is a function of numbers, arrays and
    lists of these.
    """
    return of_exercises.can_be_judged(exercises.EXERCISES[id])


def get_ready(tasks: list[dict]) -> None:
    """Import here what each copy would import anew."""
    kinds = {exercises.EXERCISES[task["exercise"]].kind for task in tasks}
    for module in handed_in.OFTEN["triton"] if "triton" in kinds else ():
        importlib.import_module(module)


def contradiction(task: dict, confine: Callable[[], None]) -> Reason | None:
    """What is wrong with an answer's results; None for nothing.

    task: as `course.answers.judging` has it. confine: called in the copy, before the answer is
    loaded.
    """
    exercise = exercises.EXERCISES[task["exercise"]]
    asked = of_exercises.Task(exercise)
    entry = task["name"] or asked.demands.entry
    demands = dataclasses.replace(asked.demands, entry=entry, seconds=SECONDS)
    given = handed_in.of_text(task["source"], "answer.py" if task["name"] else "answer.cu")
    with sandbox.Sandbox((), SECONDS, copies=Copies(confine)) as box:
        reasons = judging.loaded(box, given, demands, watched=False, patience=LOADING)
        if not reasons:
            trials = right.Trials(box, asked.reference, asked.inputs, demands, fresh_seed())
            trials.ordinary()
            reasons = trials.reasons
    return next(iter(reasons), None)


class Copies:
    """Copies of this very process, in place of the judge's nursery."""

    def __init__(self, confine: Callable[[], None]):
        self.confine = confine

    def copy(self, scratch: str) -> tuple[int, socket.socket]:
        """(process id, socket) of a new copy that works in a folder."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            try:
                os.dup2(theirs.detach(), CHANNEL)
                os.closerange(CHANNEL + 1, MOST_DESCRIPTORS)
                self.confine()
                worker.serve(socket.socket(fileno=CHANNEL), scratch)
            finally:
                os._exit(0)
        theirs.close()
        return pid, ours

    def end(self, pid: int, lost: bool = False) -> int:
        """End a copy: its exit status."""
        return worker.ended(pid, lost)
