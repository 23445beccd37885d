"""Hand in mutants of the solutions:  python -m tests.mutants [--every N] [ID or a part of one ...]

--every N: each N-th mutant only. --kind: only exercises of this kind. --draw N: so many of them,
by chance, as --seed S has it. --days N: those whose turn is today, each one every N days.
--afresh: those again that were tried before, too. --known: only those that were tried before, and
of these the accepted ones again. --by-day: as `make test` hands them in, in one order of the
threads, with fewer inputs drawn and CUDA C built as by day; what it rejects is rejected at night,
too. Prints each mutant that is accepted, the numbers, and in one line whether all were found; ends
with status 1 where one is left that equivalents.json does not name. A run over all mutants of an
exercise writes what became of them into build/mutants.json.

To change the solution in course/exercises in the same way fails `make test` wherever a mutant is
rejected here: its test_solution_passes hands the solution to the same check.
"""

import argparse
import collections
import dataclasses
import json
import os
import random
import sys
import tempfile
from datetime import date
from pathlib import Path

from course import exercises
from tests import tiers
from tests.mutants import cpp, journal, python, trial
from tests.mutants.trial import outcome_of, warm_up

#: An outcome of a check, in the words that are used of mutants
WORDS = {"not yet": "rejected", "broken": "rejected (did not run)", "solved": "accepted"}
EQUIVALENTS = json.loads(Path(__file__).with_name("equivalents.json").read_text())


def mutants_of(exercise):
    """(what was changed, source) of each mutant of an exercise's solution."""
    source = exercises.solution_source(exercise)
    maker = cpp if exercise.in_file else python
    return list(maker.mutants(source))


def tried(exercise, every, before, only_known):
    """The journal's entry of each every-th mutant; those in `before` are not tried again.

    But for those that were accepted and are not equivalent: checks become stronger.
    """
    warm = False
    for says, source in mutants_of(exercise)[::every]:
        entry = before.get(journal.key_of(exercise, source))
        if entry is None and only_known:
            continue
        if entry is None or named({**entry, "says": says})["status"] in journal.OPEN:
            if not warm:
                warm_up(exercise)
                must_be_solved(exercise)
                warm = True
            entry = journal.note(exercise, says, source, outcome_of(exercise, source))
        yield {**entry, "says": says}
    if warm:
        must_be_solved(exercise)  # where it is not, the machine has broken the mutants, too


def must_be_solved(exercise):
    """Raise RuntimeError if a trial breaks the solution: then it would break every mutant."""
    outcome = outcome_of(exercise, exercises.solution_source(exercise))
    if outcome[0] != "solved":
        raise RuntimeError(f"{exercise.id}: the solution is {outcome}")


def named(entry):
    """The entry, "equivalent" where equivalents.json says why it does what the solution does."""
    reasons = EQUIVALENTS.get(entry["exercise"], {})
    if entry["status"] == "solved" and entry["says"] in reasons:
        return {**entry, "status": "equivalent"}
    return entry


def arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--kind")
    parser.add_argument("--draw", type=int)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--days", type=int)
    parser.add_argument("--afresh", action="store_true")
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--by-day", action="store_true")
    return parser.parse_args()


def chosen(given, day):
    """The exercises that the command line asks for; `day`: today's number, any count of days."""
    of_kind = [e for e in exercises.EXERCISES.values() if given.kind in (None, e.kind)]
    named = [e for e in of_kind if not given.ids or any(part in e.id for part in given.ids)]
    if given.days:
        named = named[day % given.days :: given.days]
    if given.draw:
        named = random.Random(given.seed).sample(named, min(given.draw, len(named)))
        print(f"--seed {given.seed}:", " ".join(exercise.id for exercise in named), flush=True)
    return named


def main():
    given = arguments()
    before = {} if given.afresh else journal.known()
    entries = []
    if given.by_day:
        trial.DRAWN.update(trial.DRAWN_BY_DAY)
        os.environ.setdefault(tiers.OPTIMIZE, tiers.OPTIMIZE_BY_DAY)
    for exercise in chosen(given, date.today().toordinal()):
        if given.by_day:
            exercise = dataclasses.replace(exercise, orders=1)
        for entry in map(named, tried(exercise, given.every, before, given.known)):
            entries.append(entry)
            if entry["status"] in journal.OPEN:
                print(f"{exercise.id}: {entry['says']} ({in_words(entry['status'])})", flush=True)
    finish(entries, whole=given.every == 1 and not given.known)


def in_words(status):
    """What a mutant's status is called in what is printed."""
    return WORDS.get(status, status)


def finish(entries, whole):
    """Say what came of all, in the end in one line; keep the summary where all were tried."""
    counts = collections.Counter(entry["status"] for entry in entries)
    said = ", ".join(f"{n:,} {in_words(status)}" for status, n in counts.items())
    print(f"{counts.total():,} mutants:", said or "none was tried")
    if whole:
        journal.summarize(exercises.EXERCISES.values(), entries)
    left = sum(counts[status] for status in journal.OPEN)
    verdict = f"{left:,} not found" if left else "all found, or known to be equivalent"
    of_exercises = len({entry["exercise"] for entry in entries})
    print(f"{of_exercises} exercises, {counts.total():,} mutants: {verdict}")
    sys.exit(left > 0)


if __name__ == "__main__":
    # what is built for the mutants is of no use to anybody later
    with tempfile.TemporaryDirectory(prefix="cuda-course-") as cache:
        os.environ["CUDA_COURSE_CACHE"] = cache
        main()
