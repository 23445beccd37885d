"""Hand in mutants of the solutions:  python -m tests.mutants [--every N] [ID or a part of one ...]

--every N: each N-th mutant only. Prints each survivor, and the numbers; ends with status 1 where
one is left that equivalents.json does not name.
"""

import argparse
import collections
import json
import sys
from pathlib import Path

from course import exercises
from tests.mutants import cpp, python
from tests.mutants.trial import outcome_of

EQUIVALENTS = json.loads(Path(__file__).with_name("equivalents.json").read_text())


def mutants_of(exercise):
    """(what was changed, source) of each mutant of an exercise's solution."""
    source = exercises.solution_source(exercise)
    maker = cpp if exercise.in_file else python
    return list(maker.mutants(source))


def tried(exercise, every):
    """(what was changed, status) of each every-th mutant."""
    for says, source in mutants_of(exercise)[::every]:
        yield says, outcome_of(exercise, source)


def is_equivalent(exercise, says):
    """Why a mutant does what the solution does, or None."""
    return EQUIVALENTS.get(exercise.id, {}).get(says)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    counts, left = collections.Counter(), []
    for exercise in exercises.EXERCISES.values():
        if given.ids and not any(part in exercise.id for part in given.ids):
            continue
        for says, status in tried(exercise, given.every):
            if status == "solved" and is_equivalent(exercise, says):
                status = "equivalent"
            counts[status] += 1
            if status == "solved":
                left.append((exercise.id, says))
                print(f"{exercise.id}: {says}", flush=True)
    print(f"{counts.total():,} mutants:", ", ".join(f"{n:,} {name}" for name, n in counts.items()))
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
