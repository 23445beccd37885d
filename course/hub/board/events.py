"""What learners send, taken apart: only what the notice names gets further, the rest is refused.

A learner can send what they like, by hand, too. So nothing is kept that the chapters do not have:
no free text reaches the board, let alone the wall.
"""

import math
import re
from dataclasses import dataclass
from datetime import datetime

from course.checking.model import REASONS
from course.hub.board import catalogue

KINDS = "predict", "quiz", "check", "place", "help"
STATUSES = "solved", "not yet", "broken"
ID = re.compile(r"[0-9a-f]{32}")
WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]{0,7}\+00:00")
MOST = 500  # events in one request
LARGEST = 1e15  # a number somebody predicts


class Refused(ValueError):
    """What was sent is none of what a learner's notebook sends."""


@dataclass(frozen=True)
class Event:
    """Something a learner did.

    subject: the cell of a prediction or place, the id of a quiz or exercise. answer: what was
    picked, as text or a number; the status of a check. detail: a check's reason, or the number that
    a prediction turned out to be.
    """

    id: str
    at: str
    kind: str
    chapter: str
    cell: str = ""
    subject: str = ""
    answer: str | float = ""
    detail: str | float = ""


def read(sent: object) -> list[Event]:
    """The events of a request's JSON. Refused if it is none; single bad events are left out."""
    events = sent.get("events") if isinstance(sent, dict) else None
    if not isinstance(events, list) or len(events) > MOST:
        raise Refused(f"a list of {MOST} events at most is expected")
    taken = []
    for each in events:
        try:
            taken.append(event(each))
        except Refused:  # one that a newer or changed chapter sends must not hold up the others
            continue
    return taken


def event(sent: object) -> Event:
    """One event. Refused where the chapters have nothing of the kind."""
    if not isinstance(sent, dict):
        raise Refused("no event")
    id, at, kind = (str(sent.get(name, "")) for name in ("id", "at", "kind"))
    if not ID.fullmatch(id) or not WHEN.fullmatch(at) or kind not in KINDS:
        raise Refused("no id, time or kind")
    try:
        datetime.fromisoformat(at)
    except ValueError:
        raise Refused("no such time") from None
    key = str(sent.get("chapter", ""))
    if kind in ("check", "quiz"):
        key = str(sent.get({"check": "exercise", "quiz": "quiz"}[kind], "")).partition(".")[0]
    chapter = catalogue.contents(key)
    if chapter is None and kind != "help":
        raise Refused("no such chapter")
    cell = str(sent.get("cell", ""))
    place = {"chapter": chapter.key if chapter else "", "cell": ""}
    if chapter and cell in chapter.sections:
        place["cell"] = cell
    return Event(id=id, at=at, kind=kind, **place, **_OF_KIND[kind](sent, chapter, cell))


def _place(sent, chapter, cell):
    if cell not in chapter.sections:
        raise Refused("no such cell")
    return {"subject": cell}


def _help(sent, chapter, cell):
    return {"answer": "yes" if sent.get("wanted") is True else "no"}


def _predict(sent, chapter, cell):
    question = chapter.questions.get(cell)
    if question is None:
        raise Refused("no such question")
    answer = sent.get("answer")
    if question.choices:
        if answer not in question.choices:
            raise Refused("no such choice")
        return {"subject": cell, "answer": answer}
    was = sent.get("was")
    detail = "" if was is None else _number(was)
    return {"subject": cell, "answer": _number(answer), "detail": detail}


def _quiz(sent, chapter, cell):
    quiz, answer = sent.get("quiz"), sent.get("answer")
    if quiz not in chapter.quizzes:
        raise Refused("no such quiz")
    if not (isinstance(answer, str) and re.fullmatch(r"[a-f]", answer)):
        answer = _number(answer)
    return {"subject": quiz, "answer": answer}


def _check(sent, chapter, cell):
    exercise, status, reason = (sent.get(name) for name in ("exercise", "status", "reason"))
    if exercise not in chapter.exercises or status not in STATUSES:
        raise Refused("no such exercise")
    if reason not in REASONS:
        reason = ""
    return {"subject": exercise, "answer": status, "detail": reason}


def _number(value):
    if type(value) not in (int, float) or not math.isfinite(value) or abs(value) > LARGEST:
        raise Refused("no number")
    return float(value)


_OF_KIND = {"place": _place, "help": _help, "predict": _predict, "quiz": _quiz, "check": _check}
