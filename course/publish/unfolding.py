"""Folded sections of a chapter as the website shows them: below their heading, unfolded by a click.

A folded section of the second level (`##`) is a page of its own, so it is left as it is.
"""

import re

from nbformat.v4 import new_markdown_cell

from course.publish.folded import HEADING, folds

OPEN = '<details class="further"><summary>Unfold</summary>'
CLOSE = "</details>"
DEEPER = re.compile(r"^#+ (.+)$", re.MULTILINE)


def unfoldable(cells):
    """The cells with those of each folded section between `<details>` and its end.

    Inside, headings become bold words: an element must not end in another section than it began.
    """
    found, opened = [], None
    for cell, at in zip(cells, folds(cells), strict=True):
        if opened is not None and at != opened:
            found.append(new_markdown_cell(CLOSE))
            opened = None
        is_heading = at is not None and cell is cells[at]
        if opened is not None and not is_heading and cell.cell_type == "markdown":
            cell.source = DEEPER.sub(r"**\1**", cell.source)
        found.append(cell)
        if is_heading and len(HEADING.search(cell.source)[1]) > 2:
            found.append(new_markdown_cell(OPEN))
            opened = at
    return [*found, new_markdown_cell(CLOSE)] if opened is not None else found
