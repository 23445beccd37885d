"""A leaderboard of checkers: how many cheats does each accept, and how many right answers refuse?

    python -m course.judge.bench [--right N] [--json FILE]

Over the bank (its patterns that need no GPU, and the envelopes that are wrong or cheat) and over
right answers: the bank's own, and for our judge those of the course's exercises, too. `--right N`
takes every N-th of these. What is printed goes into assets/judges.json.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from course.judge import bank, judge, of_exercises
from course.judge.bank.tasks import ORDER, TASKS
from course.judge.other_checkers import TRIALS
from utils import results
from utils.files import ROOT, write_whole

FILE = ROOT / "assets" / "judges.json"
RIGHT_ANSWERS = ROOT / "tests" / "course" / "exercises" / "answers" / "right.txt"
SECONDS = 120
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


def refused_of_the_course(every) -> tuple[int, list]:
    """(how many right answers of the exercises were judged, the names of those refused)."""
    from course import exercises

    text = RIGHT_ANSWERS.read_text(encoding="utf-8")
    count, refused = 0, []
    known = of_exercises.right_answers(text, exercises.EXERCISES)
    for number, (exercise, title, candidate, entry) in enumerate(known):
        if number % every:
            continue
        task = of_exercises.Task(exercise)
        demands = replace(task.demands, entry=entry)
        report = judge(candidate, task.reference, task.inputs, demands, seed=number)
        count += 1
        if report.verdict != "accepted":
            refused.append(f"{exercise.id}, {title}")
            print(f"refused: {exercise.id}, {title}: {report.keys}", flush=True)
    return count, refused


def board(every) -> dict:
    """Checker -> what it accepted and refused."""
    rows = {}
    for name in ("ours", *TRIALS):
        accepts = by_ours if name == "ours" else lambda *one, rule=name: by_rule(rule, *one)
        passed = [key for key, *rest in cheats() if accepts(*rest)]
        refused = [key for key, *rest in right_ones() if not accepts(*rest)]
        of, right = len(list(cheats())), len(list(right_ones()))
        rows[name] = {"accepted": passed, "of": of, "refused": refused, "right": right}
        print(f"{name}: {len(passed)} of {of} cheats accepted: {', '.join(passed)}", flush=True)
    if every:
        count, refused = refused_of_the_course(every)
        rows["ours"]["right"] += count
        rows["ours"]["refused"] += refused
    return rows


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
