"""A chapter as several pages of the website: one that opens it, and one for each section."""

import copy
import re
from dataclasses import dataclass

HEADING = re.compile(r"(#{2,6}) (.+)")
#: What links may lead to, in the line before a heading
TARGET = re.compile(r"\([\w-]+\)=\n")
FENCE = re.compile(r"^ *(```|~~~)", re.MULTILINE)


@dataclass
class Section:
    """Some cells of a chapter. title: as the heading says it; "" for the cells before the first."""

    title: str
    cells: list

    @property
    def slug(self):
        """The title as part of an address: 4-is-it-right."""
        words = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", self.title).lower()
        return re.sub(r"[^a-z0-9]+", "-", words).strip("-")


def sections(notebook):
    """The notebook's cells by section (`##`), the first of which holds what stands before."""
    found = [Section("", [])]
    for cell in notebook.cells:
        title = title_of(cell)
        if title:
            found.append(Section(title, []))
        found[-1].cells.append(cell)
    return found


def title_of(cell):
    """The title of the section that begins with the cell, or ""."""
    if cell.cell_type != "markdown":
        return ""
    heading = HEADING.match(TARGET.sub("", cell.source, count=1))
    return heading[2] if heading and heading[1] == "##" else ""


def as_notebook(section, notebook):
    """A notebook of the section alone, its headings one level up: a page begins with a title."""
    page = copy.copy(notebook)
    page.cells = copy.deepcopy(section.cells)
    for cell in page.cells:
        if cell.cell_type == "markdown":
            cell.source = raised(cell.source)
    return page


def raised(markdown):
    """The text with `##` as `#` and so on; what stands in code blocks stays."""
    lines = []
    in_code = False
    for line in markdown.split("\n"):
        in_code ^= bool(FENCE.match(line))
        heading = None if in_code else HEADING.match(line)
        lines.append(line[1:] if heading else line)
    return "\n".join(lines)
