"""The page of a chapter whose cells run in it, as Sphinx reads it."""

import html
import json
import re
from pathlib import Path

from nbformat.v4 import new_markdown_cell

from course.exercises import EXERCISES
from course.publish import hints
from course.publish.here import cells

FOLDER = "here"
FILES = "files"  # in FOLDER: a folder for each version of what `runtime.gather` writes
KEEPER = "sw.js"  # the script that keeps a page's files works for the folder that it lies in
CHECKED = re.compile(r"exercises\.check\(\s*\"([\w.]+)\"")
#: What a notebook says that is not so in a page
REWORDED = {
    "run it, then run the check below it": "then run the check below it, which runs both",
    "Take a hint; each call shows one more.": "Below each check hints unfold, one by one.",
    hints.SOLUTION: (
        "*Once yours is right, the check unfolds a solution. A cell with* `exercises.solution(…)`"
        " *and the name from the check between its brackets shows one before.*"
    ),
}
ABOUT = (
    "The cells of this chapter run here, in your browser: change one and press *Run* (or Shift and"
    " Enter). The cells that it needs run first. What you write and what you have solved stay in"
    " this browser, and nothing is sent anywhere. Cells of CUDA C, which need a compiler, and"
    " sliders are shown as they were recorded; [the chapter's own page](/{}) says where they run."
    " Once Python has been loaded, the chapters *In your browser* open without a network, too, if"
    " this browser keeps files; the rest of the website needs one."
)


def live_notebook(notebook, page, version):
    """The reader's notebook of a chapter, with what the page's script needs; in place.

    version: of the files that the page loads, the name of their folder.
    """
    known = cells.live(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = reworded(cell.source)
    ids = {cell["id"] for cell in known}
    for cell in notebook.cells:
        if cell.id in ids:
            cell.metadata.tags = [*tags_left(cell), f"here-{cell.id}"]
            cell.metadata.pop("mystnb", None)
    notebook.cells.insert(1, new_markdown_cell(ABOUT.format(page)))
    files = f"{FILES}/{version}/"
    parts = exercise_list(known), frame(known, Path(page).stem, files)
    notebook.cells.insert(2, new_markdown_cell("````{raw} html\n" + "\n".join(parts) + "\n````"))
    return notebook


def reworded(text):
    """A notebook's text as a page says it."""
    for words, instead in REWORDED.items():
        text = text.replace(words, instead)
    return text


def exercise_list(known):
    """Links to the chapter's exercises, in HTML: who has little room sees them first."""
    items = []
    for cell in known:
        for id in CHECKED.findall(cell["source"]):
            starts = [need for need in cell["needs"] if need.startswith("start-")]
            to, title = (starts or [cell["id"]])[-1], html.escape(EXERCISES[id].title)
            items.append(f'<li><a href="#here-{to}" data-exercise="{id}">{title}</a></li>')
    return (
        '<nav class="here-exercises" aria-label="Exercises"><p>Straight to an exercise:</p>'
        f"<ol>{''.join(items)}</ol></nav>"
    )


def tags_left(cell):
    """A cell's tags but those that fold it: what can be run lies open, answers stay folded."""
    return [tag for tag in cell.metadata.get("tags", []) if tag not in ("hide-cell", "hide-input")]


NOT_LOADED = (
    "Python is not loaded. It needs scripts, and a page that comes from a server: "
    "<code>python -m http.server</code> in the site's folder is one."
)


def frame(known, chapter, files):
    """The bar that says what Python does, and the cells as data, in HTML."""
    data = json.dumps(known).replace("<", "\\u003c")
    return f"""<link rel="stylesheet" href="{files}here.css">
<div class="here-bar"><p class="here-words" role="status">{NOT_LOADED}</p>
<progress max="1" value="0" hidden aria-label="How much of Python is loaded"></progress>
<button hidden>Stop</button></div>
<script type="application/json" id="here-cells" data-chapter="{chapter}" data-files="{files}">
{data}</script>
<script type="module" src="{files}here.js"></script>"""
