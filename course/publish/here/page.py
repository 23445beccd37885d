"""The page of a chapter whose cells run in it, as Sphinx reads it."""

import json
from pathlib import Path

from nbformat.v4 import new_markdown_cell

from course.publish.here import cells

FOLDER = "here"
FILES = "files"  # in FOLDER: what `runtime.gather` writes
ABOUT = (
    "The cells of this chapter run here, in your browser: change one and press *Run* (or Shift and"
    " Enter). The cells that it needs run first. What you write and what you have solved stay in"
    " this browser, and nothing is sent anywhere. Cells of CUDA C, which need a compiler, and"
    " sliders are shown as they were recorded; [the chapter's own page](/{}) says where they run."
)


def live_notebook(notebook, page):
    """The reader's notebook of a chapter, with what the page's script needs; in place."""
    known = cells.live(notebook)
    ids = {cell["id"] for cell in known}
    for cell in notebook.cells:
        if cell.id in ids:
            cell.metadata.tags = [*tags_left(cell), f"here-{cell.id}"]
            cell.metadata.pop("mystnb", None)
    notebook.cells.insert(1, new_markdown_cell(ABOUT.format(page)))
    notebook.cells.insert(2, new_markdown_cell(frame(known, Path(page).stem)))
    return notebook


def tags_left(cell):
    """A cell's tags but those that fold it: what can be run lies open, answers stay folded."""
    return [tag for tag in cell.metadata.get("tags", []) if tag not in ("hide-cell", "hide-input")]


NOT_LOADED = (
    "Python is not loaded. It needs scripts, and a page that comes from a server: "
    "<code>python -m http.server</code> in the site's folder is one."
)


def frame(known, chapter):
    """The bar that says what Python does, and the cells as data, in HTML."""
    data = json.dumps(known).replace("<", "\\u003c")
    return f"""````{{raw}} html
<link rel="stylesheet" href="{FILES}/here.css">
<div class="here-bar"><p class="here-words" role="status">{NOT_LOADED}</p>
<progress max="1" value="0" hidden aria-label="How much of Python is loaded"></progress>
<button hidden>Stop</button></div>
<script type="application/json" id="here-cells" data-chapter="{chapter}" data-files="{FILES}/">
{data}</script>
<script type="module" src="{FILES}/here.js"></script>
````"""
