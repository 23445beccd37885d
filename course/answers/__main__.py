"""``python -m course.answers FOLDER``, or ``make answers DIR=FOLDER``: check what a class handed
in; see `course.answers`.
"""

import argparse
import sys
from pathlib import Path

from course.answers import collecting, grading, sandbox, tables

OUT = Path("build/answers")


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course.answers")
    parser.add_argument("folder", type=Path, help="a file or a folder for each learner")
    parser.add_argument("--out", type=Path, default=OUT, help="where the tables go")
    parser.add_argument("--roster", type=Path, help="Moodle's or Canvas' CSV, to be filled in")
    parser.add_argument("--only", nargs="*", default=[], help="chapters or exercises that count")
    options = parser.parse_args(arguments)
    try:
        learners = collecting.collect(options.folder)
        wanted = grading.chosen(learners, options.only)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not wanted:
        print(f"{options.folder} holds no answers: notebooks (.ipynb) or answers_NAME.json")
        return 1
    _say_how(learners, wanted)
    results = grading.graded(learners, wanted, lambda line: print(line, flush=True))
    _write(options, results, wanted)
    return 0


def _say_how(learners, wanted):
    print(f"{len(learners)} learners, {len(wanted)} exercises, each answer in a process of its own")
    if not sandbox.own_namespaces():
        print(
            "This machine gives processes no namespaces of their own (unshare): an answer could "
            "signal your other processes and use the network. In doubt check in a container."
        )


def _write(options, results, wanted):
    """Write the tables, and say what is in them."""
    ids = list(wanted)
    found = grading.alike(results, wanted)
    tables.write(options.out / "learners.csv", tables.of_learners(results, ids))
    rows = tables.of_exercises(results, ids, grading.sentence)
    tables.write(options.out / "exercises.csv", rows)
    tables.write(options.out / "look_alikes.csv", tables.of_alikes(found))
    print("\nWhere most are stuck:")
    for line in tables.stuck(results, ids, grading.sentence):
        print(f"  {line}")
    for alike in found:
        print(f"look alike: {alike.exercise}: {', '.join(alike.learners)} ({alike.how})")
    for result in results:
        for line in result.look_at():
            print(f"look at: {result.learner.label}: {line}")
    if options.roster:
        _fill(options, results, ids)
    print(f"\nlearners.csv, exercises.csv and look_alikes.csv are in {options.out}")


def _fill(options, results, ids):
    """Fill in the learning management system's own file."""
    points = {(r.learner.name, r.learner.id): r.solved(ids) for r in results}
    try:
        text, missing = tables.filled(options.roster, points, len(ids))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return
    path = options.out / f"filled_{options.roster.name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    print(f"{path} has the points; not listed in it: {', '.join(missing) or 'nobody'}")


if __name__ == "__main__":
    sys.exit(main())
