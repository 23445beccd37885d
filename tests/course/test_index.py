"""The start page: complete, and its kept outputs agree with what is there now."""

import re

import nbformat
import pytest

from course import exercises
from course.chapters import CHAPTERS, LONGEST_WAY, ROUTE, TITLE
from course.pictures import chapter_map
from course.publish import minutes, tables
from tests import hygiene
from utils.files import ROOT

PATH = ROOT / "course" / "index.ipynb"


@pytest.fixture(scope="module")
def cells():
    return {cell.id: cell for cell in nbformat.read(PATH, 4).cells}


def text_of(cell):
    """The plain text that a reader sees under a cell."""
    return "".join(output.data["text/plain"] for output in cell.outputs if "data" in output)


def test_it_has_what_a_newcomer_needs(cells):
    sources = [cell.source for cell in cells.values()]
    assert any(source.startswith("# ") for source in sources)
    assert any("machine()" in source for source in sources)
    assert any("chapter_map()" in source for source in sources)
    assert exercises.starter("start.hello") in sources
    assert any('exercises.check("start.hello", hello)' in source for source in sources)
    assert any("Where to go" in source for source in sources)


def test_each_chapter_says_the_minutes_that_the_map_says():
    for chapter in CHAPTERS:
        if chapter.written:
            title = hygiene.read(chapter.path).cells[0].source
            assert re.search(r"about (\d+) minutes", title)[1] == str(chapter.minutes), chapter.name


def test_prose_comes_in_short_cells(cells):
    for cell in cells.values():
        if cell.cell_type == "markdown" and cell.id != "chapters":  # a list
            assert len(cell.source) < 500, cell.id


@pytest.mark.parametrize(
    "id, today",
    [("map", chapter_map.ChapterMap(set(), set())), ("evenings", chapter_map.evenings())],
)
def test_the_kept_map_is_that_of_today_with_nothing_done(cells, id, today):
    (output,) = cells[id].outputs
    says = "`make tables` writes it"
    assert output.data["text/plain"].splitlines() == repr(today).splitlines(), says
    assert output.data["text/html"] == today._repr_html_(), says


def test_its_first_screen_has_a_film_and_the_chapters(cells):
    first = list(cells)[:6]
    assert "../assets/readme.gif" in cells["film"].source and "film" in first
    assert cells["chapters"].source == tables.chapter_lines() and "chapters" in first


def test_the_way_to_the_finale_is_made_of_evenings_in_the_order_of_the_list():
    keys = [chapter.key for chapter in CHAPTERS]
    assert list(ROUTE) == [key for key in keys if key in ROUTE]
    assert list(ROUTE)[-1] == "beating_pytorch"
    assert all(chapter.written for chapter in chapter_map.route())
    whole = sum(chapter.minutes for chapter in chapter_map.route())
    assert whole <= LONGEST_WAY, f"{whole} minutes are more than {LONGEST_WAY}"


def test_the_kept_outputs_are_nobodys_progress(cells):
    assert re.match(r"0 of \d+ exercises solved", text_of(cells["map"]))
    assert "this is still the starter" in text_of(cells["check"])


def test_the_course_has_one_title(cells):
    assert cells["title"].source.splitlines()[0] == f"# {TITLE}"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search("^#.*", readme, re.M).group() == f"# {TITLE}"


def test_four_ways_lead_in_and_the_finale_takes_an_hour(cells):
    """Ground up, the route, kernels now, and a walk through the finale of about an hour."""
    assert "01_ecosystem" in cells["way-ground"].source
    kernels = re.findall(r"chapters/(\w+)\.ipynb", cells["way-kernels"].source)
    assert [name[3:] for name in kernels] == ["first_kernels", "memory", "synchronization"]
    walk = cells["way-finale-cnn"].source + cells["way-finale-race"].source
    places = re.findall(r"chapters/(\w+)\.ipynb#cell-id=([\w-]+)", walk)
    assert len(places) == 8
    assert 40 <= sum(minutes.of_section(*place) for place in places) <= 75  # an hour, with talk
