"""A new chapter: its line in the list, its notebook, exercises, opening picture, and place in the
reading list.
"""

import re
import subprocess
from pathlib import Path

import nbformat
from nbformat.v4 import new_notebook

from course.authoring import book, code
from course.authoring.exercise import EMPTY, FOLDER
from course.authoring.picture import new_picture, written
from course.chapters import CHAPTERS, Chapter
from course.publish import frame
from utils.files import ROOT, write_whole

LIST = ROOT / "course" / "chapters.py"
READING = ROOT / "course" / "reading.md"
COVERS = ROOT / "course" / "publish" / "covers.py"
OPENING = "opening"  # the picture that opens the chapter on the website
ENTRY = """    Chapter(
        {part},
        "{name}",
        "{title}",
        {minutes},
        "{brings}",
    ),
"""
BRINGS = "TODO: what it brings, in one line."
FIRST = """\
# {title}

TODO: in two or three sentences, what this chapter is about, and why.

**At the end you can** TODO: three to six things, each beginning with a verb, with · between them.

**You need** TODO: what of the chapters before, each a link.

**It takes** about {minutes} minutes: {minutes} to read and run, 0 for the exercises."""
SECTION = """\
## 1 · TODO: a title

TODO: one idea in a few sentences. *Predict:* a question that the next cell answers?"""
RECAP = """\
## Recap

- TODO: what to remember, three to six lines"""
NEXT = """\
## What next

- TODO: the next chapter and what to read, each a link and a reason"""
HELP = (
    "Write into the starter cell, run it, then run the check below it. The check tries fresh random"
    " inputs, awkward sizes and odd launches, and says *why* an answer is wrong. Stuck? Take a"
    " hint; each call shows one more."
)
READ = "- TODO: [what to read](https://TODO): and why"


def new_chapter(key: str, title: str, after: str | None = None) -> dict[Path, str]:
    """Write the skeleton of a chapter; the files, each with what it got.

    key: its name in ids and files. after: the key of the chapter before it (default: the last);
    those behind move up by one. A chapter that the list announces gets its notebook, and keeps its
    title and its place.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", key):
        raise ValueError(f"a chapter's name is of small letters, digits and _, not {key!r}")
    known = {chapter.key: chapter for chapter in CHAPTERS}
    if key in known and known[key].written:
        raise ValueError(f"there is a chapter {key} already, {known[key].path.name}")
    done = {}
    chapter = known.get(key)
    if chapter is None:
        chapter = listed(key, title, after)
        done[LIST] = f"the entry {chapter.name}"
    module = FOLDER / f"{key}.py"
    if not module.is_file():
        write_whole(module, EMPTY.format(title=chapter.title))
        done[module] = "no exercise yet"
    if f"## {chapter.title}\n" not in READING.read_text(encoding="utf-8"):
        write_whole(READING, with_section(READING.read_text(encoding="utf-8"), chapter))
        done[READING] = "a section"
    book.write(notebook_of(chapter), chapter.path)
    drawn = new_picture(chapter, key, OPENING, "one-explain")
    covers = COVERS.read_text(encoding="utf-8")
    if f'"{key}":' not in covers:
        written(COVERS, code.with_entry(covers, "COVERS", f'"{key}": "{OPENING}-picture"'))
        done[COVERS] = "which picture opens the chapter"
    return {**done, **drawn, chapter.path: "a notebook to fill"}


def listed(key: str, title: str, after: str | None) -> Chapter:
    """Write a new chapter into the list, behind `after`; those that follow get new numbers."""
    last = next((each for each in CHAPTERS if each.key == after), None) if after else CHAPTERS[-1]
    if last is None:
        raise ValueError(f"no chapter is called {after!r}")
    number = last.number + 1
    for chapter in reversed(CHAPTERS):
        if chapter.number >= number:
            rename(chapter, f"{chapter.number + 1:02d}_{chapter.key}")
    new = Chapter(last.part, f"{number:02d}_{key}", title, 10, BRINGS)
    text = LIST.read_text(encoding="utf-8")
    part = re.search(
        rf'    Chapter\(\n        (\w+),\n        "{last.name}".*?\n    \),\n', text, re.S
    )
    fields = {"name": new.name, "title": title, "minutes": new.minutes, "brings": BRINGS}
    entry = ENTRY.format(part=part[1], **fields)
    write_whole(LIST, text[: part.end()] + entry + text[part.end() :])
    return new


def rename(chapter: Chapter, name: str) -> None:
    """Give a chapter another number, in its file's name and wherever a file says it."""
    if chapter.written:
        new = chapter.path.with_name(f"{name}.ipynb")
        subprocess.run(["git", "mv", str(chapter.path), str(new)], cwd=ROOT, check=True)
    named = ["git", "grep", "-lIwF", chapter.name]
    files = subprocess.run(named, cwd=ROOT, capture_output=True, text=True).stdout
    for path in map(ROOT.joinpath, files.splitlines()):
        text = path.read_text(encoding="utf-8")
        write_whole(path, re.sub(rf"\b{chapter.name}\b", name, text))


def with_section(text: str, chapter: Chapter) -> str:
    """The reading list with a section for the chapter, before that of the one that follows it."""
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    numbers = {each.title: each.number for each in CHAPTERS}
    later = [title for title in titles if numbers.get(title, 0) >= chapter.number]
    section = f"## {chapter.title}\n\n{READ}\n"
    if not later:
        return f"{text.rstrip()}\n\n{section}"
    begins = text.index(f"## {later[0]}\n")
    return f"{text[:begins]}{section}\n{text[begins:]}"


def notebook_of(chapter: Chapter) -> nbformat.NotebookNode:
    """A chapter that runs, with everything that one must have, and blanks that say what goes there.

    `make chapter` gives it the links above and below.
    """
    cells = [
        book.text_cell("title", FIRST.format(title=chapter.title, minutes=chapter.minutes)),
        book.code_cell("setup", frame.SETUP, "setup"),
        book.code_cell("exercises-import", "from course import exercises"),
        book.text_cell("one-title", SECTION),
        book.code_cell(
            "predict-one",
            'exercises.predict("TODO: one answer", "TODO: another")',
            "predict",
            "remove-input",
        ),
        book.code_cell("one", 'print("TODO: what answers it")', "hide-output"),
        book.text_cell("one-explain", "TODO: what was seen, and why."),
        book.text_cell("exercises", HELP),
        book.text_cell(book.RECAP, RECAP),
        book.text_cell("next", NEXT),
    ]
    metadata = {"kernelspec": book.KERNEL, "language_info": {"name": "python"}}
    return new_notebook(cells=cells, metadata=metadata)
