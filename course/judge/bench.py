"""A leaderboard of checkers: how many cheats does each accept, and how many right answers refuse?

    python -m course.judge.bench [--right N] [--json FILE]

Over the bank (its patterns that need no GPU, and the envelopes that are wrong or cheat) and over
right answers: the bank's envelopes, and for our judge those of strangers, of operations as public
task sets order them and of the course's exercises, too. `--right N` takes every N-th of these. What
is printed goes into assets/judges.json.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from course.judge import bank, judge, of_exercises, tasks
from course.judge.bank.operations import operations
from course.judge.bank.tasks import ORDER, TASKS
from course.judge.other_checkers import TRIALS
from utils import results
from utils.files import ROOT, write_whole

FILE = ROOT / "assets" / "judges.json"
RIGHT_ANSWERS = ROOT / "tests" / "course" / "exercises" / "answers" / "right.txt"
SECONDS = 120
TOLD = 25  # after so many right answers a line is printed
WRONG = ("wrong", "cheating")


def cheats():
    """(name, path, task, entry) of what must be refused."""
    for one in bank.patterns():
        if one.needs == "nothing":
            yield one.key, one.path, TASKS[one.task], "candidate"
    for one in bank.envelopes():
        if one.verdict in WRONG:
            yield f"envelope {one.number}", one.path, ORDER, "softmax"


def right_ones():
    """The same of what must not be refused."""
    for one in bank.envelopes():
        if one.verdict not in WRONG:
            yield f"envelope {one.number}", one.path, ORDER, "softmax"


def by_ours(path, task, entry) -> bool:
    """Whether our judge accepts a submission."""
    demands = replace(task.demands, entry=entry)
    return judge(path, task.reference, task.inputs, demands, seed=1).verdict == "accepted"


def by_rule(rule, path, task, entry) -> bool:
    """Whether another checker does, in a process of its own, which may end however it likes."""
    command = [
        sys.executable,
        "-m",
        "course.judge.other_checkers",
        rule,
        task.name,
        str(path),
        entry,
    ]
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
        environment |= {"HOME": folder, "TMPDIR": folder}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return False
    return done.stdout.endswith(b"accepted\n")


def other_right_ones():
    """(group, name, task, candidate) of the right answers that our judge is given besides: those of
    strangers, of operations as public task sets order them, and of the course's exercises."""
    for one in bank.right_answers():
        task = TASKS[one.task]
        task = tasks.without_library(task) if one.by_library else task
        yield "strangers", f"{one.task}, {one.title}", task, one.source
    for one in operations():
        task = tasks.without_library(tasks.kernelbench(one.task, one.name))
        yield "operations", one.name, task, one.candidate
    from course import exercises

    text = RIGHT_ANSWERS.read_text(encoding="utf-8")
    for exercise, title, candidate, entry in of_exercises.right_answers(text, exercises.EXERCISES):
        task = of_exercises.Task(exercise)
        demands = replace(task.demands, entry=entry)
        whole = tasks.Task(exercise.id, task.reference, task.inputs, demands)
        yield "exercises", f"{exercise.id}, {title}", whole, candidate


def refused_by_ours(every) -> tuple[dict, list]:
    """({group: how many right answers were judged}, the names of those refused)."""
    counts, refused = collections.Counter(), []
    for number, (group, name, task, candidate) in enumerate(other_right_ones()):
        if number % every:
            continue
        report = judge(candidate, task.reference, task.inputs, task.demands, seed=number)
        counts[group] += 1
        if report.verdict != "accepted":
            refused.append(name)
            print(f"refused: {name}: {report.keys}", flush=True)
        if sum(counts.values()) % TOLD == 0:
            print(f"{sum(counts.values())} right ones, {len(refused)} refused", flush=True)
    return dict(counts), refused


def board(every) -> dict:
    """Checker -> what it accepted and refused."""
    rows = {"ours": row_of("ours", by_ours)}
    if every:
        counts, refused = refused_by_ours(every)
        rows["ours"]["right"] += sum(counts.values())
        rows["ours"]["refused"] += refused
        rows["ours"]["groups"] = counts
    for rule in TRIALS:
        rows[rule] = row_of(rule, partial(by_rule, rule))
    return rows


def row_of(name, accepts) -> dict:
    """What a checker accepted of what it must refuse, and refused of the right envelopes."""
    passed = [key for key, *rest in cheats() if accepts(*rest)]
    refused = [key for key, *rest in right_ones() if not accepts(*rest)]
    of, right = len(list(cheats())), len(list(right_ones()))
    print(f"{name}: {len(passed)} of {of} cheats accepted: {', '.join(passed)}", flush=True)
    return {"accepted": passed, "of": of, "refused": refused, "right": right}


def main():
    """Print the board, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--right", type=int, default=1, metavar="N", help="0 for none")
    parser.add_argument("--json", type=Path, default=FILE, metavar="FILE")
    given = parser.parse_args()
    rows = board(given.right)
    ours = rows["ours"]
    print(f"judge/patterns/caught_share {1 - len(ours['accepted']) / ours['of']:.3f}")
    print(f"judge/right/refused {len(ours['refused'])} of {ours['right']}")
    text = json.dumps({"date": results.now(), "judges": rows}, indent=1)
    write_whole(given.json, text + "\n")


if __name__ == "__main__":
    main()
