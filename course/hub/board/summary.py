"""What the board and the wall show, as plain data made from the store's events."""

import statistics
from collections import Counter
from datetime import UTC, datetime, timedelta

from course.checking.model import REASONS
from course.hub.board import catalogue
from course.hub.board.catalogue import Contents, Question
from course.hub.board.events import Event

Told = list[tuple[int, Event]]  # (learner's number, event), from the oldest on
AWAY = timedelta(minutes=20)  # who has sent nothing for so long is not counted as being anywhere
BARS = 6  # for numbers that were predicted


def board(learners: dict[int, str], told: Told, wall: tuple, now: datetime | None = None) -> dict:
    """All that the instructor's page shows.

    learners: {number: name}; wall: as the store has it.
    """
    now = now or datetime.now(UTC)
    latest = {number: event for number, event in told if _has_place(event)}
    return {
        "now": now.isoformat(timespec="milliseconds"),
        "learners": len(learners),
        "here": sum(_is_recent(event, now) for event in latest.values()),
        "sections": sections(latest, now),
        "exercises": exercises(told),
        "help": help_wanted(learners, told),
        "people": people(learners, told, latest),
        "questions": questions(told),
        "wall": {"chapter": wall[0], "subject": wall[1], "shown": wall[2]},
    }


def label(number: int, name: str) -> str:
    """What a learner is called on the board."""
    return name or f"learner {number}"


def sections(latest: dict[int, Event], now: datetime) -> list[dict]:
    """Where how many are who did something lately, in the order of the course."""
    places = Counter()
    for event in latest.values():
        if _is_recent(event, now):
            places[event.chapter, _section(event)] += 1
    order = {chapter.key: n for n, chapter in enumerate(catalogue.CHAPTERS)}

    def place_of(item):
        (key, section), _ = item
        titles = list(dict.fromkeys(catalogue.contents(key).sections.values()))
        return order[key], titles.index(section) if section in titles else -1

    return [
        {"chapter": _title(key), "section": section, "count": count}
        for (key, section), count in sorted(places.items(), key=place_of)
    ]


def exercises(told: Told) -> list[dict]:
    """Of each exercise that somebody tried: how many solved it, and why the others have not yet."""
    last, solved, tried = {}, {}, {}
    for number, event in told:
        if event.kind == "check":
            tried.setdefault(event.subject, set()).add(number)
            last[event.subject, number] = event
            if event.answer == "solved":
                solved.setdefault(event.subject, set()).add(number)
    rows = []
    for id, numbers in tried.items():
        done = solved.get(id, set())
        stuck = Counter(last[id, number].detail for number in numbers - done)
        key = id.partition(".")[0]
        rows.append(
            {
                "exercise": id,
                "chapter": _title(key),
                "title": catalogue.contents(key).task(id),
                "tried": len(numbers),
                "solved": len(done),
                "stuck": len(numbers) - len(done),
                "reasons": [
                    {"count": count, "reason": REASONS.get(reason, "It is not right yet.")}
                    for reason, count in stuck.most_common(3)
                ],
            }
        )
    return sorted(rows, key=lambda row: -row["stuck"])


def help_wanted(learners: dict[int, str], told: Told) -> list[dict]:
    """Who waits for help, who waits longest first, and where they are."""
    since, places = {}, {}
    for number, event in told:
        if _has_place(event):
            places[number] = event
        if event.kind == "help" and event.answer == "yes":
            since.setdefault(number, event.at)
        elif event.kind == "help":
            since.pop(number, None)
    return [
        {"number": number, "label": label(number, learners.get(number, "")), "since": at}
        | _where(places.get(number))
        for number, at in sorted(since.items(), key=lambda item: item[1])
    ]


def people(learners: dict[int, str], told: Told, latest: dict[int, Event]) -> list[dict]:
    """A line for each learner: where they were last, and what they have solved."""
    solved = {}
    for number, event in told:
        if event.kind == "check" and event.answer == "solved":
            solved.setdefault(number, {})[event.subject] = None
    return [
        {"label": label(number, name), "solved": list(solved.get(number, {}))}
        | {"titles": [_task(id) for id in solved.get(number, {})]}
        | _where(latest.get(number))
        | {"at": latest[number].at if number in latest else ""}
        for number, name in learners.items()
    ]


def questions(told: Told) -> list[dict]:
    """The questions that can go on the wall: of the chapters in which the class was seen."""
    answered = {}
    for number, event in told:
        if event.kind in ("predict", "quiz"):
            answered.setdefault((event.chapter, event.subject), set()).add(number)
    keys = {event.chapter for _, event in told if event.chapter}
    rows = []
    for chapter in catalogue.CHAPTERS:
        if chapter.key not in keys:
            continue
        found = catalogue.contents(chapter.key)
        asked = [(each.cell, each.text) for each in found.questions.values()]
        asked += found.asked.items()
        rows += [
            {
                "chapter": chapter.key,
                "title": found.title,
                "subject": subject,
                "text": text,
                "section": found.section(subject),
                "count": len(answered.get((chapter.key, subject), ())),
            }
            for subject, text in asked
        ]
    return rows


def hands(found: Contents, question: Question, told: Told, shown: bool, learners: int = 0) -> dict:
    """What the wall shows of a prediction: its bars, and once it is `shown`, what came of it.

    learners: how many have joined, of whom some have answered.
    """
    last = {number: event for number, event in told}
    answers = [event.answer for event in last.values()]
    seen = [event.detail for event in last.values() if event.detail != ""]
    if question.choices:
        counts = Counter(answers)
        bars = [
            {"label": choice, "count": counts[choice], "right": choice == question.answer}
            for choice in question.choices
        ]
    else:
        bars = ranges([float(answer) for answer in answers], question.unit)
    says = {
        "answer": question.answer,
        "seen": f"{statistics.median(seen):g} {question.unit}".strip() if seen else "",
        "seen_by": len(seen),
        "recorded": question.recorded,
    }
    text = {"text": question.text, "code": question.code}
    return text | _on_wall(found, question, len(last), learners, bars, says if shown else None)


def quiz_hands(found: Contents, quiz, told: Told, shown: bool, learners: int = 0) -> dict:
    """The same of a question of the recap; quiz: its `Quiz`."""
    last = {number: event.answer for number, event in told}
    if quiz.choices:
        counts = Counter(last.values())
        bars = [
            {"label": text, "count": counts[key], "right": key == quiz.answer}
            for key, text in quiz.choices.items()
        ]
    else:
        counts = Counter(f"{float(answer):g}" for answer in last.values())
        bars = [
            {"label": value, "count": n, "right": quiz.reply(int(float(value)))[0]}
            for value, n in counts.most_common(BARS)
        ]
    right = str(quiz.choices.get(quiz.answer, quiz.answer))
    says = {
        "answer": f"{right} {quiz.unit}".strip(),
        "why": catalogue.plain(quiz.explain_right),
    }
    text = {"text": catalogue.plain(quiz.question), "code": ""}
    return text | _on_wall(found, quiz, len(last), learners, bars, says if shown else None)


def _on_wall(found, asked, answers, learners, bars, says):
    """What all questions have alike; says: what is kept back until the answer is shown, or None."""
    shown = says is not None
    return {
        "chapter": found.title,
        "typed": not asked.choices,
        "unit": asked.unit,
        "answers": answers,
        "learners": learners,
        "bars": bars if shown else [bar | {"right": False} for bar in bars],
        "shown": shown,
    } | {"answer": "", "seen": "", "seen_by": 0, "recorded": "", "why": "", **(says or {})}


def ranges(numbers: list[float], unit: str = "") -> list[dict]:
    """Bars of numbers: one for each value where they are few, else for ranges of like width.

    Guesses are wide apart: where the largest is a hundred times the smallest, ranges grow by a
    factor instead.
    """
    values = sorted(set(numbers))
    if len(values) <= BARS:
        counts = Counter(numbers)
        return [
            {"label": f"{value:g} {unit}".strip(), "count": counts[value], "right": False}
            for value in values
        ]
    low, high = values[0], values[-1]
    if low > 0 and high / low >= 100:
        edges = [low * (high / low) ** (n / BARS) for n in range(BARS + 1)]
    else:
        edges = [low + (high - low) * n / BARS for n in range(BARS + 1)]
    edges[-1] = high
    counts = [0] * BARS
    for number in numbers:
        above = sum(number >= edge for edge in edges[1:-1])
        counts[above] += 1
    return [
        {"label": f"{a:.3g} to {b:.3g} {unit}".strip(), "count": count, "right": False}
        for a, b, count in zip(edges, edges[1:], counts, strict=False)
    ]


def _has_place(event):
    """Whether an event says where somebody is: help can be asked for in a notebook of one's own."""
    return bool(event.chapter and (event.cell or event.subject))


def _is_recent(event, now):
    return now - datetime.fromisoformat(event.at) < AWAY


def _title(key):
    found = catalogue.contents(key)
    return found.title if found else ""


def _task(id):
    found = catalogue.contents(id.partition(".")[0])
    return found.task(id) if found else id


def _section(event):
    return catalogue.contents(event.chapter).section(event.cell or event.subject)


def _where(event):
    if event is None:
        return {"chapter": "", "section": ""}
    return {"chapter": _title(event.chapter), "section": _section(event)}
