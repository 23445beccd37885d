"""The cells that frame every notebook: way-finding above and below, Colab's plumbing, the set-up.

`python -m course.publish.address` (`make address`) writes them.
"""

import os

from nbformat.v4 import new_code_cell, new_markdown_cell

from course import glossary
from course.chapters import CHAPTERS, START, notebooks
from course.checking.predict import ANSWER, folded
from utils.files import ROOT
from utils.setup.colab import notebook_address, repository, tag

# The cells' ids. The first two stand below the title, the last is the last cell.
TOP = "open-in-colab"
COLAB = "get-the-course"
NAVIGATION = "navigation"

SETUP = """\
from utils import benchmark, check, compare, cuda, machine, np, pick  # cuda: Numba's, np: NumPy

machine()"""
COLAB_SOURCE = """\
# @title On Colab run this cell first: it brings the course
import sys

if "google.colab" in sys.modules:  # utils then installs what is missing
    address = "{address}"
    !cd /content; test -d {name} || git clone -q --depth 1 --branch {tag} {{address}}
    sys.path.insert(0, "/content/{name}")"""
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # in JupyterLab, in Colab


def framed(notebook, path):
    """Give a notebook that will be at `path` its frame, in place; outputs and other cells stay."""
    frame = {TOP, COLAB, NAVIGATION}
    cells = [cell for cell in notebook.cells if cell.id not in frame]
    for cell in cells:
        if "setup" in cell.metadata.get("tags", []):
            cell.source = SETUP
            cell.metadata["slideshow"] = {"slide_type": "subslide"}  # the title has its slide alone
        if ANSWER in cell.metadata.get("tags", []):
            folded(cell)
    in_colab = f"[Open in Colab]({notebook_address(path.relative_to(ROOT).as_posix())})"
    above = f"{ways(path)} · {in_colab}"
    below = f"{words(path)}\n\n{ways(path)}".strip()
    kept = [cell for cell in notebook.cells if cell.id == COLAB]
    notebook.cells = [
        cells[0],
        new_markdown_cell(above, id=TOP, metadata=metadata()),
        colab_cell(kept[0].execution_count if kept else None),
        *cells[1:],
        new_markdown_cell(below, id=NAVIGATION, metadata=metadata("navigation")),
    ]


def colab_cell(execution_count=None):
    """The folded cell that gets the course on Colab and does nothing elsewhere."""
    name = repository().rsplit("/", 1)[1]
    source = COLAB_SOURCE.format(address=repository(), name=name, tag=tag())
    hidden = {**metadata("colab"), **FOLDED}
    return new_code_cell(source, id=COLAB, metadata=hidden, execution_count=execution_count)


def metadata(*tags):
    """Of a cell that is on no slide."""
    kinds = {"tags": list(tags)} if tags else {}
    return {"slideshow": {"slide_type": "skip"}, **kinds}


def ways(path):
    """A line of links: the notebook before, the start page, the glossary, the notebook after."""
    order = notebooks()
    place = order.index(path)
    before = order[place - 1] if place > 1 else None
    after = order[place + 1] if place + 1 < len(order) else None
    links = [
        (before, "← {}"),
        (START if path != START else None, "Start page"),
        (glossary.FILE, "Glossary"),
        (after, "{} →"),
    ]
    return " · ".join(
        f"[{text.format(title(target))}]({relative(target, path)})"
        for target, text in links
        if target
    )


def words(path):
    """A line of the words that a chapter explains, each a link to its letter in the glossary."""
    own = [entry.name for entry in glossary.entries() if entry.chapter == path.stem]
    to = relative(glossary.FILE, path)
    links = [f"[{word}]({to}#{letter(word)})" for word in own]
    return f"**New words:** {' · '.join(links)}" if links else ""


def letter(word):
    """The glossary's heading under which a word stands."""
    return next(each for each in word if each.isalpha()).upper()


def title(path):
    """A chapter's title in the list; nothing for what is no chapter."""
    return next((each.title for each in CHAPTERS if each.path == path), "")


def relative(target, path):
    """The link from the notebook at `path` to another file of the course."""
    return os.path.relpath(target, path.parent)
