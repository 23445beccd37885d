"""What is folded in a chapter, under headings such as *Going further*: nobody needs it for what
follows.

JupyterLab folds a heading's section if the heading's cell says so; `course/publish/site.py` does
the same on the website.
"""

import re

FOLDED = "jp-MarkdownHeadingCollapsed"
HEADING = re.compile(r"^(#+) ", re.MULTILINE)


def folds(cells):
    """For each cell the index of the heading under which it is folded, or None; the heading itself
    counts as folded.
    """
    under, at, level = [], None, 0
    for n, cell in enumerate(cells):
        heading = HEADING.search(cell.source) if cell.cell_type == "markdown" else None
        if heading and (at is None or len(heading[1]) <= level):
            level = len(heading[1])
            at = n if cell.metadata.get(FOLDED) else None
        under.append(at)
    return under


def unfolded(cells):
    """The cells outside of folded sections."""
    return [cell for cell, at in zip(cells, folds(cells), strict=True) if at is None]
