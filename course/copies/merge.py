"""A newer chapter with what the learner wrote in the older one.

Cells are told apart by their ids, which are stable in this course, and not by what is in them: an
answer belongs to its exercise however much either has changed. Source of the method: the three-way
merge of version control, with the cell as its unit.
"""

from copy import deepcopy
from dataclasses import dataclass

WIDGETS = "application/vnd.jupyter.widget-state+json"
SETUP = "setup"  # the tag of the cell that is the course's alone


@dataclass
class Merged:
    """The notebook, and the ids of the learner's cells in it: all, and those that the course
    changed, too.
    """

    notebook: dict
    kept: list[str]
    both_changed: list[str]


def merge(base, mine, new) -> Merged:
    """`new`, with what differs between `base` and `mine`. All three are nbformat notebooks.

    A cell that the learner changed stays theirs, with its outputs. One that they added stands
    after the cell that it stood after. One that they removed stays away unless it changed. Outputs
    of other cells are theirs where the cell is still the same.
    """
    new = deepcopy(new)
    before = {cell.id: cell for cell in base.cells}
    theirs = {cell.id: cell for cell in mine.cells}
    changed = changed_cells(base, mine)
    both = [
        cell.id
        for cell in new.cells
        if cell.id in changed and cell.source != _source(before, cell.id)
    ]
    new.cells = [cell for cell in new.cells if not _removed(cell, before, theirs)]
    for cell in new.cells:
        if cell.id in theirs:
            _take_over(cell, theirs[cell.id], cell.id in changed)
    _insert_own(new, mine, changed)
    _keep_widgets(new, mine)
    return Merged(new, list(changed), both)


def changed_cells(base, mine) -> dict[str, str]:
    """{id: source} of the cells that the learner changed or added, in their order."""
    before = {cell.id: cell for cell in base.cells}
    return {
        cell.id: cell.source
        for cell in mine.cells
        if cell.source != _source(before, cell.id) and not _is_setup(cell)
    }


def _source(cells, id):
    """The source of the cell of that id; an empty one where it is missing."""
    return cells[id].source if id in cells else ""


def _is_setup(cell):
    return SETUP in cell.metadata.get("tags", [])


def _removed(cell, before, theirs):
    """Whether the learner removed a cell that is now as it was then."""
    known = cell.id in before and cell.id not in theirs
    return known and before[cell.id].source == cell.source


def _take_over(cell, theirs, changed):
    """Put the learner's source into the course's cell, and their outputs where these belong."""
    if cell.cell_type != theirs.cell_type:
        return
    if changed:
        cell.source = theirs.source
    if cell.cell_type == "code" and cell.source == theirs.source:
        cell.outputs = theirs.outputs
        cell.execution_count = theirs.execution_count
    if "attachments" in theirs:
        cell.attachments = {**cell.get("attachments", {}), **theirs.attachments}


def _insert_own(new, mine, changed):
    """Add the learner's cells that the new chapter lacks, each where it stood."""
    there = {cell.id for cell in new.cells}
    previous = None
    for cell in mine.cells:
        if cell.id not in there:
            if cell.id not in changed:
                continue
            new.cells.insert(_after(new, previous), cell)
            there.add(cell.id)
        previous = cell.id


def _after(notebook, id):
    """The place behind the cell of that id; the very first place for None."""
    ids = [cell.id for cell in notebook.cells]
    return ids.index(id) + 1 if id else 0


def _keep_widgets(new, mine):
    """The states of the learner's widgets, which their outputs show."""
    states = mine.metadata.get("widgets", {}).get(WIDGETS, {}).get("state")
    if states:
        widgets = new.metadata.setdefault("widgets", {}).setdefault(WIDGETS, dict(state={}))
        widgets["state"] = {**widgets.get("state", {}), **states}
        widgets.setdefault("version_major", 2)
        widgets.setdefault("version_minor", 0)
