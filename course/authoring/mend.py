"""Put right in a chapter what a machine can put right, and say what a person has to.

    python -m course.authoring.mend NAME                  (the first step of `make chapter NAME=x`)

Slide types of cells that have none, the fold of a section called *Going further*, tags of
predictions and starters, starters and titles of exercises as their entries have them, the minutes
in the list and in the first cell, the links between neighbours, headings that the glossary names,
the tables, the start page's map, the player of films. What only a person can put right is named,
and the command ends with status 1: the tests, which take minutes, would only say it again.
"""

import difflib
import re
import subprocess
import sys

from course.authoring import TODO, blanks, book, room
from course.authoring.chapter import LIST
from course.authoring.exercise import TASK, TITLE, is_skeleton
from course.chapters import CHAPTERS, START, Chapter
from course.checking import predict
from course.exercises import EXERCISES
from course.publish import minutes
from course.publish.folded import FOLDED
from course.recording import keeping
from utils.files import ROOT, write_whole
from utils.tracer import player

TAKES = re.compile(r"about \d+ minutes: \d+ to read and run, \d+ for the exercises")
EXERCISE_TITLE = re.compile(r"### Exercise · .*")
CHECK = re.compile(r'exercises\.check\(\s*"([\w.]+)"')
EXERCISE = "exercise"  # the tag of a starter
HEADING = re.compile(r"^#+\s+(?:\d+ · )?(.+?)\s*$", re.MULTILINE)  # without its number
FURTHER = re.compile(r"#+ (?:\d+ · )?Going further\b")
GLOSSARY = ROOT / "course" / "glossary.md"


def named(name: str) -> Chapter:
    """The chapter of this key ("reductions") or file ("10_reductions"). SystemExit if unknown."""
    for chapter in CHAPTERS:
        if name in (chapter.key, chapter.name):
            return chapter
    known = [chapter.key for chapter in CHAPTERS if chapter.written]
    near = difflib.get_close_matches(name, known, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    sys.exit(f"no chapter is called {name!r}; there are {', '.join(known)}.{meant}")


def slide_types(notebook) -> list[str]:
    """Give cells without a slide type the usual one; their ids."""
    found = []
    for cell in notebook.cells:
        if "slide_type" not in cell.metadata.get("slideshow", {}):
            book.slid(cell)
            found.append(cell.id)
    return found


def tags(notebook) -> list[str]:
    """Tag predictions as what they are; the ids of cells that were not."""
    found = []
    for cell in notebook.cells:
        asks = cell.cell_type == "code" and cell.source.startswith("exercises.predict(")
        if asks and predict.TAG not in cell.metadata.get("tags", []):
            cell.metadata.setdefault("tags", []).extend([predict.TAG, "remove-input"])
            found.append(cell.id)
    return found


def folds(notebook) -> list[str]:
    """Fold the sections called *Going further*, as JupyterLab does; the ids of their headings."""
    found = []
    for cell in notebook.cells:
        is_further = cell.cell_type == "markdown" and FURTHER.match(cell.source)
        if is_further and not cell.metadata.get(FOLDED):
            cell.metadata[FOLDED] = True
            found.append(cell.id)
    return found


def starters(notebook, committed: dict[str, str]) -> tuple[list[str], list[str]]:
    """Exercises as their entries have them: (ids of cells that were written, what is left to do).

    A starter is written only over one that nobody has changed: a skeleton's, or the committed one.
    committed: cell id -> source.
    """
    written, left = [], []
    for place, cell in enumerate(notebook.cells):
        checked = CHECK.search(cell.source) if cell.cell_type == "code" else None
        exercise = EXERCISES.get(checked[1]) if checked else None
        if exercise is None:
            continue
        start = starter_before(notebook, place, exercise)
        if start is None:
            left.append(f"{exercise.id}: its starter goes into a cell above {cell.id}")
            continue
        wanted = exercise.starter.strip()
        if start.source.strip() != wanted:
            if not is_skeleton(start.source) and committed.get(start.id) != start.source:
                left.append(
                    f"cell {start.id} and the starter of {exercise.id} differ: change the entry in "
                    f"course/exercises/{exercise.chapter}.py, and empty the cell to have it written"
                )
                continue
            start.source = wanted
            written.append(start.id)
        if EXERCISE not in start.metadata.get("tags", []):
            start.metadata.setdefault("tags", []).append(EXERCISE)
            written.append(start.id)
        written += heading(notebook, place, exercise)
    return written, left


def starter_before(notebook, place: int, exercise):
    """The cell with an exercise's starter, above the cell that checks it; None if there is none."""
    for cell in reversed(notebook.cells[max(0, place - 4) : place]):
        if cell.cell_type != "code":
            continue
        is_tagged = EXERCISE in cell.metadata.get("tags", [])
        if is_tagged or cell.source.strip() == exercise.starter.strip():
            return cell
    return None


def glossary_links(notebook, name: str, text: str) -> str:
    """The glossary's text with today's headings in its links to a chapter.

    Where a heading is gone, the one of its cell that holds these words, or the first of the cell.
    """
    titles = {
        cell.id: [re.sub(r"[`*]", "", title) for title in HEADING.findall(cell.source)]
        for cell in notebook.cells
        if cell.cell_type == "markdown"
    }

    def mended(link):
        words, target, cell = link.groups()
        known = titles.get(cell, [])
        if not known or words in known:
            return link[0]
        like = [title for title in known if words.lower() in title.lower()]
        return f"· {(like or known)[0]}]({target}#cell-id={cell})"

    link = rf"· ([^\][]+)\]\((\.\./chapters/{name}\.ipynb)#cell-id=([\w-]+)\)"
    return re.sub(link, mended, text)


def films(notebook) -> list[str]:
    """Give films that were recorded today's player; returns the cells that had an older one."""
    changed = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            page = output.get("data", {}).get("text/html", "")
            if (today := player.refreshed(page)) != page:
                output["data"]["text/html"] = today
                changed.append(cell.id)
    return changed


def heading(notebook, place: int, exercise) -> list[str]:
    """Give an exercise's heading the entry's title and minutes, a blank task the entry's."""
    for cell in reversed(notebook.cells[max(0, place - 6) : place]):
        if cell.cell_type == "markdown" and EXERCISE_TITLE.match(cell.source):
            before = cell.source
            title = EXERCISE_TITLE.match(cell.source)[0]
            right = f"### Exercise · {exercise.title} ({exercise.minutes} min)"
            cell.source = cell.source.replace(title, right, 1)
            if TODO not in exercise.task:
                cell.source = cell.source.replace(TASK, exercise.task)
            return [cell.id] if cell.source != before else []
    return []


def minutes_in_list(chapter: Chapter, by_rule: float) -> int:
    """The minutes that the list says, put right where they are far off."""
    if minutes.is_close(chapter.minutes, by_rule):
        return chapter.minutes
    right = minutes.STEP * round(by_rule / minutes.STEP) or max(1, round(by_rule))
    text = LIST.read_text(encoding="utf-8")
    line = re.compile(rf'("{chapter.name}",\s+".*",\s+)\d+,')
    write_whole(LIST, line.sub(rf"\g<1>{right},", text))
    return right


def sentence(stated: int, exercises: float) -> str:
    """What a chapter's first cell says of its minutes."""
    doing = round(exercises)
    return f"about {stated} minutes: {stated - doing} to read and run, {doing} for the exercises"


def mend(chapter: Chapter) -> tuple[list[str], list[str]]:
    """Put a chapter's own files right: (what was put right, what a person has to do), in lines."""
    notebook = book.read(chapter.path)
    old = keeping.committed(chapter.path, "HEAD")
    committed = {cell.get("id"): cell.source for cell in old.cells} if old else {}
    done = []
    by_machine = {
        "slide types": slide_types(notebook),
        "tags": tags(notebook),
        "the fold": folds(notebook),
        "the player": films(notebook),
    }
    for what, cells in by_machine.items():
        done += [f"{what} of {', '.join(cells)}"] if cells else []
    written, left = starters(notebook, committed)
    done += [f"as their entries have it: {', '.join(written)}"] if written else []
    left += room.problems(chapter, notebook.cells)
    took = minutes.minutes_of(notebook.cells)
    stated = minutes_in_list(chapter, took.all)
    if stated != chapter.minutes:
        done.append(f"the list: {stated} minutes for {chapter.minutes}")
    first = notebook.cells[0]
    said = sentence(stated, took.exercises)
    if not TAKES.search(first.source):
        left.append(f"the first cell has to say: **It takes** {said}.")
    elif said not in first.source:
        first.source = TAKES.sub(said, first.source, count=1)
        done.append(f"the first cell: {said}")
    book.write(notebook, chapter.path)
    words = GLOSSARY.read_text(encoding="utf-8")
    today = glossary_links(notebook, chapter.name, words)
    if today != words:
        write_whole(GLOSSARY, today)
        done.append("the glossary: headings of this chapter")
    return done, left


def follows(line: str) -> bool:
    """Whether a blank is one of a cell that follows its entry: it is written once that one is."""
    return ", cell ex-" in line and (TASK in line or TITLE in line)


def published() -> list[str]:
    """Write the start page's films, then frames, tables and kernels' cells of all chapters; what
    was written, in lines.

    In processes of their own: they read the list of chapters as it is now.
    """
    start = book.read(START)
    cells = films(start)
    written = [f"the start page: the player of {', '.join(cells)}"] if cells else []
    if cells:
        book.write(start, START)
    for module in ("address", "tables", "cells"):
        command = [sys.executable, "-m", f"course.publish.{module}"]
        said = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        written += [line for line in said.stdout.splitlines() if ": 0 of " not in line]
    return written


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status: 1 where something is left that a person has to do."""
    names = sys.argv[1:] if arguments is None else arguments
    chapter = named(names[0] if names else "")
    if not chapter.written:
        sys.exit(
            f"{chapter.name} is not written yet: .venv/bin/python -m course.new chapter "
            f"{chapter.key}"
        )
    done, left = mend(chapter)
    done += published()
    for line in done:
        print("put right:", line)
    for line in left:
        print("YOURS:", line, flush=True)
    unwritten = [line for line in blanks.of_chapter(chapter) if not follows(line)]
    if unwritten:
        print("\n".join(["These are left to write; each says what goes there:", *unwritten]))
    if left or unwritten:
        print(f"When that is done: make chapter NAME={chapter.key}")
    return 1 if left or unwritten else 0


if __name__ == "__main__":
    sys.exit(main())
