"""All tests that concern one chapter, and the chapter itself from top to bottom.

    python -m tests.chapter reductions [PYTEST'S OPTIONS]           (`make chapter NAME=reductions`)
    python -m tests.chapter reductions --tidy

These are the tests of the course and of its chapters that bear the chapter's name, in their file's
path or in their parameters, those of the kernels that the chapter names, and those of the lists
that every chapter is in: map, glossary, reading list, tables, layout. --tidy runs none of them: it
formats and lints the chapter's own files and those that are not as in the last commit.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest

from course.authoring.blanks import files_of
from course.authoring.mend import named
from course.chapters import Chapter
from course.recording.versions import changed_files
from tests import formatting
from utils.files import ROOT

#: Where tests of a chapter may be; what the engines and tools do is not a chapter's matter
FOLDERS = ("tests/chapters", "tests/course")
#: Of what all chapters share
SHARED = (
    "tests/course/test_glossary.py",
    "tests/course/test_index.py",
    "tests/course/test_instructors.py",
    "tests/course/test_reading.py",
    "tests/course/publish/test_covers.py",
    "tests/course/publish/test_tables.py",
    "tests/test_layout.py",
    "tests/test_readme.py",
)
CODE = {".py", ".ipynb", ".cu", ".cuh", ".h", ".cpp"}
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


def mine(chapter: Chapter) -> list[Path]:
    """The chapter's own files, and those of the project that the last commit has otherwise."""
    changed = [ROOT / name for name in changed_files("HEAD")]
    code = {path for path in changed if path.suffix in CODE and path.is_file()}
    return sorted({*files_of(chapter), *code})


def tidy(chapter: Chapter) -> int:
    """Format and lint `mine`; the exit status of the lint, which says what it found."""
    paths = mine(chapter)
    formatting.write(formatting.only(paths))
    python = [str(path) for path in paths if path.suffix in (".py", ".ipynb")]
    lint = [sys.executable, "-m", "ruff", "check", "--quiet", "--force-exclude", *python]
    return subprocess.run(lint, cwd=ROOT).returncode


def parsed(arguments: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """The command line's options, and those that are pytest's."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chapter",
        description=__doc__.splitlines()[0],
        epilog="All other options are pytest's: -x, -q, -k WORD, -n 0 ...",
    )
    parser.add_argument("chapter", type=named, help="its name, such as reductions")
    parser.add_argument("--tidy", action="store_true", help="format and lint alone, run no test")
    return parser.parse_known_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status, pytest's or the lint's."""
    given, options = parsed(arguments)
    chapter = given.chapter
    if given.tidy:
        return tidy(chapter)
    shared = [path for path in SHARED if not path.startswith(FOLDERS)]
    notebook = chapter.path.relative_to(ROOT)
    plugin = ["-p", "tests.chapter", f"--chapter={chapter.key}"]
    nbval = ["--nbval-lax", "--nbval-cell-timeout=600"]
    return pytest.main([*plugin, *options, *nbval, *FOLDERS, *shared, str(notebook)])


if __name__ == "__main__":
    sys.exit(main())
