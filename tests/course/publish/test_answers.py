"""What is said of a prediction's answer on the website: folded until the guess is made."""

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course.chapters import CHAPTERS
from course.publish.answers import AS_SAVED, CLOSE, OPEN, fold_answers, folded, noted, told


def question():
    return new_code_cell("exercises.predict('a', 'b')", metadata={"tags": ["predict"]})


def test_the_first_text_below_the_cell_that_answers_is_folded():
    first, said = new_markdown_cell("What is it?"), new_markdown_cell("It is b.")
    later = new_markdown_cell("And more.")
    cells = [first, question(), new_code_cell("show()"), said, later]
    fold_answers(cells, told(cells))
    assert [first.source, later.source] == ["What is it?", "And more."]
    assert said.source == f"{OPEN}\n\nIt is b.\n\n{CLOSE}"


def test_the_answer_stands_below_the_cell_whose_output_is_folded():
    """Text and cells that come before it only prepare it."""
    run = new_code_cell("show()", metadata={"tags": ["hide-output"]})
    before, said = new_markdown_cell("PyTorch lets us watch."), new_markdown_cell("It is b.")
    cells = [question(), before, *[new_code_cell("def f(): …")] * 3, run, run, said]
    assert told(cells) == {said.id}


def test_a_question_in_words_has_its_answer_folded_where_the_output_is():
    run = new_code_cell("show()", metadata={"tags": ["hide-output"]})
    asks, says = new_markdown_cell("Look.\n\nWhich saved most?"), new_markdown_cell("The last.")
    assert told([asks, run, says]) == {says.id}
    assert told([asks, new_code_cell("show()"), says]) == set()
    assert told([new_markdown_cell("Is it? No.\n\nLook."), run, says]) == set()


def test_what_ran_before_the_readers_change_says_so():
    shown = new_output("stream", text="right\n")
    run = new_code_cell("show()", outputs=[shown], metadata={"tags": ["break-it"]})
    for text, is_noted in ("### Break it: a stride", True), ("What happens?", False):
        cells = noted([new_markdown_cell(text), question(), run])
        assert (cells[-1].source == AS_SAVED) == is_noted


def test_a_text_that_answers_nothing_stays_open():
    at_once = [question(), new_markdown_cell("Write it down."), new_code_cell("show()")]
    anothers = [question(), new_code_cell("show()"), question(), new_markdown_cell("Guess.")]
    assert told(at_once) == told(anothers) == set()


def test_neither_a_heading_nor_the_next_question_is_folded():
    assert folded("b.\n\nFor c.\n\n### Next\n\nText") == (
        f"{OPEN}\n\nb.\n\nFor c.\n\n{CLOSE}\n\n### Next\n\nText"
    )
    assert (
        folded("b.\n\nNow c. *Predict:* d?") == f"{OPEN}\n\nb.\n\n{CLOSE}\n\nNow c. *Predict:* d?"
    )
    for text in "### Next\n\nText", "*Predict:* d?":
        assert folded(text) == text


def test_a_links_target_stays_where_it_is():
    assert folded("(memory-next)=\n### Next") == "(memory-next)=\n### Next"
    assert folded("(memory-said)=\nb.") == f"(memory-said)=\n{OPEN}\n\nb.\n\n{CLOSE}"


def test_the_chapters_answers_are_found():
    by_name = {chapter.key: chapter.path for chapter in CHAPTERS}
    for key, ids in {
        "attention": {"turns-explain", "break-turn-explain"},
        "first_kernels": {"sweep-explain"},
    }.items():
        cells = nbformat.read(by_name[key], as_version=4).cells
        assert ids <= told(cells)
