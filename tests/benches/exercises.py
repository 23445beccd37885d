"""How long a check takes, exercise by exercise:  python -m tests.benches.exercises [ID ...]

CPU seconds of this process and of the children that it started, for checking the solution. A busy
machine makes a check wait, not work, so this is what can be compared. Nothing is asserted.
"""

import os
import statistics
import sys
import tempfile

from course import exercises
from course.exercises import solution_source


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
            file.write(solution_source(exercise))
    begin = cpu_seconds()
    outcome = exercises.check(exercise.id, answer)
    seconds = cpu_seconds() - begin
    if not outcome.solved:
        raise RuntimeError(f"{exercise.id}: the solution is not accepted\n{outcome!r}")
    return seconds


def main(ids) -> None:
    wanted = ids or exercises.EXERCISES
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUDA_COURSE_PROGRESS"] = os.path.join(folder, "progress.json")
        taken = {id: seconds_of_check(exercises.EXERCISES[id], folder) for id in wanted}
    for id, seconds in sorted(taken.items(), key=lambda pair: pair[1]):
        print(f"{id:40}{seconds:8.2f} s")
    print(f"{'median':40}{statistics.median(taken.values()):8.2f} s")
    print(f"{'longest':40}{max(taken.values()):8.2f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
