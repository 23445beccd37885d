"""Where the course is published: one place says it, one command writes it everywhere else.

    make address URL=https://github.com/ada/cuda-course
    python -m course.publish.address https://github.com/ada/cuda-course       the same

sets the address in `pyproject.toml` and in `README.md`, and gives every notebook its Colab badge
and its set-up cell. Without an address it writes the known one, which also gives a new chapter both
cells.
"""

import re
import sys

import nbformat
from nbformat.v4 import new_markdown_cell

from course.chapters import notebooks
from utils.files import ROOT
from utils.setup.colab import notebook_address, repository

BADGE = "open-in-colab"  # the cell's id
SETUP = """\
import sys

if "google.colab" in sys.modules:  # get the course; utils then installs what is missing
    !cd /content; test -d {name} || git clone -q --depth 1 {address}
    sys.path.insert(0, "/content/{name}")
from utils import benchmark, check, compare, machine, pick  # first: chooses the GPU or the CPU
import numpy as np
from numba import cuda

machine()"""


def setup_cell():
    """The source of the set-up cell, the same in every notebook."""
    return SETUP.format(address=repository(), name=repository().rsplit("/", 1)[1])


def badge(path):
    """The Markdown of the badge that opens the notebook in Colab."""
    return (
        "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"({notebook_address(path.relative_to(ROOT).as_posix())})"
    )


def write_notebook(path):
    """Give a notebook the badge and the set-up cell, keep its outputs; whether anything changed."""
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.v4.reads(before)
    for cell in notebook.cells:
        if "setup" in cell.metadata.get("tags", []):
            cell.source = setup_cell()
    cells = [cell for cell in notebook.cells if cell.id != BADGE]
    cells.insert(
        1, new_markdown_cell(badge(path), id=BADGE, metadata={"slideshow": {"slide_type": "skip"}})
    )
    notebook.cells = cells
    after = nbformat.v4.writes(notebook) + "\n"
    path.write_text(after, encoding="utf-8")
    return after != before


def set_address(url):
    """Write the address into pyproject.toml and, where it stood, README.md.

    ValueError for another host.
    """
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", url):
        raise ValueError(
            "Colab opens notebooks from GitHub: the address is https://github.com/OWNER/NAME, "
            f"not {url}"
        )
    old, new = (
        address.removeprefix("https://github.com/")
        for address in (repository(), url.removesuffix(".git"))
    )
    for name in ("pyproject.toml", "README.md"):
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        path.write_text(
            re.sub(rf"(github(?:\.com)?/){re.escape(old)}(?![\w.-])", rf"\g<1>{new}", text),
            encoding="utf-8",
        )


def main(arguments):
    if arguments:
        set_address(arguments[0])
    changed = [path for path in notebooks() if write_notebook(path)]
    print(f"{repository()}: {len(changed)} of {len(notebooks())} notebooks changed")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as error:
        sys.exit(f"error: {error}")
