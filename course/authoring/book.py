"""Edits of notebooks: new cells where they belong, with what a cell must have."""

import difflib
import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from course.checking import predict
from course.publish.folded import folds
from utils.files import write_whole

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
HEADING = re.compile(r"(#+) ")
RECAP = "recap"  # the id of the cell that a chapter's end begins with


def read(path: Path):
    """A notebook as it is in the file."""
    return nbformat.v4.reads(path.read_text(encoding="utf-8"))


def write(notebook, path: Path) -> bool:
    """Write it in the one form that tests accept; whether the file is another one now."""
    text = nbformat.v4.writes(notebook) + "\n"
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    write_whole(path, text)
    return True


def text_cell(id: str, source: str):
    """A cell of prose."""
    return slid(new_markdown_cell(source, id=id))


def code_cell(id: str, source: str, *tags: str):
    """A cell of code."""
    return slid(new_code_cell(source, id=id, metadata={"tags": list(tags)} if tags else {}))


def slid(cell):
    """The cell with the slide type that such a cell usually has, where it has none; in place."""
    slide = cell.metadata.setdefault("slideshow", {})
    slide.setdefault("slide_type", usual_slide(cell))
    return cell


def usual_slide(cell) -> str:
    """Sections begin a slide, subsections and answers the next one below, the rest goes on."""
    tags = cell.metadata.get("tags", [])
    if cell.cell_type == "markdown":
        heading = HEADING.match(cell.source)
        if not heading:
            return "fragment"
        return "slide" if len(heading[1]) < 3 else "subslide"
    return "subslide" if predict.ANSWER in tags else "-"


def place_of(notebook, id: str) -> int:
    """The index of a cell. LookupError names those that are called like it, and all headings."""
    ids = [cell.get("id") for cell in notebook.cells]
    if id not in ids:
        near = difflib.get_close_matches(id, ids, n=3)
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        raise LookupError(f"no cell {id!r}. {meant}{headings(notebook)}")
    return ids.index(id)


def headings(notebook) -> str:
    """The chapter's headings with the ids of their cells, one per line."""
    lines = ["The chapter's headings, and the ids of their cells:"]
    for cell in notebook.cells:
        if is_heading(cell):
            lines.append(f"  {cell.id:24} {cell.source.splitlines()[0]}")
    return "\n".join(lines)


def usual_place(notebook) -> int:
    """Where something new goes if nobody says where: before the recap and what is folded there."""
    ids = [cell.get("id") for cell in notebook.cells]
    place = ids.index(RECAP) if RECAP in ids else len(ids)
    under = folds(notebook.cells)
    while place and under[place - 1] is not None:
        place -= 1
    return place


def behind_section(notebook, id: str) -> str:
    """The last cell before the next heading: what is put there gets none of the section's cells."""
    place = place_of(notebook, id)
    while place + 1 < len(notebook.cells) and not is_heading(notebook.cells[place + 1]):
        place += 1
    return notebook.cells[place].id


def behind_answer(notebook, id: str) -> str:
    """This cell; but of one that asks for a prediction the cell that answers it."""
    cells = notebook.cells
    place = place_of(notebook, id)
    if place + 1 < len(cells) and asks(cells[place + 1]):
        place += 1
    if asks(cells[place]) and place + 1 < len(cells):
        place += 1
    return cells[place].id


def asks(cell) -> bool:
    """Whether a cell takes the learner's prediction."""
    return predict.TAG in cell.metadata.get("tags", [])


def is_heading(cell) -> bool:
    """Whether a cell begins with a heading."""
    return cell.cell_type == "markdown" and HEADING.match(cell.source) is not None


def insert(notebook, cells, after: str | None = None) -> str:
    """Put cells behind the one of this id, or at the usual place; the id of the cell above them.

    Ids that are taken get a tail.
    """
    place = place_of(notebook, after) + 1 if after else usual_place(notebook)
    taken = {cell.get("id") for cell in notebook.cells}
    for cell in cells:
        while cell.id in taken:
            cell.id += "-2"
        taken.add(cell.id)
    above = notebook.cells[place - 1].id
    notebook.cells[place:place] = cells
    return above


def imports(notebook, name: str) -> bool:
    """Whether a code cell brings this name by an import."""
    line = re.compile(rf"^(?:from .+ )?import .*\b{re.escape(name)}\b", re.MULTILINE)
    codes = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    return any(map(line.search, codes))
