"""How long a chapter takes: one rule, by words, new lines of code, and cells.

    python -m course.publish.minutes          a table of all chapters

Text about something new is read at 200 words a minute, and 6 lines of code that the chapter has not
shown before are understood in one: what readers who took the chapters without help needed. Marc
Brysbaert's mean for English non-fiction is 238 words ("How many words do we read per minute?",
Journal of Memory and Language 109, 2019, https://doi.org/10.1016/j.jml.2019.104047). Running a cell
and looking at what it shows takes 10 seconds, and the wait is added where a computer without a GPU
is busy for longer. An exercise says its own minutes, and so does a cell that asks for more than
one line to be changed; one line is a minute. Code that a cell shows, such as a kernel out of its
file or the lines in which two files differ, is read as well as code that stands in it. Instructors'
notes and what is folded under *Going further* are not counted: nobody must read them.
"""

import re
from dataclasses import dataclass
from functools import cache

import nbformat

from course.chapters import CHAPTERS, FOLDER
from course.checking.predict import TAG as PREDICT
from course.exercises import EXERCISES
from course.publish.folded import unfolded

WORDS = 200  # a minute
LINE = 10 / 60  # minutes for a line of code that is new
RUN = 10 / 60  # for running a cell and looking at its output
GUESS = 20 / 60  # for a prediction
QUESTION = 1  # for a recall question
CHANGE = 1  # for a line that a cell asks to change, and looking at what comes of it
LONGEST = 10  # minutes between two things to write
WHOLE = 120  # minutes of a chapter: an evening
CLOSE = 0.1  # of the minutes by the rule: how far what a chapter states may be from it,
STEP = 5  # minutes: and never asked to be nearer than half of it, to which lists are rounded
BREAK_IT = "break-it"  # the tag of a cell that shows what a changed line did
BUILD = "minutes"  # in such a cell's metadata: minutes to write, where it is more than a line
WAIT = "wait"  # in a cell's metadata: seconds that it takes without a GPU, where it is over 10

LINK = re.compile(r"\]\([^)]*\)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)  # what tests read
CHECK = re.compile(r'exercises\.check\("([\w.]+)"')
LISTED = re.compile(r"^```\w+\n(.*)\n```$", re.DOTALL)
NEW_LINE = re.compile(r"^\+ (.*\S)", re.MULTILINE)  # as `source.change` prints it


@dataclass(frozen=True)
class Minutes:
    """A chapter's minutes: reading and running, exercises; and the reading before each thing to
    write (an exercise, a line to change), the last entry being what comes after the last of them.
    """

    reading: float
    exercises: float
    stretches: tuple

    @property
    def all(self):
        """Everything together."""
        return self.reading + self.exercises


def reading(cell, seen=None):
    """Minutes to read a cell, and to run it.

    seen: the lines of code that came before, to which the cell's are added.
    """
    seen = set() if seen is None else seen
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
    new = {line.strip() for line in lines + listed(cell)} - seen
    seen |= new
    run = RUN if cell.get("outputs") else 0
    return len(new) * LINE + run + cell.metadata.get(WAIT, 0) / 60


def written(text):
    """The lines of a text that are not empty."""
    return [line for line in text.splitlines() if line.strip()]


def listed(cell):
    """The lines of code that a cell shows below itself: a listing, new lines of a change, source
    that is printed.
    """
    lines = []
    for output in cell.get("outputs", []):
        shown = output.get("data", {})
        listing = LISTED.match(shown.get("text/markdown", ""))
        if listing:
            lines += written(listing[1])
        if "source.change(" in cell.source:
            lines += NEW_LINE.findall(shown.get("text/plain", ""))
        if "getsource" in cell.source or "print(source" in cell.source:
            lines += written(output.get("text", ""))
    return lines


def asks_to_write(cell):
    """Whether the learner writes code here: an exercise's starter, a line to change on purpose."""
    return not {"exercise", BREAK_IT}.isdisjoint(cell.metadata.get("tags", []))


def minutes_of(cells):
    """The Minutes of a notebook's cells."""
    stretches, exercises, seen = [0.0], set(), set()
    to_build = 0
    for cell in unfolded(cells):
        tags = cell.metadata.get("tags", [])
        checked = CHECK.search(cell.source) if cell.cell_type == "code" else None
        if asks_to_write(cell):
            stretches.append(0.0)
        if checked:
            exercises.add(checked[1])
        elif "exercises.quiz(" in cell.source:
            stretches[-1] += QUESTION
        elif BREAK_IT in tags:
            to_build += cell.metadata.get(BUILD, 0)
            stretches[-1] += CHANGE + reading(cell, seen)
        elif "exercise" not in tags:
            stretches[-1] += reading(cell, seen)
    to_solve = sum(EXERCISES[id].minutes for id in exercises)
    return Minutes(sum(stretches), to_solve + to_build, tuple(stretches))


def is_close(stated, by_rule):
    """Whether the minutes that a chapter states are near enough to those by the rule."""
    return abs(stated - by_rule) <= max(CLOSE * by_rule, STEP / 2)


@cache
def of_chapter(chapter):
    """The Minutes of a chapter that is written."""
    return minutes_of(nbformat.read(chapter.path, as_version=4).cells)


def of_section(name, first):
    """Minutes of reading of the section (`##`) that begins with the cell `first` of a chapter."""
    total, inside, seen = 0, False, set()
    for cell in unfolded(nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells):
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            inside = cell.id == first
        does = "exercise" in cell.metadata.get("tags", []) or "exercises.quiz(" in cell.source
        minutes = 0 if does or CHECK.search(cell.source) else reading(cell, seen)
        total += minutes if inside else 0
    return total


def main():
    for chapter in CHAPTERS:
        if chapter.written:
            took = of_chapter(chapter)
            stretches = " ".join(f"{stretch:.0f}" for stretch in took.stretches)
            print(
                f"{chapter.name:22} stated {chapter.minutes:4}, by the rule {took.all:4.0f}: "
                f"{took.reading:3.0f} to read and run, {took.exercises:3.0f} for exercises; "
                f"before each thing to write: {stretches}"
            )


if __name__ == "__main__":
    main()
