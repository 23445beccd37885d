"""A chapter says the minutes that it takes, and something to do is never far away."""

import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course.chapters import WRITTEN
from course.publish import minutes
from course.publish.folded import FOLDED
from tests import hygiene

#: Chapters to shorten yet: minutes (whole, longest stretch without writing). Only better.
TODAY = {}


@pytest.mark.parametrize("chapter", WRITTEN)
def test_the_stated_minutes_are_those_of_the_rule(chapter):
    by_rule = minutes.of_chapter(chapter).all
    assert minutes.is_close(chapter.minutes, by_rule), f"by the rule {by_rule:.0f}"


@pytest.mark.parametrize("chapter", WRITTEN)
def test_a_chapter_is_an_evening_with_something_to_write_every_ten_minutes(chapter):
    took = minutes.of_chapter(chapter)
    now = round(took.all), round(max(took.stretches))
    known = TODAY.get(chapter.key)
    if known is None:
        assert now[0] <= minutes.WHOLE, f"{now[0]} minutes: fold what nobody needs, or split it"
        before = [round(stretch) for stretch in took.stretches]
        assert now[1] <= minutes.LONGEST, f"minutes before each thing to write: {before}"
        return
    assert all(map(int.__le__, now, known)), f"{now} (whole, longest stretch), and it was {known}"
    mended = now[0] <= minutes.WHOLE and now[1] <= minutes.LONGEST
    assert not mended, f"take {chapter.key} out of TODAY: it keeps the rule now"


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


def test_a_cell_that_asks_for_more_than_a_line_says_its_minutes():
    change = code("tried(kernel)", minutes.BREAK_IT)
    plain = minutes.minutes_of([change])
    change.metadata[minutes.BUILD] = 12
    built = minutes.minutes_of([change])
    assert built.exercises == plain.exercises + 12 and built.stretches == plain.stretches


def test_short_chapters_may_be_rounded_to_five_minutes():
    assert minutes.is_close(5, 2.9) and minutes.is_close(110, 100)
    assert not minutes.is_close(10, 7) and not minutes.is_close(112, 100)


def test_a_line_is_new_once():
    cells = [code("a = 1\nb = 2"), code("a = 1\nc = 3")]
    assert minutes.minutes_of(cells).all == pytest.approx(3 * minutes.LINE)


def test_what_a_change_adds_and_what_is_printed_are_read():
    change = code("source.change(OLD, NEW)")
    change.outputs = [new_output("execute_result", {"text/plain": "  kept\n- gone\n+ new"})]
    assert minutes.listed(change) == ["new"]
    printed = code("print(source.function(FILE, 'kernel'))")
    printed.outputs = [new_output("stream", text="int a = 1;\n\nint b = 2;\n")]
    assert minutes.listed(printed) == ["int a = 1;", "int b = 2;"]


def test_waiting_counts():
    slow = code("train()")
    slow.metadata[minutes.WAIT] = 90
    assert minutes.reading(slow) == pytest.approx(minutes.LINE + 1.5)


def test_an_exercise_ends_a_stretch_and_brings_its_own_minutes():
    check = code('exercises.check("start.hello", hello)')
    starter = code("def hello(): ...", "exercise")
    cells = [text(minutes.WORDS), starter, check, check, text(2 * minutes.WORDS)]
    took = minutes.minutes_of(cells)
    assert took.stretches == pytest.approx((1, 2))
    assert took.exercises == minutes.EXERCISES["start.hello"].minutes
    assert took.all == pytest.approx(3 + took.exercises)


def test_a_line_to_change_ends_a_stretch():
    broken = code("run()", minutes.BREAK_IT)
    took = minutes.minutes_of([text(minutes.WORDS), broken, text(minutes.WORDS)])
    assert took.stretches == pytest.approx((1, 1 + minutes.CHANGE + minutes.LINE))


def test_a_question_takes_a_minute_and_is_no_writing():
    cells = [text(minutes.WORDS), code('exercises.quiz("a.q")'), text(minutes.WORDS)]
    took = minutes.minutes_of(cells)
    assert took.stretches == pytest.approx((2 + minutes.QUESTION,))
    assert took.reading == took.stretches[0]


def test_what_is_folded_is_not_counted():
    heading = new_markdown_cell("### Going further: more", metadata={FOLDED: True})
    short, long = text(minutes.WORDS), text(10 * minutes.WORDS)
    cells = [short, heading, long, new_markdown_cell("## Next"), short]
    assert minutes.minutes_of(cells).all == pytest.approx(2, abs=0.1)
