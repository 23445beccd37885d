"""Carry answers from one copy of the course to another, as one JSON file.

    make answers                        writes my/answers.json: every cell that you changed
    make answers FROM=answers.json      puts them into the copies here

The file holds {chapter: {cell's id: source}}; the chapter bears its name without the number, which
may change.
"""

import json
from pathlib import Path

import nbformat

from course.copies.merge import changed_cells
from course.copies.workspace import MINE, UNREADABLE, keep_aside, notebook, pairs
from utils.files import write_whole


def answers(folder: Path = MINE) -> dict[str, dict[str, str]]:
    """What the learner wrote: {chapter: {cell's id: source}}. Unreadable copies are left out."""
    found = {}
    for place, copy, made_from in pairs(folder):
        try:
            cells = changed_cells(notebook(made_from.read_bytes()), notebook(copy.read_bytes()))
        except UNREADABLE:
            continue
        if cells:
            found[_key(place)] = cells
    return found


def export(path: Path, folder: Path = MINE) -> int:
    """Write the answers to a file; how many cells they are."""
    found = answers(folder)
    write_whole(path, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return sum(map(len, found.values()))


def restore(path: Path, folder: Path = MINE) -> list[str]:
    """Put the answers of a file into the copies; a line for each chapter.

    A cell that has been changed here already is left alone, and one that the chapter no longer has
    is added at its end. Raises ValueError for a file that holds no answers, OSError for one that
    cannot be read.
    """
    wanted = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(wanted, dict) or not all(isinstance(c, dict) for c in wanted.values()):
        raise ValueError(f"{path} holds no answers: {{chapter: {{cell: text}}}} is expected")
    said = []
    for place, copy, made_from in pairs(folder):
        cells = wanted.get(_key(place))
        if cells:
            said.append(_restore_one(folder, copy, made_from, cells))
    return said


def _restore_one(folder, copy, made_from, cells):
    """Put the answers of one chapter into its copy; what was done."""
    was = copy.read_bytes()
    mine = notebook(was)
    changed = changed_cells(notebook(made_from.read_bytes()), mine)
    by_id = {cell.id: cell for cell in mine.cells}
    written = 0
    left = 0
    for id, source in cells.items():
        if changed.get(id) == source:
            continue
        if id in changed:
            left += 1
            continue
        if id not in by_id:
            mine.cells.append(nbformat.v4.new_code_cell(source, id=id))
        else:
            _replace(by_id[id], source)
        written += 1
    if written:
        keep_aside(folder, copy, was)
        write_whole(copy, nbformat.writes(mine) + "\n")
    more = f"; {left} have another answer here and are left alone" if left else ""
    return f"{copy.name}: {written} cells restored{more}"


def _replace(cell, source):
    """Put a source into a cell; outputs of another source go."""
    cell.source = source
    if cell.cell_type == "code":
        cell.outputs = []
        cell.execution_count = None


def _key(place):
    """ "first_kernels" of chapters/05_first_kernels.ipynb, "index" of the start page."""
    number, _, name = place.stem.partition("_")
    return name if number.isdigit() else place.stem
