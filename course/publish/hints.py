"""Hints on a page without a kernel: each opens by itself, by a click or a key.

In a notebook a cell offers them, commented out (`# exercises.hint("…")`). A website shows them in
its place, folded one by one, so that who reads the second has asked for it.
"""

import re

from course.exercises import EXERCISES

OFFERED = re.compile(r"# exercises\.hint\([\"']([\w.]+)[\"']\)")
HINT = '<details class="hint"><summary>Hint {number}</summary>\n\n{text}\n\n</details>'
SOLUTION = "*In the notebook* `exercises.solution(…)` *shows a solution, and the check says why.*"


def openable(notebook):
    """Put folded hints in the place of every cell that offers them, in the notebook itself."""
    for cell in notebook.cells:
        offered = OFFERED.match(cell.source) if cell.cell_type == "code" else None
        if offered and offered[1] in EXERCISES:
            cell.cell_type = "markdown"
            cell.source = folded(EXERCISES[offered[1]].hints)
            del cell["outputs"], cell["execution_count"]


def folded(hints):
    """Markdown of the hints, each in a fold of its own."""
    folds = [HINT.format(number=number, text=text) for number, text in enumerate(hints, 1)]
    return "\n\n".join([*folds, SOLUTION])
