"""Chapters refer to each other by name and link, never by number: only the list of chapters knows
their order. Links to a cell name one that is there.
"""

import functools
import re

import nbformat
import pytest

from course.chapters import CHAPTERS, WRITTEN, notebooks
from utils.files import ROOT

NUMBERED = re.compile(r"\bchapters?\s+\d+", re.IGNORECASE)
CELL_LINK = re.compile(r"\]\((?:[\w./]*/)?(\w+)\.ipynb#cell-id=([\w-]+)\)")
# What a reader of the course sees besides notebooks, and the code that writes it
TEXTS = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")]
    + [ROOT / "assets" / "data" / "ecosystem.json"]
    + list((ROOT / "course").glob("*.md"))
    + list((ROOT / "course").rglob("*.py"))
)


def numbered(text):
    """Each reference to a chapter by its number, with some of what stands before it."""
    return [text[max(0, m.start() - 40) : m.end()] for m in NUMBERED.finditer(text)]


@pytest.mark.parametrize("path", notebooks())
def test_a_notebook_names_chapters(path):
    cells = nbformat.read(path, as_version=4).cells
    assert {cell.id: found for cell in cells if (found := numbered(cell.source))} == {}


@pytest.mark.parametrize("chapter", WRITTEN)
def test_a_chapters_title_is_that_of_the_list(chapter):
    first = nbformat.read(chapter.path, as_version=4).cells[0].source
    assert first.splitlines()[0] == f"# {chapter.title}"


def test_texts_name_chapters():
    found = {path: numbered(path.read_text(encoding="utf-8")) for path in TEXTS}
    assert {str(path.relative_to(ROOT)): said for path, said in found.items() if said} == {}


@functools.cache
def cell_ids(name):
    """The ids of the cells of a chapter or of the start page; none where there is none of it."""
    paths = {path.stem: path for path in notebooks()}
    if name not in paths:
        return set()
    return {cell.id for cell in nbformat.read(paths[name], as_version=4).cells}


@pytest.mark.parametrize("path", notebooks())
def test_links_lead_to_cells(path):
    cells = nbformat.read(path, as_version=4).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    links = CELL_LINK.findall(prose)
    assert [link for link in links if link[1] not in cell_ids(link[0])] == []


@pytest.mark.parametrize(
    "text, count",
    [
        ("see chapter 6", 1),
        ("Chapters 5 to 7 and chapter\n8", 2),
        ("[Memory](06_memory.ipynb), section 6; a chapter of its own", 0),
        ("https://x.org/chapter-39-parallel", 0),
    ],
)
def test_a_number_is_found(text, count):
    assert len(numbered(text)) == count


RUNG = re.compile(r"^#+ .*\b[Rr]ung (\d+)\b", re.MULTILINE)


def rungs(chapter):
    """The numbers of the rungs in a chapter's headings, as they come."""
    cells = nbformat.read(chapter.path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return [int(number) for number in RUNG.findall(text)]


def test_the_rungs_of_the_matmul_ladder_are_counted_through():
    """Over both of its chapters: a new rung moves all that follow."""
    both = [rungs(chapter) for chapter in CHAPTERS if chapter.key in ("matmul", "tensor_cores")]
    numbers = [number for numbers in both for number in numbers]
    assert numbers == list(range(1, len(numbers) + 1))
