"""matplotlib's SVG in fewer characters: as many shapes, each in the same place and colours."""

from xml.etree import ElementTree as ET

import pytest

from utils.plots import picture
from utils.plots.compact import compact, short_path, style_of

DRAWN = "path", "text", "use", "image"
NOTHING = "<svg xmlns='http://www.w3.org/2000/svg'>{}</svg>"


def shapes(drawn):
    """What an SVG draws, in order: (name, attributes with those of the groups around, text)."""
    found = []

    def walk(node, inherited):
        own = {name: value for name, value in node.attrib.items() if name != "style"}
        said = {**inherited, **own, **style_of(node)}
        name = node.tag.rsplit("}")[-1]
        if name in DRAWN:
            path = short_path(said.pop("d")) if "d" in said else ""
            found.append((name, said, path, "".join(node.itertext())))
        for child in node:
            walk(child, said if name == "g" else {})

    walk(ET.fromstring(drawn), {})
    return found


def busy_figure():
    """Bars, lines with markers, a grid of cells, letters turned and not, a see-through area."""
    fig = picture.figure(4, 3, alt="busy")
    axes, empty = fig.subplots(1, 2)
    bars = axes.bar(range(12), range(1, 13), color=["#56B4E9", "#F0C36D"] * 6)
    axes.bar_label(bars, fontsize=7)
    axes.plot([0, 5, 9], [3, 9, 4], "o-", color="#0072B2")
    axes.axvspan(2, 4, alpha=0.3)
    axes.text(3, 3, "turned & <small>", rotation=30)
    axes.text(1, 9, "$x^2$")
    empty.set_axis_off()
    empty.plot([], [])  # nothing: an empty group in matplotlib's SVG
    return fig


def test_every_shape_is_where_it_was(monkeypatch):
    monkeypatch.setattr(picture, "compact", lambda drawn: drawn)
    before = picture.themed(busy_figure())
    after = compact(before)
    assert shapes(after) == shapes(before)
    assert len(after) < 0.75 * len(before)
    assert compact(after) == after


def test_a_group_never_takes_opacity():
    see_through = '<path d="M 0 0 L 9 0 z" style="fill: red; opacity: 0.5; stroke: none"/>'
    drawn = compact(NOTHING.format(see_through * 5))
    assert drawn.count("opacity:0.5") == 5
    assert drawn.count("stroke:none") == 1


def test_a_clip_stays_with_a_shape_that_is_moved():
    moved = '<path d="M 0 0 z" clip-path="url(#a)" transform="translate(1 1)" style="fill: red"/>'
    assert compact(NOTHING.format(moved * 4)).count("clip-path") == 4


def test_groups_that_say_nothing_go_with_or_without_content():
    drawn = compact(NOTHING.format("<g/><g><g/><path d='M 0 0 '/></g><g style='fill: red'/>"))
    assert shapes(drawn) == [("path", {}, "M0 0", "")]
    assert drawn.count("<g") == 1


@pytest.mark.parametrize(
    "long, short",
    [
        ("M 1.50 2.00 L 9 2.00 L 9 7.25 L 1.50 7.25 z ", "M1.5 2H9V7.25H1.5z"),
        ("M 0 0 L 3 4 Q 1 2 3 4 L 3 9 ", "M0 0L3 4Q1 2 3 4V9"),
        ("M 0 0 A 1 1 0 0 0 2 2 ", "M 0 0 A 1 1 0 0 0 2 2 "),
        ("M 100 10 L 100.0 20 ", "M100 10V20"),
    ],
)
def test_short_paths(long, short):
    assert short_path(long) == short
