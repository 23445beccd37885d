"""Sliders of chapters ask for one picture a move, or have all pictures with them."""

import base64
import json
import re
import zlib

import pytest
from ipywidgets import Dropdown
from playwright.sync_api import expect

from course.chapters import notebooks
from tests import hygiene
from utils import widgets
from utils.plots.svg import Drawing
from utils.widgets import drawn_of, fields_of, interact, slider


def test_a_slider_speaks_when_it_is_let_go():
    made = slider(5, 1, 8, 2)
    assert (made.value, made.min, made.max, made.step) == (5, 1, 8, 2)
    assert made.continuous_update is False


def test_interact_gives_its_value():
    got = []
    shown = interact(lambda n: got.append(n), n=slider(5, 1, 8))
    shown.widget.children[0].value = 6
    assert got[-2:] == [5, 6]


def squares(n, colour="blue"):
    """A picture of n squares."""
    sheet = Drawing(20 * n, 20, alt=f"{n} {colour} squares")
    for k in range(n):
        sheet.box(20 * k, 0, 18, 18, fill=colour)
    return sheet


def pages_of(drawn):
    """The pictures that an output has with it, in the order of the positions."""
    packed = re.search(r'"([A-Za-z0-9+/=]{40,})"\)</script>', drawn.html)[1]
    every = json.loads(zlib.decompress(base64.b64decode(packed)))
    return [every["frames"][number] for number in every["order"]]


COLOURS = Dropdown(options={"sky": "#88c0ff", "grass": "#88c088"})


def test_what_is_quick_is_drawn_at_every_position():
    fields = fields_of({"n": slider(2, 1, 4), "colour": COLOURS})
    drawn = drawn_of(squares, fields)
    assert drawn.is_whole and len(drawn.pages) == 8
    assert "2 #88c0ff squares" in drawn.one[1]
    said = [re.search(r'aria-label="([^"]+)"', page)[1] for page in pages_of(drawn)]
    assert said == [f"{n} {hue} squares" for n in range(1, 5) for hue in ("#88c0ff", "#88c088")]


def test_of_what_is_slow_a_recording_draws_some(monkeypatch):
    monkeypatch.setattr(widgets, "QUICK", 0)
    fields = fields_of({"n": slider(37, 1, 200)})
    assert drawn_of(squares, fields) is None
    monkeypatch.setenv(widgets.DRAW, "all")
    drawn = drawn_of(squares, fields)
    (field,) = drawn.fields
    assert not drawn.is_whole and len(drawn.pages) <= widgets.MOST
    assert field.values[field.first] == 37 and field.labels == field.values


def test_what_prints_or_fails_is_left_to_ipywidgets():
    fields = fields_of({"n": slider(0, 0, 3)})
    assert "<pre>n is 2" in drawn_of(lambda n: print("n is", n), fields).pages[2][0]
    assert drawn_of(lambda n: 1 / n, fields) is None


@pytest.mark.parametrize("draw", [lambda n: print(n), lambda n: 1 / n])
def test_a_function_can_be_called_after_it_was_given_a_slider(draw):
    assert interact(draw, n=slider(0, 0, 3)) is draw


def test_it_is_moved_without_python(page):
    drawn = drawn_of(squares, fields_of({"n": slider(2, 1, 5), "colour": COLOURS}))
    page.set_content(drawn.html)
    picture = page.locator(".course-frame svg")
    expect(picture).to_have_attribute("aria-label", "2 #88c0ff squares")
    page.get_by_role("slider", name="n").focus()
    page.keyboard.press("ArrowRight")
    expect(picture).to_have_attribute("aria-label", "3 #88c0ff squares")
    expect(page.get_by_role("status").last).to_have_text("3 #88c0ff squares")
    page.get_by_role("combobox", name="colour").select_option("grass")
    expect(picture).to_have_attribute("aria-label", "3 #88c088 squares")
    page.get_by_role("button", name="play n").click()
    expect(picture).to_have_attribute("aria-label", "5 #88c088 squares")


@pytest.mark.parametrize("path", notebooks())
def test_no_chapter_has_a_slider_that_queues(path):
    for cell in hygiene.read(path).cells:
        if cell.cell_type == "code" and re.search(r"\b(Int|Float)Slider\(", cell.source):
            assert "continuous_update=False" in cell.source, cell.id
