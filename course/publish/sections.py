"""A chapter as several pages of the website: one that opens it, and one for each section.

A long section goes on over several pages, each of which begins at a heading inside it (`###`).
"""

import copy
import re
from dataclasses import dataclass

HEADING = re.compile(r"(#{2,6}) (.+)")
#: What links may lead to, in the line before a heading
TARGET = re.compile(r"\([\w-]+\)=\n")
FENCE = re.compile(r"^ *(```|~~~)", re.MULTILINE)
NUMBER = re.compile(r"(\d+) · ")
#: After a section's number, on the pages after its first; their addresses do without
CONTINUED = ", continued"
TITLE = re.compile("^## .+", re.MULTILINE)
#: What belongs to the text before it, and so begins no page
APPENDED = "Exercise", "Going further"
#: Lines, of about 21 pixels on a screen of 1280: longer sections are divided, pages filled so far
LONG, FULL = 400, 280
COLUMNS, PICTURE = 100, 14  # of a line of prose; lines that a picture takes


@dataclass
class Section:
    """Some cells of a chapter. title: as the heading says it; "" for the cells before the first."""

    title: str
    cells: list

    @property
    def slug(self):
        """The title as part of an address: 4-is-it-right."""
        title = self.title.replace(CONTINUED, "", 1)
        words = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        return re.sub(r"[^a-z0-9]+", "-", words).strip("-")


def sections(notebook):
    """The notebook's cells by page; the first holds what stands before all sections."""
    first, *rest = cut(Section("", notebook.cells), 2)
    return [first, *(page for section in rest for page in divided(section))]


def cut(section, level):
    """The section's cells, cut before each heading of the level; first those before any."""
    found = [Section(section.title, [])]
    for cell in section.cells:
        title = title_of(cell, level)
        if title:
            found.append(Section(title, []))
        found[-1].cells.append(cell)
    return found


def title_of(cell, level):
    """The heading of this level with which the cell begins, or ""."""
    if cell.cell_type != "markdown":
        return ""
    heading = HEADING.match(TARGET.sub("", cell.source, count=1))
    return heading[2] if heading and len(heading[1]) == level else ""


def divided(section):
    """The pages of a section: itself, or, where it is long, several, which say whose they are."""
    if length(section) <= LONG:
        return [section]
    number = NUMBER.match(section.title)
    first, *parts = cut(section, 3)
    pages = [first]
    for part in parts:
        joins = part.title.startswith(APPENDED)
        if joins or length(pages[-1]) + length(part) <= FULL:
            pages[-1].cells.extend(part.cells)
        else:
            pages.append(page_of(part, f"{number[1]}{CONTINUED} · " if number else ""))
    return pages


def page_of(part, whose):
    """A part of a section as a section of its own. whose: what its title begins with."""
    cells = [with_headings_raised(cell) for cell in part.cells]
    title = f"{whose}{part.title}"
    cells[0].source = TITLE.sub(lambda _: f"## {title}", cells[0].source, count=1)
    return Section(title, cells)


def length(section):
    """How many lines a section takes on the screen, about."""
    return sum(map(lines, section.cells))


def lines(cell):
    """How many lines a cell takes, about: its text, what it printed, its pictures."""
    text = cell.source.split("\n")
    if cell.cell_type == "markdown":
        return 2 + sum(1 + len(line) // COLUMNS for line in text)
    if "hide-output" in cell.metadata.get("tags", []):
        return 2 + len(text)
    return 2 + len(text) + sum(map(lines_of_output, cell.outputs))


def lines_of_output(output):
    """How many lines an output takes, about."""
    data = output.get("data", {})
    if "image/png" in data or re.search(r"<svg|<img", data.get("text/html", "")):
        return PICTURE
    return len((output.get("text") or data.get("text/plain", "")).split("\n"))


def as_notebook(section, notebook):
    """A notebook of the section alone, its headings one level up: a page begins with a title."""
    page = copy.copy(notebook)
    page.cells = [with_headings_raised(cell) for cell in section.cells]
    return page


def with_headings_raised(cell):
    """A copy of the cell; if it is text, its headings one level up."""
    cell = copy.deepcopy(cell)
    if cell.cell_type == "markdown":
        cell.source = raised(cell.source)
    return cell


def raised(markdown):
    """The text with `##` as `#` and so on; what stands in code blocks stays."""
    text = []
    in_code = False
    for line in markdown.split("\n"):
        in_code ^= bool(FENCE.match(line))
        heading = None if in_code else HEADING.match(line)
        text.append(line[1:] if heading else line)
    return "\n".join(text)
