"""What was found, as tables: CSV for people and programs, and the file that a learning management
system reads.

A cell that a spreadsheet would take for a formula begins with an apostrophe there (OWASP, CSV
Injection): names of learners and files are anybody's words.
"""

import csv
import io
import re
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

from utils.files import write_whole

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
POINTS = "CUDA course"


def safe(text) -> str:
    """A cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if isinstance(text, int | float):
        return f"{text:g}"
    text = str(text)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def write(path: Path, rows) -> None:
    """Write rows as CSV (UTF-8, with the mark by which Excel knows it)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([safe(cell) for cell in row] for row in rows)
    write_whole(path, "\ufeff" + out.getvalue())


def of_learners(results, exercises):
    """A row a learner: how many are solved, then what became of each exercise."""
    yield ["learner", "id", "files", "solved", "asked", "look at", *exercises]
    for result in results:
        cells = [result.said(id) for id in exercises]
        look = "; ".join(result.look_at())
        learner = result.learner
        solved = result.solved(exercises)
        yield [learner.name, learner.id, len(learner.files), solved, len(exercises), look, *cells]


def of_exercises(results, exercises, sentence):
    """A row an exercise and outcome: how many of the class, and who. sentence: of an outcome's word
    and an exercise's id.
    """
    yield ["exercise", "outcome", "learners", "what it means", "who"]
    for id in exercises:
        by_outcome = defaultdict(list)
        for result in results:
            by_outcome[result.said(id)].append(result.learner.label)
        for said, names in sorted(by_outcome.items(), key=lambda item: -len(item[1])):
            yield [id, said, len(names), sentence(said, id), "; ".join(names)]


def of_alikes(found):
    """A row for each group of answers that look alike."""
    yield ["exercise", "learners", "how", "share"]
    for alike in found:
        yield [alike.exercise, "; ".join(alike.learners), alike.how, round(alike.share, 2)]


def stuck(results, exercises, sentence, most: int = 8):
    """Lines: the reasons that most of the class got, as "11 of 28: a barrier is missing"."""
    counts = Counter()
    for id in exercises:
        for result in results:
            said = result.said(id)
            if said not in ("solved", "not handed in", "untouched"):
                counts[id, said] += 1
    for (id, said), count in counts.most_common(most):
        yield f"{count} of {len(results)}: {id}: {sentence(said)}"


# ---- a learning management system's own file, filled in


class NoRoster(ValueError):
    """A file that is no list of learners; says why."""


def filled(path: Path, points: dict, most: float, column: str = POINTS):
    """(the text of a gradebook with points in it, names of learners that it does not list).

    path: what the system gave: Moodle's grading worksheet (columns Identifier and Grade), Canvas'
    gradebook (Student, ID, SIS Login ID, Section), or any CSV with a column of names, ids, accounts
    or addresses. points: {(learner's name, id): points}. most: the most points there are. column:
    where they go, unless there is a column Grade. Everything else stays as it is. NoRoster where it
    has no such column.
    """
    text = path.read_text(encoding="utf-8-sig")
    try:
        dialect = csv.Sniffer().sniff(text.partition("\n")[0], ",;\t")
    except csv.Error:
        dialect = csv.excel
    rows = list(csv.reader(io.StringIO(text), dialect))
    if not rows:
        raise NoRoster(f"{path} is empty")
    head = [cell.strip() for cell in rows[0]]
    keys = [n for n, cell in enumerate(head) if cell.lower() in KEYS]
    if not keys:
        raise NoRoster(f"{path} has no column that names learners: {', '.join(sorted(KEYS))}")
    place = next((n for n, cell in enumerate(head) if cell in ("Grade", column)), len(head))
    if place == len(head):
        rows[0].append(column)
    left = dict(points)
    for row in rows[1:]:
        row += [""] * (len(rows[0]) - len(row))
        learner = _listed(row, head, keys, left)
        if learner is not None:
            row[place] = f"{_scaled(left.pop(learner), most, row, head):g}"
        elif _is_of_points(row):
            row[place] = f"{most:g}"
    out = io.StringIO()
    csv.writer(out, dialect, lineterminator="\r\n").writerows(rows)
    return out.getvalue(), [name for name, _ in left]


KEYS = {"identifier", "full name", "email address", "email", "username", "id", "id number"}
KEYS |= {"student", "sis login id", "sis user id", "name", "learner", "account"}


def _listed(row, head, keys, points):
    """The learner, of those with points, whom a row lists; None for none, or for several."""
    names = {_plain(row[n]) for n in keys if row[n].strip()}
    first = dict(zip(map(str.lower, head), row, strict=False))
    names |= {_plain(f"{first.get('first name', '')} {first.get('last name', '')}")}
    names |= {_plain(name.removeprefix("Participant ")) for name in row if "Participant " in name}
    by_id = [key for key in points if key[1] and _plain(key[1]) in names]
    by_name = [key for key in points if _plain(key[0]) in names - {""}]
    found = by_id or by_name
    return found[0] if len(found) == 1 else None


def _plain(text):
    """A name to compare: "Lee, Ann", "Ann Lee" and "leeann" are one."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sorted(re.findall(r"\w+", text))) if "@" not in text else text.strip()


def _scaled(points, most, row, head):
    """Points as the row's own maximum wants them."""
    maximum = dict(zip(head, row, strict=False)).get("Maximum Grade", "")
    try:
        return round(points / most * float(maximum), 2)
    except (ValueError, ZeroDivisionError):
        return points


def _is_of_points(row):
    """Whether it is Canvas' row of the points that are possible."""
    return row[0].strip().lower() == "points possible"
