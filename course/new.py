"""Begin something new: skeletons with everything that a machine can write.

    python -m course.new chapter NAME [--title TITLE] [--after CHAPTER]
    python -m course.new exercise CHAPTER.NAME [--kind numba|cuda_c|function] [--after CELL]
    python -m course.new question CHAPTER.NAME [--after CELL]
    python -m course.new picture CHAPTER.FUNCTION [--module MODULE] --after CELL
    python -m course.new rung CHAPTER.NAME [--like RUNG] --after CELL
    python -m course.new cell CHAPTER --kernel FILE [FUNCTION] --after CELL

Each says what it wrote; an exercise and a question first how many minutes the chapter has left, and
what folding a section would gain. What a person has to write says TODO, and `make chapter` names
each that is left.
"""

import argparse
import sys
from pathlib import Path

from course.authoring import book, room
from course.authoring.chapter import new_chapter
from course.authoring.exercise import (
    KINDS,
    MINUTES,
    QUESTION_MINUTES,
    new_exercise,
    new_question,
)
from course.authoring.kernel import new_kernel
from course.authoring.mend import named
from course.authoring.picture import new_picture
from course.authoring.rung import new_rung
from course.chapters import Chapter
from utils.files import ROOT
from utils.tools.diagnostics import LearnerError


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(
        prog="python -m course.new", description=__doc__.splitlines()[0]
    )
    kinds = parser.add_subparsers(dest="what", required=True)
    chapter = kinds.add_parser("chapter", help="a chapter: list, notebook, exercises, reading list")
    chapter.add_argument("name", help="its name in files and ids, such as attention")
    chapter.add_argument("--title", help="(default: the name)")
    chapter.add_argument("--after", help="the chapter before it (default: the last of the list)")
    exercise = kinds.add_parser("exercise", help="an entry, its four cells, three right answers")
    exercise.add_argument("--kind", choices=KINDS, default="numba", help="what is handed in")
    kinds.add_parser("question", help="a question of the recap: an entry and its cell")
    picture = kinds.add_parser("picture", help="a function that draws, its cell and its test")
    picture.add_argument("--module", help="in course/pictures (default: the chapter's own)")
    rung = kinds.add_parser("rung", help="a rung of the matmul ladder: its file and its cells")
    rung.add_argument("--like", help="the rung whose file it begins as (default: the last above)")
    for name in ("exercise", "question", "picture", "rung"):
        kinds.choices[name].add_argument("name", help="CHAPTER.NAME, such as first_kernels.clamp")
    cell = kinds.add_parser("cell", help="a kernel of course/kernels in a cell to change")
    cell.add_argument("name", metavar="chapter", help="its name, such as matmul")
    cell.add_argument(
        "--kernel",
        nargs="+",
        required=True,
        metavar=("FILE", "FUNCTION"),
        help='matmul/wmma.cu multiply, or 14 lines of it: matmul/wmma.cu matmul "Sum sum" 14',
    )
    for name in ("exercise", "question", "picture", "rung", "cell"):
        kinds.choices[name].add_argument("--after", help="the id of the cell above it")
    return parser.parse_args(arguments)


def begin(given: argparse.Namespace) -> tuple[dict[Path, str], str]:
    """Write what was asked for; the files, each with what it got, and the chapter's name."""
    if given.what == "chapter":
        title = given.title or given.name.replace("_", " ").capitalize()
        return new_chapter(given.name, title, given.after), given.name
    if given.what == "cell":
        chapter = named(given.name)
        return new_kernel(chapter, given.kernel, place(chapter, given.after)), chapter.key
    key, _, name = given.name.partition(".")
    if not name.isidentifier():
        raise ValueError(
            f"CHAPTER.NAME is asked for, such as first_kernels.clamp, not {given.name}"
        )
    chapter = named(key)
    if given.what == "exercise":
        say_room(chapter, MINUTES[given.kind])
        return new_exercise(chapter, name, given.kind, given.after), key
    if given.what == "question":
        say_room(chapter, QUESTION_MINUTES)
        return new_question(chapter, name, given.after), key
    if given.what == "rung":
        files, left = new_rung(chapter, name, place(chapter, given.after), given.like)
        if left:
            print("\n".join(["These name or count rungs, too, and are yours:", *left]))
        return files, key
    return new_picture(chapter, given.module, name, place(chapter, given.after)), key


def place(chapter: Chapter, after: str | None) -> str:
    """The cell behind which something goes; ValueError that lists the headings if none is named."""
    if after is None:
        raise ValueError(f"where? Say --after CELL. {book.headings(book.read(chapter.path))}")
    return after


def say_room(chapter: Chapter, needs: float) -> None:
    """Say what an addition of so many minutes means for the chapter's evening."""
    print("\n".join(room.of(chapter, book.read(chapter.path).cells, needs)))


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    given = parsed(arguments)
    try:
        files, chapter = begin(given)
    except (LookupError, ValueError, LearnerError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path, what in files.items():
        print(f"{path.relative_to(ROOT)}: {what}")
    print(f"Write what says TODO, then: make chapter NAME={chapter}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
