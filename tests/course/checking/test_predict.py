"""Predictions: what a learner commits to, and that every chapter folds what answers them."""

import re
from types import SimpleNamespace

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from course import exercises
from course.chapters import CHAPTERS
from course.checking.predict import TAG, folded, is_folded
from course.publish.minutes import BREAK_IT
from tests import hygiene

WRITTEN = [chapter for chapter in CHAPTERS if chapter.written]
ASKS = re.compile(r"\*[Pp]redict\b")


# ---- the widget


def test_a_click_commits_and_is_marked():
    choices, said, _ = exercises.predict("4 sectors", "8 sectors").widget().children
    for n in (0, 1):  # minds may change
        choices.children[n].click()
        assert f"You say: {(4, 8)[n]} sectors" in said.value
        assert [button.button_style for button in choices.children][n] == "info"
        assert [button.button_style for button in choices.children].count("info") == 1


def test_a_guess_is_written_down_and_nothing_is_not_a_guess():
    row, said, _ = exercises.predict(unit="GB/s").widget().children
    field, unit, button = row.children
    button.click()
    assert "Say something" in said.value and unit.value == "GB/s"
    field.value = "<b>900"
    button.click()
    assert "You say: &lt;b&gt;900 GB/s" in said.value


def test_without_widgets_the_choices_can_be_read():
    prediction = exercises.predict("a < b", "b < a")
    assert "○ a < b" in repr(prediction)
    page = prediction._repr_html_()
    assert page.count('type="radio"') == 2 and "a &lt; b" in page
    assert 'type="text"' in exercises.predict(unit="ms")._repr_html_()
    assert "run the next cell" in repr(exercises.predict())


# ---- the chapters


def is_closed(cell):
    """Whether a cell does not tell the answer before it is run: its output is folded, or it shows
    what a line does that the learner has still to change.
    """
    return is_folded(cell) or BREAK_IT in cell.metadata.get("tags", [])


def unanswered(cells):
    """What is wrong with a chapter's predictions: no cell to commit in, or an answer in view."""
    problems = []
    for n, cell in enumerate(cells):
        if cell.cell_type != "markdown" or not ASKS.search(cell.source):
            continue
        if cell.metadata["slideshow"]["slide_type"] == "notes":
            continue
        asked = [k for k in range(n + 1, n + 4) if TAG in cells[k].metadata.get("tags", [])]
        if not asked:
            problems.append(f"{cell.id}: no cell to commit to an answer in")
            continue
        answer = next((each for each in cells[asked[0] + 1 : n + 10] if is_closed(each)), None)
        if answer is None:
            problems.append(f"{cell.id}: no cell after it has its output folded")
        elif answer.metadata["slideshow"]["slide_type"] == "-":
            problems.append(f"{answer.id}: stands on the slide of its question")
    return problems


@pytest.mark.parametrize("chapter", WRITTEN)
def test_a_prediction_comes_before_its_answer(chapter):
    assert unanswered(hygiene.read(chapter.path).cells) == []


def test_a_chapter_predicts():
    counts = [
        sum(TAG in cell.metadata.get("tags", []) for cell in hygiene.read(chapter.path).cells)
        for chapter in WRITTEN
    ]
    assert sum(counts) > 100


@pytest.fixture
def section():
    """A prediction, the cell to commit in, and the folded answer on the next slide."""
    cells = SimpleNamespace(
        question=new_markdown_cell("*Predict:* how many?"),
        commit=new_code_cell('exercises.predict("1", "2")'),
        answer=new_code_cell("1 + 1"),
    )
    for cell in vars(cells).values():
        cell.metadata["slideshow"] = {"slide_type": "subslide"}
    cells.commit.metadata["tags"] = [TAG]
    folded(cells.answer)
    return cells


def problems_of(section):
    end = [new_markdown_cell("the end")] * 3
    return unanswered([*vars(section).values(), *end])


def test_a_folded_answer_is_no_problem(section):
    assert problems_of(section) == []


SPOILED = {
    "nothing to commit in": ("commit to an answer", lambda s: s.commit.metadata.pop("tags")),
    "an answer in view": ("folded", lambda s: s.answer.metadata["jupyter"].clear()),
    "in view on the website": ("folded", lambda s: s.answer.metadata["tags"].clear()),
    "on the same slide": (
        "on the slide",
        lambda s: s.answer.metadata["slideshow"].update(slide_type="-"),
    ),
}


@pytest.mark.parametrize("defect", SPOILED)
def test_an_answer_in_view_is_noticed(defect, section):
    said, spoil = SPOILED[defect]
    spoil(section)
    [problem] = problems_of(section)
    assert said in problem
