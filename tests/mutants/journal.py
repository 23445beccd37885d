"""What became of each mutant, kept as it comes: a run that is stopped goes on where it was.

The journal has a line of JSON per mutant, the summary written from it an entry per exercise. Both
lie among what is built: nothing that git watches changes.
"""

import collections
import hashlib
import json
from datetime import date

from utils.files import ROOT, write_whole

JOURNAL = ROOT / "build" / "mutants.jsonl"
SUMMARY = ROOT / "build" / "mutants.json"
#: These are tried again by the next run: a check may have become stronger.
OPEN = ("solved", "no outcome")


def key_of(exercise, source):
    """A name of an exercise's mutant that changes when its text does."""
    return f"{exercise.id} {hashlib.sha256(source.encode()).hexdigest()[:16]}"


def known(path=JOURNAL):
    """Key -> the last entry of each mutant that was tried."""
    if not path.is_file():
        return {}
    lines = path.read_text().splitlines()
    entries = (json.loads(line) for line in lines if line.endswith("}"))
    return {entry["key"]: entry for entry in entries}


def note(exercise, says, source, outcome, path=JOURNAL):
    """Add the entry of a mutant that was tried to the journal, and return it."""
    status, reason = outcome
    entry = {
        "key": key_of(exercise, source),
        "exercise": exercise.id,
        "says": says,
        "status": status,
        "reason": reason,
        "day": date.today().isoformat(),
    }
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")
    return entry


def summarize(exercises, entries, path=SUMMARY):
    """Write how many mutants of each exercise were tried, when, and what became of them.

    Exercises without an entry keep what is written of them.
    """
    before = json.loads(path.read_text()) if path.is_file() else {}
    by_exercise = collections.defaultdict(list)
    for entry in entries:
        by_exercise[entry["exercise"]].append(entry)
    summary = {}
    for exercise in exercises:
        if by_exercise[exercise.id]:
            summary[exercise.id] = of_exercise(exercise, by_exercise[exercise.id])
        elif exercise.id in before:
            summary[exercise.id] = before[exercise.id]
    path.parent.mkdir(exist_ok=True)
    write_whole(path, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def of_exercise(exercise, entries):
    """The summary of one exercise: counts, the last day, and those that were accepted."""
    statuses = collections.Counter(entry["status"] for entry in entries)
    reasons = collections.Counter(entry["reason"] for entry in entries if entry["reason"])
    left = sorted(entry["says"] for entry in entries if entry["status"] in OPEN)
    return {
        "kind": exercise.kind,
        "tried": len(entries),
        "day": max(entry["day"] for entry in entries),
        **dict(sorted(statuses.items())),
        "reasons": dict(sorted(reasons.items())),
        **({"accepted": left} if left else {}),
    }
