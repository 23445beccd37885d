"""All tests that concern one chapter, and the chapter itself from top to bottom.

    python -m tests.chapter reductions [PYTEST'S OPTIONS]           (`make chapter NAME=reductions`)

These are the tests of the course and of its chapters that bear the chapter's name, in their file's
path or in their parameters, those of the kernels that the chapter names, and those of the lists
that every chapter is in: map, glossary, reading list, tables, layout.
"""

import re
import sys

import pytest

from course.authoring.mend import named
from course.chapters import Chapter
from utils.files import ROOT

#: Where tests of a chapter may be; what the engines and tools do is not a chapter's matter
FOLDERS = ("tests/chapters", "tests/course")
#: Of what all chapters share
SHARED = (
    "tests/course/authoring/test_unwritten.py",
    "tests/course/test_glossary.py",
    "tests/course/test_index.py",
    "tests/course/test_instructors.py",
    "tests/course/test_reading.py",
    "tests/course/publish/test_tables.py",
    "tests/test_layout.py",
    "tests/test_readme.py",
)
KERNELS = re.compile(r"course[./]kernels(?:[./]| import )(\w+)")


def kernels_of(chapter: Chapter) -> set[str]:
    """The folders and modules of course/kernels that its notebook and its modules name."""
    paths = [chapter.path]
    paths += [ROOT / "course" / room / f"{chapter.key}.py" for room in ("exercises", "pictures")]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.is_file()]
    return set(KERNELS.findall("\n".join(texts)))


def concerns(chapter: Chapter) -> re.Pattern:
    """What the ids of the chapter's tests, as pytest has them, match."""
    folders = [f"tests/course/kernels/{name}" for name in sorted(kernels_of(chapter))]
    whole = "|".join(map(re.escape, (*SHARED, *folders)))
    return re.compile(rf"^(?:{whole})\b|(?<![a-z]){re.escape(chapter.key)}(?![a-z])")


# ---- this module as a plugin of pytest, in each of its processes


def pytest_addoption(parser):
    """Called by pytest before it reads its options."""
    parser.addoption("--chapter", type=named, required=True)


def pytest_collection_modifyitems(config, items):
    """Called by pytest once it has found all tests: leaves those of the chapter."""
    pattern = concerns(config.getoption("--chapter"))
    config.hook.pytest_deselected(items=[item for item in items if not pattern.search(item.nodeid)])
    items[:] = [item for item in items if pattern.search(item.nodeid)]


def main(arguments: list[str]) -> int:
    """Command line; returns pytest's exit status."""
    chapter = named(arguments[0] if arguments else "")
    shared = [path for path in SHARED if not path.startswith(FOLDERS)]
    notebook = chapter.path.relative_to(ROOT)
    options = ["-p", "tests.chapter", f"--chapter={chapter.key}", *arguments[1:]]
    nbval = ["--nbval-lax", "--nbval-cell-timeout=600"]
    return pytest.main([*options, *nbval, *FOLDERS, *shared, str(notebook)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
