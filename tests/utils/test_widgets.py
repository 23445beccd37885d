"""Sliders of chapters ask for one picture a move."""

import re

import pytest

from course.chapters import notebooks
from tests import hygiene
from utils.widgets import interact, slider


def test_a_slider_speaks_when_it_is_let_go():
    made = slider(5, 1, 8, 2)
    assert (made.value, made.min, made.max, made.step) == (5, 1, 8, 2)
    assert made.continuous_update is False


def test_interact_gives_its_value():
    got = []
    shown = interact(lambda n: got.append(n), n=slider(5, 1, 8))
    shown.widget.children[0].value = 6
    assert got == [5, 6]


@pytest.mark.parametrize("path", notebooks())
def test_no_chapter_has_a_slider_that_queues(path):
    for cell in hygiene.read(path).cells:
        if cell.cell_type == "code" and re.search(r"\b(Int|Float)Slider\(", cell.source):
            assert "continuous_update=False" in cell.source, cell.id
