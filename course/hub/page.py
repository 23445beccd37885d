"""The page by which a learner joins a class: ``python -m course.hub.page FILE`` writes it once."""

import sys
from pathlib import Path

import nbformat
from nbformat import v4

from course import chapters
from course.classroom import words
from utils.files import write_whole

FIRST = next(each for each in chapters.CHAPTERS if each.key == "first_kernels")
WELCOME = f"""\
# Your class

This is your own copy of the course: what you write here is yours, stays when the course is renewed,
and no other learner can read it. Your instructor says where to begin: mostly at
[{FIRST.title}](chapters/{FIRST.name}.ipynb). The [start page](course/index.ipynb) has all chapters.

Your class has a **board**, on which your instructor sees where everybody is, and shows the answers
of a show of hands. Whether you take part is up to you.

{words.NOTICE}

You have read it? Run the cell below (`Shift` + `Enter`), and choose."""
HELP = (
    "Do you need your instructor? Run this cell, in any notebook: it says what you are called on "
    "the board, by which you are found. `classroom.leave()` ends it all."
)
CELLS = (
    ("markdown", "welcome", WELCOME),
    ("code", "join", "from course import classroom\n\nclassroom.join()"),
    ("markdown", "about-help", HELP),
    ("code", "help", "from course import classroom\n\nclassroom.help()"),
)


def notebook() -> str:
    """The page as a notebook's JSON."""
    made = v4.new_notebook(
        cells=[
            (v4.new_markdown_cell if kind == "markdown" else v4.new_code_cell)(text, id=id)
            for kind, id, text in CELLS
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    return nbformat.writes(made) + "\n"


def main(arguments: list[str]) -> int:
    """Command line; returns the exit status."""
    path = Path(arguments[0])
    if not path.exists():
        write_whole(path, notebook())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
