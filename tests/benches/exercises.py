"""How long checks take, and what they leave in memory:  python -m tests.benches.exercises [ID ...]

CPU seconds of this process and of the children that it started, for checking the solution. A busy
machine makes a check wait, not work, so this is what can be compared. Then CHECKS of them, one
after another as in a notebook that is open all day, and by how much this process has grown; what
is imported by the first check of each kind, and by each that uses PyTorch, is left out. Nothing is
asserted.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time

import psutil

from course import exercises
from course.exercises import solution_source

versions = itertools.count(time.time_ns())
CHECKS = 200
MEGABYTE = 1e6


def cpu_seconds() -> float:
    """CPU time of this process and of its ended children so far, in seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def seconds_of_check(exercise, folder) -> float:
    """CPU seconds of one check of the exercise's own solution."""
    answer = exercise.solution
    if exercise.in_file:
        answer = os.path.join(folder, os.path.basename(exercise.path))
        with open(answer, "w", encoding="utf-8") as file:
            # another text each time, as a learner's: what was built before must not serve
            file.write(f"{solution_source(exercise)}\n// {next(versions)}\n")
    begin = cpu_seconds()
    outcome = exercises.check(exercise.id, answer)
    repr(outcome), outcome._repr_html_()
    seconds = cpu_seconds() - begin
    if not outcome.solved:
        raise RuntimeError(f"{exercise.id}: the solution is not accepted\n{outcome!r}")
    return seconds


def measured(ids, folder) -> tuple[dict, float]:
    """(id -> CPU seconds of its fastest check, megabytes by which this process has grown)."""
    taken, kinds = {}, {}
    for id in ids:
        kind = exercises.EXERCISES[id].kind
        kinds.setdefault((kind, id) if kind == "torch" else kind, id)
    for id in kinds.values():
        taken[id] = seconds_of_check(exercises.EXERCISES[id], folder)
    # first: to count all exercises is to load them, PyTorch too
    checks = max(CHECKS, len(ids)) if len(ids) == len(exercises.EXERCISES) else len(ids)
    begin = psutil.Process().memory_info().rss
    for id in itertools.islice(itertools.cycle(ids), checks):
        seconds = seconds_of_check(exercises.EXERCISES[id], folder)
        taken[id] = min(seconds, taken.get(id, seconds))
    return taken, (psutil.Process().memory_info().rss - begin) / MEGABYTE


def main(ids) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUDA_COURSE_PROGRESS"] = os.path.join(folder, "progress.json")
        taken, grown = measured(ids or list(exercises.EXERCISES), folder)
    for id, seconds in sorted(taken.items(), key=lambda pair: pair[1]):
        print(f"{id:40}{seconds:8.2f} s")
    print(f"{'median':40}{statistics.median(taken.values()):8.2f} s")
    print(f"{'longest':40}{max(taken.values()):8.2f} s")
    print(f"{'grown':40}{grown:8.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
