"""A learner's side: what is sent, when, and that no cell waits for it or sees it fail."""

import json
import re
import threading

import nbformat
import pytest
import requests

from course import classroom, exercises, progress
from course.checking.predict import Prediction
from course.classroom import membership, outbox, post, words
from course.hub import page
from utils.files import ROOT


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """A learner with files of their own, and no class; nothing is sent behind the test's back."""
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.delenv(membership.BOARD, raising=False)
    monkeypatch.setattr(post, "hurry", lambda: None)
    return tmp_path


@pytest.fixture
def ann(alone, monkeypatch, board):
    """Ann, in a class whose board runs."""
    monkeypatch.setenv(membership.BOARD, board.address)
    monkeypatch.setenv(membership.TOKEN, "ann")
    return board


def shown(board):
    headers = {"Authorization": "token teacher"}
    with requests.get(
        board.address + "api/board", headers=headers, stream=True, timeout=30
    ) as news:
        line = next(each for each in news.iter_lines(chunk_size=1) if each.startswith(b"data: {"))
    return json.loads(line[6:])


def guess(answer):
    """Commit to a choice of a real question, in its cell."""
    asked = Prediction(("2 lines", "3 lines"))
    asked.where = {"chapter": "first_kernels", "cell": "predict-hello"}
    asked.committed(answer)


def test_where_there_is_no_class_nothing_is_written(alone):
    guess("3 lines")
    exercises.quiz("first_kernels.q_threads").answer(1)
    assert repr(classroom.join()) == words.NO_CLASS
    assert repr(classroom.help()) == words.NOT_JOINED
    assert [path.name for path in alone.iterdir() if "progress" not in path.name] == []


def test_in_a_class_nothing_is_sent_before_somebody_joins(ann):
    guess("3 lines")
    assert outbox.waiting() == []
    assert "never sent" in repr(classroom.join())  # the notice, which joins nobody
    assert not membership.joined()
    assert shown(ann)["learners"] == 0


def test_what_was_done_reaches_the_board(ann):
    assert repr(classroom.join(name=False)) == words.joined("learner 1")
    guess("3 lines")
    exercises.check("first_kernels.blocks_for", lambda *sizes: (1, 1))
    exercises.quiz("first_kernels.q_async").answer("a")
    exercises.quiz("first_kernels.q_guard").answer("what I think of it")
    told = [{k: v for k, v in e.items() if k not in ("id", "at")} for e in outbox.waiting()]
    assert [each["kind"] for each in told] == ["predict", "check", "quiz"]
    assert "what I think of it" not in json.dumps(told)
    assert "lambda" not in json.dumps(told)
    assert post.send_all() and outbox.waiting() == []
    (row,) = shown(ann)["exercises"]
    assert (row["exercise"], row["tried"], row["solved"]) == ("first_kernels.blocks_for", 1, 0)
    assert row["reasons"][0]["count"] == 1


def test_learners_are_told_what_the_board_calls_them(ann, monkeypatch):
    """Else nobody in a room of thirty knows who learner 17 is."""
    monkeypatch.setenv(membership.TOKEN, "bob")
    classroom.join(name=False)
    membership.file().unlink()  # what follows is Ann's
    monkeypatch.setenv(membership.TOKEN, "ann")
    assert "learner 2" in repr(classroom.join(name=False))
    assert "learner 2" in repr(classroom.help()) and "learner 2" in repr(classroom.join())
    assert post.send_all()
    assert [each["label"] for each in shown(ann)["help"]] == ["learner 2"]
    assert "are ann" in repr(classroom.join(name=True)) and "ann needs" in repr(classroom.help())


def test_of_a_notebook_of_their_own_not_even_the_name_is_sent(ann, monkeypatch):
    classroom.join(name=False)
    monkeypatch.setenv("JPY_SESSION_NAME", "my_diary.ipynb")
    classroom.tell("place", chapter=classroom.chapter_here(), cell="abc")
    classroom.help()
    (asked,) = outbox.waiting()
    assert (asked["kind"], asked["chapter"]) == ("help", "")
    assert "diary" not in json.dumps(asked)


def test_a_starter_as_it_was_given_is_nobodys_answer(ann):
    classroom.join(name=False)
    namespace = {}
    exec(exercises.starter("first_kernels.blocks_for"), namespace)
    exercises.check("first_kernels.blocks_for", namespace["blocks_for"])
    solved = exercises.EXERCISES["first_kernels.blocks_for"].solution
    exercises.check("first_kernels.blocks_for", solved)
    statuses = [each["status"] for each in outbox.waiting() if each["kind"] == "check"]
    assert statuses[-1] == "solved"


def test_while_the_board_is_away_answers_wait_on_disk(ann, monkeypatch):
    ann.stop()
    assert repr(classroom.join(name=True)) == words.JOINED_UNHEARD
    senders, request = [], post._request

    def noted(*what):
        senders.append(threading.current_thread())
        return request(*what)

    monkeypatch.setattr(post, "_request", noted)
    guess("2 lines")
    guess("3 lines")
    assert threading.main_thread() not in senders  # no cell waits for the board
    assert not post.send_all()
    assert len(outbox.waiting()) == 2
    ann.start()
    assert post.send_all()
    assert [each["label"] for each in shown(ann)["people"]] == ["ann"]
    assert {q["subject"]: q["count"] for q in shown(ann)["questions"]}["predict-hello"] == 1


def test_a_disk_that_is_full_or_locked_breaks_no_cell(ann, monkeypatch):
    classroom.join(name=False)
    (membership.file().with_name("to_the_board.sqlite")).write_bytes(b"no database" * 100)
    guess("3 lines")
    assert outbox.waiting() == []
    assert post.send_all()


def test_who_leaves_sends_nothing_more(ann):
    classroom.join(name=False)
    guess("3 lines")
    assert repr(classroom.leave()) == words.LEFT
    guess("2 lines")
    assert outbox.waiting() == [] and not membership.joined()
    assert shown(ann)["learners"] == 0


def test_nobody_is_taken_into_the_next_class_unasked(ann):
    from course.hub.board.store import Store

    classroom.join(name=True)
    ann.stop()
    guess("3 lines")
    store = Store(ann.file)
    store.forget()
    store.close()
    ann.start()
    assert post.send_all()
    assert not membership.joined() and outbox.waiting() == []
    assert shown(ann)["learners"] == 0


def test_only_the_newest_events_are_kept_of_a_board_that_stays_away(ann, monkeypatch):
    monkeypatch.setattr(outbox, "MOST", 3)
    for number in range(5):
        outbox.add("place", {"cell": str(number)})
    assert [each["cell"] for each in outbox.waiting()] == ["2", "3", "4"]
    assert progress.load()["exercises"] == {}


def test_the_first_page_says_what_is_sent_before_anything_is_run():
    book = nbformat.reads(page.notebook(), as_version=4)
    nbformat.validate(book)
    before = "".join(cell.source for cell in book.cells[: [c.id for c in book.cells].index("join")])
    assert words.NOTICE in before
    links = re.findall(r"\]\((\S+?)\)", before)
    assert any("first_kernels" in link for link in links)
    assert [link for link in links if not (ROOT / link).is_file()] == []
