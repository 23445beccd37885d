"""One format for all code: Python by ruff, C and CUDA C by clang-format, in files and in notebook
cells.

    python -m tests.formatting           (make format) writes
    python -m tests.formatting --check   (in make check and make test) names what is not as it would
    write it

Behind either may stand files: then only these.

ruff formats the Python of notebooks itself; here the `%%writefile` cells of C are added, which it
leaves alone.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course.chapters import notebooks
from tests.processes import completed
from utils.files import ROOT, write_whole

C_FILES = ("*.cu", "*.cuh", "*.h", "*.cpp")
C_CELL = re.compile(r"%%writefile (?:-a )?\S+\.(?:cu|cuh|h|cpp|c)\n")
LONGEST = 100  # columns of any line of code


def c_files() -> list[Path]:
    """Every file of C, C++ and CUDA C under version control, or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *C_FILES]
    done = completed(command, cwd=ROOT, check=True)
    return [ROOT / name for name in sorted(set(done.stdout.split())) if (ROOT / name).is_file()]


def clang_format(pieces: list[str]) -> list[str]:
    """Pieces of C as clang-format writes them, with the style of `.clang-format`."""
    if not pieces:  # without files it would read its input
        return []
    command = [_tool("clang-format"), f"--style=file:{ROOT / '.clang-format'}", "-i"]
    with tempfile.TemporaryDirectory() as folder:  # one call: each start costs as much as a file
        files = [Path(folder) / f"{number}.cu" for number in range(len(pieces))]
        for file, piece in zip(files, pieces, strict=True):
            file.write_text(piece, encoding="utf-8")
        completed([*command, *map(str, files)], check=True)
        return [file.read_text(encoding="utf-8") for file in files]


def formatted_notebooks(texts: Iterable[str]) -> list[str]:
    """The JSON of notebooks with their C cells formatted."""
    books = [nbformat.v4.reads(text) for text in texts]
    cells = [
        (cell, written)
        for book in books
        for cell in book.cells
        if cell.cell_type == "code" and (written := C_CELL.match(cell.source))
    ]
    bodies = clang_format([cell.source[written.end() :] + "\n" for cell, written in cells])
    for (cell, written), body in zip(cells, bodies, strict=True):
        cell.source = written[0] + body.rstrip("\n")
    return [nbformat.v4.writes(book) + "\n" for book in books]


def unformatted_notebooks(paths: Iterable[Path]) -> dict[Path, str]:
    """Notebooks whose C cells are not as clang-format writes them, and what they would be."""
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    right = zip(texts, formatted_notebooks(texts.values()), strict=True)
    return {path: text for path, text in right if text != texts[path]}


@dataclass(frozen=True)
class Files:
    """What to format. python: files and folders for ruff. c: files. books: notebooks."""

    python: list[Path]
    c: list[Path]
    books: list[Path]


def everything() -> Files:
    """All code of the repository."""
    return Files([ROOT], c_files(), notebooks())


def only(paths: Iterable[Path]) -> Files:
    """These files alone, as far as they are code."""
    paths = [path.resolve() for path in paths]
    return Files(
        [path for path in paths if path.suffix in (".py", ".ipynb")],
        [path for path in paths if any(map(path.match, C_FILES))],
        [path for path in paths if path in notebooks()],
    )


def write(files: Files) -> None:
    """Format files in place."""
    if files.python:
        command = [_tool("ruff"), "format", "-q", "--force-exclude", *map(str, files.python)]
        subprocess.run(command, check=True)
    if files.c:
        clang = [_tool("clang-format"), "-i", *map(str, files.c)]
        subprocess.run(clang, cwd=ROOT, check=True)
    for path, text in unformatted_notebooks(files.books).items():
        write_whole(path, text)


def problems(files: Files) -> list[str]:
    """What is not formatted, one line per file."""
    found = python_problems(*files.python) if files.python else []
    if files.c:
        clang = [_tool("clang-format"), "--dry-run", "-Werror", *map(str, files.c)]
        log = completed(clang, cwd=ROOT).stderr
        named = r"^(\S+?):\d+:\d+: error: code should be clang-formatted"
        names = dict.fromkeys(re.findall(named, log, re.MULTILINE))
        found += [f"Would reformat: {name}" for name in names]
    books = unformatted_notebooks(files.books)
    return found + [f"Would reformat C cells: {path.name}" for path in books]


def python_problems(*paths: Path) -> list[str]:
    """What ruff would write otherwise, files and notebooks. RuntimeError where ruff fails."""
    settings = ["--config", str(ROOT / "pyproject.toml"), "--output-format", "concise"]
    command = [_tool("ruff"), "format", "--check", "--force-exclude", *settings]
    command += map(str, paths)
    done = completed(command)
    if done.returncode == 0:
        return []
    found = [line for line in done.stdout.splitlines() if "unformatted" in line]
    if not found:
        raise RuntimeError(f"ruff format --check failed:\n{done.stdout}{done.stderr}")
    return [f"Would reformat: {line.partition(': unformatted')[0]}" for line in found]


def _tool(name: str) -> str:
    """A command-line tool of this environment."""
    return str(Path(sys.executable).with_name(name))


def main() -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, only name the files")
    parser.add_argument("files", nargs="*", type=Path, help="only these (default: all code)")
    given = parser.parse_args()
    files = only(given.files) if given.files else everything()
    if not given.check:
        write(files)
        return 0
    found = problems(files)
    print(
        "\n".join([*found, "`make format` puts it right."] if found else ["All code is formatted."])
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
