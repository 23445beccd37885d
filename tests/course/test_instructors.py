"""The instructors' guide: its paths lead through real cells and add up."""

import re
from functools import cache

import pytest

from course.chapters import CHAPTERS
from course.hub import rehearsal
from tests import hygiene
from utils.files import ROOT

GUIDE = ROOT / "course" / "instructors.md"
TEXT = GUIDE.read_text(encoding="utf-8")
PAGE = "board.html", "board.js"
PATHS = {"Two hours": 120, "Four hours": 240, "Day one": 360, "Day two": 360}
ROW = re.compile(r"^\| (\d+) \| (.+?) \|(.*)\|$", re.MULTILINE)
LINK = re.compile(r"\[(.+?) · (.+?)\]\(\.\./chapters/(\w+)\.ipynb#cell-id=([\w-]+)\)")
TITLES = {chapter.name: chapter.title for chapter in CHAPTERS}


@cache
def headings(name):
    """{cell id: its heading without its number and the minutes} of a chapter."""
    cells = hygiene.read(ROOT / "chapters" / f"{name}.ipynb").cells
    found = {
        cell.id: re.match(r"#+ (?:\d+ · )?(.+?)(?: \(\d+ min\))?\s*$", cell.source, re.MULTILINE)
        for cell in cells
        if cell.cell_type == "markdown"
    }
    return {id: match[1] for id, match in found.items() if match}


def rows(path):
    """(minutes, section) of a path's table."""
    part = re.search(rf"^###+ {path}.*?(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert part, f"no path {path}"
    return [(int(minutes), section) for minutes, section, _ in ROW.findall(part.group())]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_takes_the_time_it_promises(path):
    assert sum(minutes for minutes, _ in rows(path)) == PATHS[path]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_leads_through_real_sections(path):
    wrong, right = [], 0
    for _, section in rows(path):
        if section == "a break":
            continue
        link = LINK.fullmatch(section.strip("*"))
        if not link:
            wrong.append(f"{section}: no link to a cell")
            continue
        chapter, title, name, cell = link.groups()
        if chapter == TITLES.get(name) and title == headings(name).get(cell):
            right += 1
        else:
            heading = headings(name).get(cell)
            wrong.append(f"{section}: cell {cell} of {TITLES.get(name)} has the heading {heading}")
    assert wrong == []
    assert right > 5


def test_other_links_lead_somewhere():
    targets = [
        target.partition("#")[0]
        for _, _, target in hygiene.MARKDOWN_LINK.findall(hygiene.without_code(TEXT))
        if not re.match(r"https?:", target)
    ]
    assert [target for target in targets if target and not (GUIDE.parent / target).exists()] == []


def test_named_commands_and_files_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for verb in set(re.findall(r"`(?:\w+=\w+ )?make (\w+)`", TEXT)):
        assert re.search(rf"^{verb}:", makefile, re.MULTILINE), verb
    for name in re.findall(r"`((?:chapters|course|utils|assets)/[\w./-]+)`", TEXT):
        assert (ROOT / name).exists(), name


def test_what_the_guide_quotes_of_the_rehearsal_it_says():
    part = re.search(
        r"^### Is the machine large enough\?.*?(?=^###)", TEXT, re.MULTILINE | re.DOTALL
    )
    quoted = re.findall(r"^\| \*(.+?)\* \|", part[0], re.MULTILINE)
    source = (ROOT / "course" / "hub" / "rehearsal.py").read_text(encoding="utf-8")
    pieces = [piece.strip() for text in quoted for piece in re.split(r"\.\.\.|\d+", text)]
    assert len(quoted) == 4 and [piece for piece in pieces if piece not in source] == []
    assert f"more than {rehearsal.ON_TIME:g} s: the rehearsal fails" in part[0]


def test_the_boards_links_and_buttons_are_called_what_the_guide_calls_them():
    static = ROOT / "course" / "hub" / "board" / "static"
    page = "".join((static / name).read_text(encoding="utf-8") for name in PAGE)
    named = ("Let learners in", "Your notebooks", "Servers", "Put on the wall", "Show the answer")
    named += ("I was there", "Learners", "Where the class is")
    assert [name for name in named if name not in page or f"*{name}*" not in TEXT] == []
