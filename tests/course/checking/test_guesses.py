"""Kept predictions: how far numbers were off, which choices were right, and the picture of both."""

import pytest

from course import exercises, progress
from course.checking import guesses
from course.checking.predict import away, chapter_here, number_in
from course.pictures.chapter_map import chapter_map


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(path))
    monkeypatch.setattr(progress, "_unsaved", {section: {} for section in progress.SECTIONS})
    return path


@pytest.mark.parametrize(
    "text, number",
    [
        ("900", 900),
        ("about 1,000 GB/s", 1000),
        ("3.5", 3.5),
        ("-2", -2),
        (".5", 0.5),
        ("1e3", 1000),
        ("no idea", None),
        ("", None),
    ],
)
def test_a_number_is_found_in_what_somebody_wrote(text, number):
    assert number_in(text) == number


@pytest.mark.parametrize(
    "guess, was, said", [(4, 4, ", exactly"), (2, 5, ", a factor of 2.5"), (0, 5, "")]
)
def test_how_far_a_guess_was_off(guess, was, said):
    assert away(guess, was) == said


def test_a_guessed_number_is_kept_with_what_it_was(file, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "chapters/06_memory.ipynb")
    row, said, after = exercises.predict(unit="GB/s").widget().children
    assert after.children == ()
    row.children[0].value = "about 900"
    row.children[2].click()
    _, field, unit, button = after.children
    assert unit.value == "GB/s"
    field.value = "?"
    button.click()
    assert "have to be numbers" in said.value and not file.exists()
    field.value = "3,600"
    button.click()
    assert said.value == "Kept: you said 900, it was 3600, a factor of 4."
    (kept,) = progress.load()["predictions"].values()
    assert kept == {"guess": 900, "was": 3600, "unit": "GB/s", "chapter": "memory"}
    field.value = "450"  # a second thought takes the first one's place
    button.click()
    assert [one["was"] for one in progress.load()["predictions"].values()] == [450]


def test_words_are_a_guess_and_are_not_kept(file):
    row, said, after = exercises.predict(unit="is K").widget().children
    row.children[0].value = "the second"
    row.children[2].click()
    assert "You say: the second" in said.value and after.children == ()


def test_a_choice_is_kept_as_right_or_not(file):
    choices, said, after = exercises.predict("4 sectors", "8 sectors").widget().children
    choices.children[1].click()
    after.children[2].click()
    assert said.value.startswith("Kept.")
    (kept,) = progress.load()["predictions"].values()
    assert kept["guess"] == "8 sectors" and kept["right"] is False


def test_elsewhere_than_in_jupyter_no_chapter_is_named(monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert chapter_here() == ""


def kept(*entries):
    """Predictions, the last one first in the file."""
    return {f"2026-01-{n + 1:02d}": one for n, one in reversed(list(enumerate(entries)))}


def test_factors_and_choices_are_in_the_order_of_their_time():
    said = kept({"guess": 2, "was": 8}, {"right": True}, {"guess": 9, "was": 3}, {"right": False})
    assert guesses.factors_of(said) == [4, 3]
    assert guesses.choices_of(said) == [True, False]


def test_what_cannot_be_read_or_has_no_factor_is_left_out():
    said = kept("text", {"guess": 0, "was": 8}, {"guess": "2", "was": 8}, {"right": "yes"}, {})
    assert guesses.factors_of(said) == guesses.choices_of(said) == []


def test_the_picture_tells_how_the_first_and_the_last_ones_were_off():
    said = kept(*({"guess": 1, "was": was} for was in (32, 16, 8, 8, 8, 2, 2, 2, 2, 100)))
    fig = guesses.guesses(said)
    assert "10 predicted numbers: the first ones off by a factor of 8, the last by 2;" in fig.alt
    (axes,) = fig.axes
    dots, median, _ = axes.lines
    assert list(dots.get_ydata()) == [32, 16, 8, 8, 8, 2, 2, 2, 2, guesses.FARTHEST]
    assert list(median.get_ydata())[-1] == 2


def test_choices_have_axes_of_their_own():
    fig = guesses.guesses(kept({"guess": 1, "was": 2}, {"right": True}, {"right": False}))
    assert len(fig.axes) == 2 and fig.alt.endswith("1 of 2 choices right")
    assert list(fig.axes[1].lines[1].get_ydata()) == [1, 0.5]


def test_without_any_it_says_how_to_keep_one(file):
    assert repr(exercises.guesses()) == guesses.NOTHING
    assert "predictions kept" not in chapter_map().headline()


def test_the_course_map_says_how_near_they_come(file):
    progress.record_prediction(progress.moment(), {"guess": 1, "was": 3})
    line = chapter_map().headline()
    assert line.endswith(" · predictions kept: 1, the last numbers off by a factor of 3")
