"""What is left of skeletons for a person to write: each TODO, with the place where it stands."""

import re
from collections.abc import Iterable
from pathlib import Path

from course.authoring import TODO, book
from course.chapters import Chapter
from utils.files import ROOT

BLANK = re.compile(rf"\b{TODO}\b.*")
PICTURES = ROOT / "tests" / "course" / "pictures"
ANSWERS = ROOT / "tests" / "course" / "exercises" / "answers" / "right.txt"
KERNELS = ROOT / "course" / "kernels"
#: Files in which every chapter has something
LISTS = tuple(ROOT / "course" / name for name in ("chapters.py", "reading.md", "glossary.md"))


def files_of(chapter: Chapter) -> list[Path]:
    """The chapter's own files, as far as they are there; the lists of all chapters are not its own.

    The notebook, the modules of exercises and pictures, and the tests of the pictures.
    """
    modules = [ROOT / "course" / room / f"{chapter.key}.py" for room in ("exercises", "pictures")]
    tests = [PICTURES / f"test_{chapter.key}{tail}.py" for tail in ("", "_pictures")]
    return [path for path in (chapter.path, *modules, *tests) if path.is_file()]


def in_text(where: str, text: str) -> list[str]:
    """The blanks of a text, one per line, behind the name of the place."""
    return [f"{where}: {blank}" for blank in BLANK.findall(text)]


def in_file(path: Path) -> list[str]:
    """The blanks of a file by line, of a notebook by cell."""
    name = path.relative_to(ROOT)
    if path.suffix == ".ipynb":
        cells = book.read(path).cells
        return [line for cell in cells for line in in_text(f"{name}, cell {cell.id}", cell.source)]
    lines = path.read_text(encoding="utf-8").splitlines()
    return [found for n, line in enumerate(lines, 1) for found in in_text(f"{name}:{n}", line)]


def in_files(paths: Iterable[Path]) -> list[str]:
    """The blanks of all these files that are there."""
    return [line for path in paths if path.is_file() for line in in_file(path)]


def of_chapter(chapter: Chapter) -> list[str]:
    """What is left to write of a chapter: in its own files, lists, right answers, and kernels."""
    return in_files([*files_of(chapter), *LISTS, ANSWERS, *sorted(KERNELS.rglob("*.cu"))])
