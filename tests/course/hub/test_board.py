"""The board: who may see and send what, what is kept, and what the pages are told."""

import json
import sqlite3
import uuid
from datetime import UTC, datetime

import pytest
import requests

from course.hub.board import app, catalogue, events, summary
from course.hub.board.events import Refused
from course.hub.board.store import Store

NOW = "2026-11-27T20:00:00.000+00:00"
QUESTION = {"kind": "predict", "chapter": "first_kernels", "cell": "predict-guard"}


def sent(**what):
    """An event as a notebook sends it."""
    return {"id": uuid.uuid4().hex, "at": NOW, "chapter": "first_kernels"} | what


def post(board, who, path, content, **options):
    headers = {"Authorization": f"token {who}"} if who else {}
    return requests.post(board.address + path, json=content, headers=headers, timeout=30, **options)


def join(board, who, named=False):
    return post(board, who, "api/join", {"named": named}).json()["class"]


def tell(board, who, *told, class_id=""):
    return post(board, who, "api/events", {"class": class_id, "events": list(told)}).status_code


def shown(board, page="board", who="teacher", until=lambda data: True):
    """What a page is told by server-sent events, once it is what is waited for."""
    headers = {"Authorization": f"token {who}"}
    address = f"{board.address}api/{page}"
    with requests.get(address, headers=headers, stream=True, timeout=30) as reply:
        assert reply.status_code == 200, reply.status_code
        for line in reply.iter_lines(chunk_size=1):
            if line.startswith(b"data: {") and until(data := json.loads(line[6:])):
                return data


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "predict", "cell": "predict-guard", "answer": "<script>"},
        {"kind": "predict", "cell": "setup", "answer": "a crash"},
        {"kind": "predict", "cell": "predict-guard", "answer": ["a crash"]},
        {"kind": "place", "cell": "no-such-cell"},
        {"kind": "place", "cell": "setup", "chapter": "../first_kernels"},
        {"kind": "place", "cell": "setup", "at": "2026-99-27T20:00:00+00:00"},
        {"kind": "place", "cell": "setup", "id": "1"},
        {"kind": "check", "exercise": "first_kernels.none", "status": "solved", "reason": ""},
        {"kind": "check", "exercise": "first_kernels.scale_guard", "status": "won", "reason": ""},
        {"kind": "quiz", "quiz": "first_kernels.q_guard", "answer": "see my text"},
        {"kind": "quiz", "quiz": "first_kernels.q_threads", "answer": float("inf")},
        {"kind": "text", "cell": "setup"},
    ],
    ids=lambda bad: "-".join(map(str, bad.values()))[:40],
)
def test_what_no_chapter_has_is_refused(bad):
    with pytest.raises(Refused):
        events.event(sent(**bad))


def test_a_bad_event_holds_up_no_good_one():
    good = sent(kind="place", cell="setup")
    taken = events.read({"events": ["none", sent(kind="place", cell="?"), good]})
    assert [each.id for each in taken] == [good["id"]]
    with pytest.raises(Refused):
        events.read({"events": "all"})


def test_a_reason_that_nobody_knows_is_kept_as_none():
    told = {"exercise": "first_kernels.scale_guard", "status": "broken", "reason": "<b>mine</b>"}
    assert events.event(sent(kind="check", **told)).detail == ""


def test_every_choice_of_a_chapter_can_go_on_the_wall():
    """Of all 25: a question has words, two choices or a number, and an answer among its choices."""
    for chapter in catalogue.CHAPTERS:
        found = catalogue.contents(chapter.key)
        assert found.exercises and found.questions, chapter.key
        for question in found.questions.values():
            assert question.text, (chapter.key, question.cell)
            assert len(question.choices) != 1
            assert question.answer in ("", *question.choices), (chapter.key, question.cell)


def test_every_question_of_a_recap_and_every_exercise_has_words():
    """A key such as q_threads tells nobody what to put on the wall."""
    for chapter in catalogue.CHAPTERS:
        found = catalogue.contents(chapter.key)
        for id, text in found.asked.items():
            assert len(text.split()) > 3 and id not in text, (id, text)
        titles = [found.task(id) for id in found.exercises]
        assert len(set(titles)) == len(titles), chapter.key
        assert not any("xercise" in title or "." in title for title in titles), titles
    assert (
        catalogue.contents("first_kernels").asked["first_kernels.q_threads"].startswith("A kernel")
    )
    assert (
        catalogue.contents("first_kernels").task("first_kernels.scale_guard") == "Repair the guard"
    )


@pytest.mark.parametrize(
    "cell, code",
    [
        ("predict-hello", "def hello():"),  # the cell that answers
        ("predict-time", "def vector_add("),  # which only launches what an earlier one defines
        ("predict-break-who", "def who("),  # what the learner is to change
        ("predict-break-c", "%%writefile build/vector_add.cu"),
    ],
)
def test_the_wall_shows_the_code_that_a_question_is_about(cell, code):
    found = catalogue.contents("first_kernels").questions[cell].code
    assert code in found and len(found.splitlines()) <= catalogue.LONGEST_CODE


def test_nearly_every_question_has_code_that_a_room_can_read():
    asked = [q for c in catalogue.CHAPTERS for q in catalogue.contents(c.key).questions.values()]
    assert sum(bool(each.code) for each in asked) > 0.98 * len(asked)


def test_what_breaks_a_kernel_has_no_recorded_answer():
    """As committed such a cell shows the kernel whole."""
    questions = catalogue.contents("first_kernels").questions
    assert questions["predict-break-stride"].recorded == ""
    assert "block 1 thread 2" in questions["predict-hello"].recorded


def test_only_who_teaches_sees_the_board(board):
    join(board, "ann", named=True)
    for path in ("", "wall", "api/board", "api/wall"):
        headers = {"Authorization": "token ann"}
        assert requests.get(board.address + path, headers=headers, timeout=30).status_code == 403
    for path, content in [
        ("api/show", {"chapter": "first_kernels", "subject": "predict-guard"}),
        ("api/reveal", {"shown": True}),
        ("api/heard", {"number": 1}),
    ]:
        assert post(board, "ann", path, content).status_code == 403
        assert post(board, "teacher", path, content).status_code == 204


def test_without_a_token_nothing_is_taken(board):
    """A page of another site could make a browser send cookies, and no token."""
    for path in ("api/join", "api/events", "api/leave", "api/show"):
        assert post(board, "", path, {}, cookies={"session": "teacher"}).status_code == 403


def test_nothing_is_kept_of_who_has_not_joined(board):
    assert tell(board, "ann", sent(**QUESTION, answer="a crash")) == 409
    assert shown(board)["learners"] == 0


def test_an_answer_that_is_sent_twice_counts_once_and_the_last_one_counts(board):
    join(board, "ann")
    first = sent(**QUESTION, answer="a crash")
    later = sent(**QUESTION, answer="an IndexError") | {"at": NOW.replace("20:00", "20:01")}
    for told in ([first], [first, later], [later]):
        assert tell(board, "ann", *told) == 204
    post(board, "teacher", "api/show", {"chapter": "first_kernels", "subject": "predict-guard"})
    join(board, "bob")
    hands = shown(board, "wall")
    assert (hands["answers"], hands["learners"]) == (1, 2)
    assert {bar["label"] for bar in hands["bars"] if bar["count"]} == {"an IndexError"}


def test_the_wall_hides_the_answer_until_it_is_shown(board):
    post(board, "teacher", "api/show", {"chapter": "first_kernels", "subject": "predict-guard"})
    hidden = shown(board, "wall")
    assert not (hidden["answer"] or hidden["recorded"] or any(b["right"] for b in hidden["bars"]))
    post(board, "teacher", "api/reveal", {"shown": True})
    hands = shown(board, "wall")
    assert hands["answer"] == "the sevens become 14"
    assert [bar["label"] for bar in hands["bars"] if bar["right"]] == ["the sevens become 14"]


def test_a_page_is_told_of_an_answer_when_it_comes(board):
    """The page is open before: what comes to it is news, not its first state."""
    join(board, "ann")
    post(board, "teacher", "api/show", {"chapter": "first_kernels", "subject": "predict-guard"})
    states = []

    def until(data):
        states.append(data["answers"])
        if len(states) == 1:
            tell(board, "ann", sent(**QUESTION, answer="a crash"))
        return data["answers"] == 1

    shown(board, "wall", until=until)
    assert states == [0, 1]


def test_a_page_hears_from_a_board_that_has_no_news(board, monkeypatch):
    """By this a page knows that somebody is behind the connection."""
    monkeypatch.setattr(app, "STILL_THERE", 0.1)
    headers = {"Authorization": "token teacher"}
    with requests.get(
        f"{board.address}api/wall", headers=headers, stream=True, timeout=30
    ) as reply:
        lines = (line for line in reply.iter_lines(chunk_size=1) if line)
        assert next(lines).startswith(b"data: {")
        assert [next(lines), next(lines)] == [b"event: still", b"data: there"]


def test_the_board_is_told_anew_as_time_goes_by(board, monkeypatch):
    """Who has done nothing for twenty minutes is not counted any more, though nothing is new."""
    monkeypatch.setattr(app, "STILL_THERE", 0.1)
    moments = []
    shown(board, until=lambda data: moments.append(data["now"]) or len(moments) == 2)
    assert moments[0] < moments[1]


def test_names_are_kept_of_those_alone_who_agreed(board):
    join(board, "ann-of-the-north", named=True)
    join(board, "bob-of-the-south")
    assert [each["label"] for each in shown(board)["people"]] == ["ann-of-the-north", "learner 2"]
    board.stop()
    everything = b"".join(path.read_bytes() for path in board.file.parent.iterdir())
    assert b"ann-of-the-north" in everything
    assert b"bob-of-the-south" not in everything
    assert board.file.stat().st_mode & 0o077 == 0


def test_who_leaves_and_a_class_that_is_over_are_deleted(board):
    over = join(board, "ann-of-the-north", named=True)
    tell(board, "ann-of-the-north", sent(**QUESTION, answer="a crash"))
    assert post(board, "ann-of-the-north", "api/leave", {}).status_code == 204
    assert shown(board)["people"] == []
    join(board, "ann-of-the-north", named=True)
    board.stop()

    store = Store(board.file)
    store.forget()
    store.close()
    rows = sqlite3.connect(board.file).execute("SELECT * FROM learners, events").fetchall()
    assert rows == []
    assert b"ann-of-the-north" not in board.file.read_bytes()

    board.start()
    assert tell(board, "ann-of-the-north", sent(**QUESTION, answer="a crash"), class_id=over) == 410


def test_the_board_says_where_most_are_stuck_and_why():
    def check(status, reason="", minute=0):
        told = {"exercise": "first_kernels.scale_guard", "status": status, "reason": reason}
        event = events.event(sent(kind="check", **told))
        return events.Event(**{**vars(event), "at": f"2026-11-27T20:{minute:02}:00+00:00"})

    told = [
        (1, check("not yet", "missing_guard")),
        (2, check("not yet", "missing_guard")),
        (3, check("not yet", "off_by_one")),
        (4, check("not yet", "off_by_one", 1)),
        (4, check("solved", minute=2)),
        (4, check("not yet", "off_by_one", 3)),  # tried on after it was solved: solved it stays
    ]
    names = {1: "", 2: "", 3: "", 4: "ann"}
    now = datetime(2026, 11, 27, 20, 5, tzinfo=UTC)
    board = summary.board(names, told, ("", "", False), now)
    (row,) = board["exercises"]
    assert (row["tried"], row["solved"], row["stuck"]) == (4, 1, 3)
    assert row["title"] == "Repair the guard"
    assert [each["count"] for each in row["reasons"]] == [2, 1]
    assert "guard is missing" in row["reasons"][0]["reason"]
    assert board["here"] == 4
    assert board["people"][3] == {
        "label": "ann",
        "solved": ["first_kernels.scale_guard"],
        "titles": ["Repair the guard"],
        "chapter": "First kernels",
        "section": "Exercise · Repair the guard",
        "at": "2026-11-27T20:03:00+00:00",
    }


def test_help_is_shown_from_the_first_call_until_somebody_came(board):
    join(board, "ann")
    tell(board, "ann", sent(kind="place", cell="setup"), sent(kind="help", wanted=True))
    (waits,) = shown(board)["help"]
    assert waits["label"] == "learner 1" and waits["section"]
    post(board, "teacher", "api/heard", {"number": waits["number"]})
    assert shown(board)["help"] == []


@pytest.mark.parametrize(
    "numbers, labels",
    [
        ([4, 4, 8], ["4 sectors", "8 sectors"]),
        (range(1, 13), None),
        ([1, 2, 3, 5, 1e3, 1e4, 1e6], None),
    ],
)
def test_bars_of_numbers_hold_every_number_once(numbers, labels):
    numbers = list(map(float, numbers))
    bars = summary.ranges(numbers, "sectors")
    assert sum(bar["count"] for bar in bars) == len(numbers)
    assert len(bars) <= summary.BARS
    if labels:
        assert [bar["label"] for bar in bars] == labels
