"""Folded sections on the website."""

from nbformat.v4 import new_code_cell, new_markdown_cell

from course.publish.folded import FOLDED
from course.publish.unfolding import CLOSE, OPEN, unfoldable


def heading(source, folded=False):
    return new_markdown_cell(source, metadata={FOLDED: folded})


def shown(*cells):
    return [cell.source for cell in unfoldable(list(cells))]


def test_what_is_folded_stands_between_details():
    page = shown(
        heading("### More", folded=True),
        new_markdown_cell("#### Deeper\nwords"),
        new_code_cell("1 + 1  # no heading"),
        heading("### Next"),
    )
    inside = ["**Deeper**\nwords", "1 + 1  # no heading"]
    assert page == ["### More", OPEN, *inside, CLOSE, "### Next"]


def test_two_in_a_row_and_one_at_the_end_are_closed():
    page = shown(
        heading("(target)=\n### A", folded=True), new_code_cell("a"), heading("### B", folded=True)
    )
    assert page == ["(target)=\n### A", OPEN, "a", CLOSE, "### B", OPEN, CLOSE]


def test_a_section_that_is_a_page_is_left_as_it_is():
    cells = heading("## A", folded=True), new_code_cell("a"), heading("## B")
    assert shown(*cells) == ["## A", "a", "## B"]
