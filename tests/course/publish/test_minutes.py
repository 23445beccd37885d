"""A chapter says the minutes that it takes, and something to do is never far away."""

import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course.chapters import WRITTEN
from course.publish import minutes
from course.publish.folded import FOLDED
from tests import hygiene

CLOSE = 0.2  # of the minutes by the rule


@pytest.mark.parametrize("chapter", WRITTEN)
def test_the_stated_minutes_are_those_of_the_rule(chapter):
    by_rule = minutes.of_chapter(chapter).all
    assert abs(chapter.minutes - by_rule) <= CLOSE * by_rule, f"by the rule {by_rule:.0f}"


@pytest.mark.parametrize("chapter", WRITTEN)
def test_an_exercise_or_a_question_is_never_far(chapter):
    stretches = [round(stretch) for stretch in minutes.of_chapter(chapter).stretches]
    assert max(stretches) <= minutes.LONGEST, f"minutes of reading before each: {stretches}"


@pytest.mark.parametrize("chapter", WRITTEN)
def test_the_title_says_what_comes_to_the_minutes(chapter):
    title = hygiene.read(chapter.path).cells[0].source
    exercises = round(minutes.of_chapter(chapter).exercises)
    reading = chapter.minutes - exercises
    words = f"about {chapter.minutes} minutes: {reading} to read and run, {exercises} for the"
    said = re.search("about .* minutes.*", title)
    assert f"{words} exercises" in title, said and said[0]


# ---- the rule itself


def text(words, **metadata):
    return new_markdown_cell(" ".join(["word"] * words), metadata=metadata)


def code(source, *tags):
    return new_code_cell(source, metadata={"tags": list(tags)})


def test_words_lines_and_runs_are_counted():
    shown = code("a = 1\n\nb = 2\na + b")
    shown.outputs = [new_output("stream", text="3")]
    assert minutes.reading(text(2 * minutes.WORDS)) == pytest.approx(2)
    assert minutes.reading(shown) == pytest.approx(3 * minutes.LINE + minutes.RUN)
    assert minutes.reading(code("# exercises.hint('x')\n# exercises.solution('x')")) == 0
    assert minutes.reading(new_markdown_cell("[word](https://a.b/c/d/e)")) == 1 / minutes.WORDS
    assert minutes.reading(text(500, slideshow={"slide_type": "notes"})) == 0


def test_code_that_a_cell_shows_is_read_too():
    shown = code("source.function(FILE, 'kernel')")
    fence = {"text/plain": "a", "text/markdown": "```cuda\nint a = 1;\n\nint b = 2;\n```"}
    shown.outputs = [new_output("execute_result", fence)]
    assert minutes.reading(shown) == pytest.approx(3 * minutes.LINE + minutes.RUN)
    shown.outputs = [new_output("execute_result", {"text/markdown": "**a sentence**"})]
    assert minutes.reading(shown) == pytest.approx(minutes.LINE + minutes.RUN)


def test_an_exercise_ends_a_stretch_and_brings_its_own_minutes():
    check = code('exercises.check("start.hello", hello)')
    cells = [text(238), code("def hello(): ...", "exercise"), check, check, text(476)]
    took = minutes.minutes_of(cells)
    assert took.stretches == pytest.approx((1, 2))
    assert took.exercises == minutes.EXERCISES["start.hello"].minutes
    assert took.all == pytest.approx(3 + took.exercises)


def test_a_question_ends_a_stretch_and_takes_a_minute():
    took = minutes.minutes_of([text(238), code('exercises.quiz("a.q")'), text(238)])
    assert took.stretches == pytest.approx((1, 1))
    assert took.reading == pytest.approx(2 + minutes.QUESTION)


def test_what_is_folded_is_not_counted():
    heading = new_markdown_cell("### Going further: more", metadata={FOLDED: True})
    cells = [text(238), heading, text(2380), new_markdown_cell("## Next"), text(238)]
    assert minutes.minutes_of(cells).all == pytest.approx(2, abs=0.1)
