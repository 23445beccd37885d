"""The instructors' guide: its paths lead through real cells and add up, its timings are those of
the chapters.
"""

import re
from functools import cache

import pytest

from course.chapters import CHAPTERS
from tests import hygiene
from utils.files import ROOT

GUIDE = ROOT / "course" / "instructors.md"
TEXT = GUIDE.read_text(encoding="utf-8")
PATHS = {"Two hours": 120, "Four hours": 240, "Day one": 360, "Day two": 360}
ROW = re.compile(r"^\| (\d+) \| (.+?) \|(.*)\|$", re.MULTILINE)
LINK = re.compile(r"\[(\d+) · (.+?)\]\(\.\./chapters/(\w+)\.ipynb#cell-id=([\w-]+)\)")


@cache
def headings(name):
    """{cell id: its heading without the number and the minutes} of a chapter."""
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
    wrong, numbers = [], []
    for _, section in rows(path):
        if section == "a break":
            continue
        link = LINK.fullmatch(section.strip("*"))
        if not link:
            wrong.append(f"{section}: no link to a cell")
            continue
        number, title, name, cell = link.groups()
        numbers.append(int(number))
        if int(number) != int(name[:2]) or headings(name).get(cell) != title:
            wrong.append(
                f"{section}: cell {cell} of {name} has the heading {headings(name).get(cell)}"
            )
    assert wrong == []
    assert len(numbers) > 5


def timings():
    """The table as it must stand between the two markers."""
    for chapter in CHAPTERS:
        if chapter.written:
            source = "\n".join(
                cell.source
                for cell in hygiene.read(chapter.path).cells
                if cell.cell_type == "markdown"
            )
            exercises = sum(
                map(int, re.findall(r"^### .+ \((\d+) min\)\s*$", source, re.MULTILINE))
            )
            link = f"[{chapter.number} · {chapter.title}](../chapters/{chapter.name}.ipynb)"
            yield f"| {link} | {chapter.minutes} | {exercises or '–'} |"


def test_timings_are_those_of_the_chapters():
    table = re.search(r"<!-- timings.*?-->\n(.*?)<!-- /timings -->", TEXT, re.DOTALL).group(1)
    assert table.splitlines()[2:] == list(timings()), (
        "in course/instructors.md it should read:\n" + "\n".join(timings())
    )


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
