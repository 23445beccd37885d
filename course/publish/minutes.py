"""How long a chapter takes: one rule, by words, lines and cells.

    python -m course.publish.minutes          a table of all chapters

Prose is read at 238 words a minute, the mean that Marc Brysbaert found for English non-fiction in
190 studies ("How many words do we read per minute?", Journal of Memory and Language 109, 2019,
https://doi.org/10.1016/j.jml.2019.104047). For code there is no such number. We take 5 seconds for
a line, and 10 for running a cell and looking at what it shows. An exercise says its own minutes.
Code that a cell shows, such as a kernel out of its file, is read as well as code that stands in it.
Instructors' notes and what is folded under *Going further* are not counted: nobody must read them.
"""

import re
from dataclasses import dataclass
from functools import cache

import nbformat

from course.chapters import CHAPTERS, FOLDER
from course.checking.predict import TAG as PREDICT
from course.exercises import EXERCISES
from course.publish.folded import unfolded

WORDS = 238  # a minute
LINE = 5 / 60  # minutes for a line of code
RUN = 10 / 60  # for running a cell and looking at its output
GUESS = 20 / 60  # for a prediction
QUESTION = 1  # for a recall question
LONGEST = 15  # minutes of reading between two things to do

LINK = re.compile(r"\]\([^)]*\)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)  # what tests read
CHECK = re.compile(r'exercises\.check\("([\w.]+)"')
LISTED = re.compile(r"^```\w+\n(.*)\n```$", re.DOTALL)


@dataclass(frozen=True)
class Minutes:
    """A chapter's minutes: reading and running, exercises; and the reading before each exercise
    or question, the last entry being what comes after the last of them.
    """

    reading: float
    exercises: float
    stretches: tuple

    @property
    def all(self):
        """Everything together."""
        return self.reading + self.exercises


def reading(cell):
    """Minutes to read a cell, and to run it."""
    tags = cell.metadata.get("tags", [])
    if cell.metadata.get("slideshow", {}).get("slide_type") in ("notes", "skip"):
        return 0
    if cell.cell_type == "markdown":
        prose = COMMENT.sub("", LINK.sub("]", cell.source))
        return len(re.findall(r"[\w'’]+", prose)) / WORDS
    if "setup" in tags:
        return RUN
    if PREDICT in tags:
        return GUESS
    lines = written(cell.source)
    if all(line.startswith("#") for line in lines):  # a hint that nobody has asked for
        return 0
    return len(lines + listed(cell)) * LINE + (RUN if cell.get("outputs") else 0)


def written(text):
    """The lines of a text that are not empty."""
    return [line for line in text.splitlines() if line.strip()]


def listed(cell):
    """The lines of code that a cell shows below itself."""
    shown = [output.get("data", {}).get("text/markdown", "") for output in cell.get("outputs", [])]
    listings = filter(None, map(LISTED.match, shown))
    return [line for listing in listings for line in written(listing[1])]


def asks(cell):
    """Whether the cell asks for an answer that is checked: an exercise's starter, a question."""
    return "exercise" in cell.metadata.get("tags", []) or "exercises.quiz(" in cell.source


def minutes_of(cells):
    """The Minutes of a notebook's cells."""
    stretches, exercises, questions = [0.0], set(), 0
    for cell in unfolded(cells):
        checked = CHECK.search(cell.source) if cell.cell_type == "code" else None
        if checked:
            exercises.add(checked[1])
        elif asks(cell):
            stretches.append(0.0)
            questions += "exercises.quiz(" in cell.source
        else:
            stretches[-1] += reading(cell)
    to_solve = sum(EXERCISES[id].minutes for id in exercises)
    return Minutes(sum(stretches) + questions * QUESTION, to_solve, tuple(stretches))


@cache
def of_chapter(chapter):
    """The Minutes of a chapter that is written."""
    return minutes_of(nbformat.read(chapter.path, as_version=4).cells)


def of_section(name, first):
    """Minutes of reading of the section (`##`) that begins with the cell `first` of a chapter."""
    total, inside = 0, False
    for cell in unfolded(nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells):
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            inside = cell.id == first
        if inside and not asks(cell) and not CHECK.search(cell.source):
            total += reading(cell)
    return total


def main():
    for chapter in CHAPTERS:
        if chapter.written:
            took = of_chapter(chapter)
            stretches = " ".join(f"{stretch:.0f}" for stretch in took.stretches)
            print(
                f"{chapter.name:22} stated {chapter.minutes:4}, by the rule {took.all:4.0f}: "
                f"{took.reading:3.0f} to read and run, {took.exercises:3.0f} for exercises; "
                f"before each: {stretches}"
            )


if __name__ == "__main__":
    main()
