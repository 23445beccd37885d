"""Kernels of the course that a learner changes in a cell: what they leave there is what is built.

    %%cuda matmul/wmma.cu                       the whole file
    %%cuda matmul/wmma.cu multiply              one function, kernel or struct of it
    %%cuda matmul/wmma.cu matmul "Sum sum" 14   14 lines of one, from the first that has this text

The cell holds these lines as the course has them. Running it puts them, as they are now, in their
place in a copy of the file, below `build/kernels` beside the notebook. Whatever asks `current` for
the course's file from then on (`cuda_c.load`, `%nvcc`, `source.function`, ladders) gets the copy,
as long as it differs. `--reset` at the end of the first line brings the course's text back.
"""

import difflib
import functools
import re
import shlex
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.files import write_whole
from utils.tools import replaced
from utils.tools.definitions import extent
from utils.tools.diagnostics import LearnerError

replaced.replacer = sys.modules[__name__]
COPIES = Path("build") / "kernels"
MADE = ".made"  # beside a copy: what we wrote last. Where the copy differs, its owner edited it
KEPT = ".kept"  # beside a copy: what `--reset` took away
SOURCES = {".cu", ".cuh", ".h", ".hpp", ".cpp"}
QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
USAGE = 'The first line reads: %%cuda FILE [NAME ["TEXT OF ITS FIRST LINE" LINES]] [--reset]'
RESET = "--reset"
FILE_AND_LINE = re.compile(r"^(?P<path>\S[^\n]*?), line (?P<line>\d+): ", re.MULTILINE)


class KernelCellError(LearnerError):
    """A `%%cuda` cell that cannot be put in its place."""


@dataclass(frozen=True)
class Region:
    """A part of a source file: all of it, a definition, or some lines of one.

    start: the text of its first line; lines: how many at most (None: to the definition's end).
    """

    file: Path
    name: str = ""
    start: str = ""
    lines: int | None = None

    def extent(self, text: str) -> tuple[int, int]:
        """First and last line in the file's text, from 0. LookupError where it has none such."""
        rows = text.splitlines()
        if not self.name:
            return 0, len(rows) - 1
        first, last = extent(self.file, rows, self.name)
        begin = next((n for n in range(first, last + 1) if self.start in rows[n]), None)
        if begin is None:
            raise LookupError(f"{self.name} in {self.file.name} has no line with {self.start!r}")
        return begin, min(last, begin + self.lines - 1) if self.lines else last

    def of(self, text: str) -> str:
        """This part of the file's text, at the left margin."""
        first, last = self.extent(text)
        return textwrap.dedent("\n".join(text.splitlines()[first : last + 1]))

    def put(self, text: str, part: str) -> list[str]:
        """The file's lines with `part` in this place, as far in as what stood there."""
        rows = text.splitlines()
        first, last = self.extent(text)
        margin = _margin(rows[first : last + 1])
        inside = textwrap.indent(textwrap.dedent(part).strip("\n"), margin).splitlines()
        return [*rows[:first], *inside, *rows[last + 1 :]]

    def __str__(self) -> str:
        words = [_short(self.file), self.name]
        if self.start:
            words.append(shlex.quote(self.start) if '"' in self.start else f'"{self.start}"')
        if self.lines:
            words.append(str(self.lines))
        return " ".join(filter(None, words))


def _margin(rows: list[str]) -> str:
    """What all lines that are not empty begin with."""
    indents = [row[: len(row) - len(row.lstrip())] for row in rows if row.strip()]
    return min(indents, key=len, default="")


# ---- where the course's files are

_roots: list[Path] = []


def look_in(*folders: Path) -> None:
    """Let `%%cuda` find files below these folders: matmul/wmma.cu is the one of that name in
    matmul or below.
    """
    _roots.extend(folder for folder in folders if folder not in _roots)


def find(name: str) -> Path:
    """The course's file that a cell's first line names. KernelCellError where there is none."""
    topic, _, rest = name.partition("/")
    for root in _roots:
        if (root / name).is_file():
            return root / name
        below = sorted(file for file in (root / topic).rglob(rest or "*.cu") if file.is_file())
        if rest and len(below) == 1:
            return below[0]
        if rest and below:
            also = ", ".join(str(file.relative_to(root)) for file in below)
            raise KernelCellError(f"{name} may be one of several files: name it as in {also}")
    if not _roots:
        raise KernelCellError("run the chapter's first cells first: they say where its kernels are")
    raise KernelCellError(f"the course has no file {name}. {USAGE}")


def _root_of(file: Path) -> Path:
    return next((root for root in _roots if file.is_relative_to(root)), file.parent.parent)


def _short(file: Path) -> str:
    """The name by which a cell asks for a file: matmul/wmma.cu."""
    path = file.relative_to(_root_of(file))
    return f"{path.parts[0]}/{path.name}" if len(path.parts) > 1 else path.name


# ---- the learner's copies: of whole folders, since files of one include one another

_edits: dict[Path, dict[Region, str]] = {}  # by the course's file
_begun: dict[Path, Path] = {}  # the course's folders that have copies now -> where
_caches: list[Any] = []


def cache(function: Callable) -> Callable:
    """functools.cache for what loads kernels: it forgets when a learner changes one."""
    cached = functools.cache(function)
    _caches.append(cached)
    return cached


def current(path: str | Path) -> Path:
    """The learner's copy of a course's file, if it or a file that it includes is changed; else
    `path` itself.
    """
    path = Path(path)
    if not changed_files(path):
        return path
    if path.parent.resolve() not in _begun:  # what is changed lies in another folder
        _begin(path.parent)
    return _copy(path)


def changed_files(path: str | Path) -> dict[Path, int]:
    """The course's files among `path` and what it includes that are changed: lines that differ."""
    path = Path(path)
    if not _begun:
        return {}
    counts = {}
    for file in _closure(path.parent.resolve() / path.name):
        copy = _copy(file) if file.parent in _begun else None
        if copy and copy.is_file():
            lines = _differing(_text(file), _text(copy))
            if lines:
                counts[file] = lines
    return counts


def note(path: str | Path) -> str:
    """What to say where a kernel is built: "yours: 2 lines of wmma.cu", "" if nothing is theirs."""
    parts = [
        f"{lines} {'line' if lines == 1 else 'lines'} of {file.name}"
        for file, lines in changed_files(path).items()
    ]
    return f"yours: {', '.join(parts)}" if parts else ""


def _copy(file: Path) -> Path:
    return _begun[file.parent.resolve()] / file.name


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _closure(file: Path) -> list[Path]:
    """A file and those of the course that it includes; read from the copies, where they are."""
    todo, found = [file], []
    while todo:
        at = todo.pop()
        if at in found or not at.is_file():
            continue
        found.append(at)
        copy = _copy(at) if at.parent in _begun else at
        todo += _included(at, _text(copy if copy.is_file() else at))
    return found


def _included(file: Path, text: str) -> list[Path]:
    """The course's files that this text of a file includes."""
    paths = [(file.parent / name).resolve() for name in QUOTED.findall(text)]
    return [path for path in paths if any(path.is_relative_to(root) for root in _roots)]


def _differing(old: str, new: str) -> int:
    """How many lines differ between two texts."""
    matcher = difflib.SequenceMatcher(a=old.splitlines(), b=new.splitlines(), autojunk=False)
    steps = (step for step in matcher.get_opcodes() if step[0] != "equal")
    return sum(max(a1 - a0, b1 - b0) for _, a0, a1, b0, b1 in steps)


def _begin(folder: Path) -> None:
    folder = folder.resolve()
    if folder not in _begun:
        root = _root_of(folder / "file")
        _begun[folder] = (COPIES / folder.relative_to(root)).resolve()
    for file in sorted(folder.iterdir()):
        if file.suffix in SOURCES:
            _write(file)
            for other in _included(file, _text(file)):
                if other.parent not in _begun:  # copies include copies, by the same relative paths
                    _begin(other.parent)


def _write(file: Path) -> None:
    """The copy of one file with what cells changed in it; what its owner edited by hand stays."""
    copy = _copy(file)
    made = copy.parent / MADE / file.name
    text = _assembled(file)
    if copy.is_file() and (not made.is_file() or _text(copy) != _text(made)):
        if _edits.get(file):
            raise KernelCellError(
                f"{_shown(copy)} has changes of your own. Make this change there as well, or take "
                f"the course's file again with %%cuda {_short(file)} {RESET} (yours is kept)"
            )
        return
    if not copy.is_file() or _text(copy) != text:
        write_whole(copy, text)
        write_whole(made, text)


def _assembled(file: Path) -> str:
    """The course's text with all parts that cells changed."""
    original = _text(file)
    edits = sorted(_edits.get(file, {}).items(), key=lambda edit: edit[0].extent(original))
    for (one, _), (other, _) in zip(edits, edits[1:], strict=False):
        if other.extent(original)[0] <= one.extent(original)[1]:
            raise KernelCellError(
                f"the cells %%cuda {one} and %%cuda {other} change the same lines: "
                f"put one of them back (write {RESET} at the end of its first line and run it)"
            )
    text = original
    for region, part in reversed(edits):
        text = "\n".join(region.put(text, part)) + "\n"
    return text


def _shown(path: Path) -> str:
    """A path as seen from the notebook's folder."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


# ---- what cells do


def put(region: Region, part: str) -> int:
    """Let the learner's text stand for a part of a course's file; how many of its lines differ.

    0 where it is the course's own. KernelCellError where it cannot be put there.
    """
    file = region.file.resolve()
    region = Region(file, region.name, region.start, region.lines)
    try:
        theirs = region.of(_text(file))
    except LookupError as error:
        raise KernelCellError(f"{error}. {USAGE}") from None
    lines = _differing(theirs.strip("\n"), textwrap.dedent(part).strip("\n"))
    if not lines and file.parent not in _begun:
        return 0  # nothing was ever changed here
    edits = _edits.setdefault(file, {})
    before = edits.get(region)
    edits.pop(region, None)
    if lines:
        edits[region] = part
    try:
        _begin(file.parent)
    except KernelCellError:
        edits.pop(region, None)
        if before is not None:
            edits[region] = before
        raise
    _forget()
    return lines


def reset(region: Region) -> Path | None:
    """Bring the course's text of a part back; where the learner's file is kept, if it differed."""
    file = region.file.resolve()
    edits = _edits.get(file, {})
    if file.parent not in _begun:
        _begin(file.parent)
    kept = _keep(file)
    for other in list(edits):
        if not region.name or other == Region(file, region.name, region.start, region.lines):
            del edits[other]
    copy = _copy(file)
    if not region.name:  # the whole file, what was edited by hand, too
        write_whole(copy.parent / MADE / file.name, _text(copy))
    _begin(file.parent)
    _forget()
    return kept


def _keep(file: Path) -> Path | None:
    """The learner's copy under a name of its own, before the course's text takes its place."""
    copy = _copy(file)
    if not copy.is_file() or _text(copy) == _text(file):
        return None
    folder = copy.parent / KEPT
    number = len(list(folder.glob(f"{file.stem}-*{file.suffix}"))) + 1
    kept = folder / f"{file.stem}-{number}{file.suffix}"
    write_whole(kept, _text(copy))
    return kept


def _forget() -> None:
    for cached in _caches:
        cached.cache_clear()


@dataclass(frozen=True)
class Opened:
    """A whole file of the course as the learner's own, one click away."""

    copy: Path
    lines: int

    def __repr__(self) -> str:
        return f"{_shown(self.copy)} ({self._state()})"

    def _state(self) -> str:
        return f"{self.lines} lines are yours" if self.lines else "as the course has it"

    def _repr_markdown_(self) -> str:
        return f"[{self.copy.name}]({_shown(self.copy)}), whole ({self._state()})"


def open_file(name: str) -> Opened:
    """A whole file for the learner to change: from now on what they save in it is what is built.

    name: as in the first line of a cell. Run the cells that build it again after a change.
    """
    file = find(name).resolve()
    _begin(file.parent)
    _forget()
    return Opened(_copy(file), _differing(_text(file), _text(_copy(file))))


def named(log: str) -> str:
    """A compiler's message with the cell's line behind each line of a file that a cell changed."""

    def with_cell(match: re.Match) -> str:
        place = _in_cell(Path(match["path"]), int(match["line"]))
        return f"{match[0][:-2]} ({place}): " if place else match[0]

    return FILE_AND_LINE.sub(with_cell, log)


def _in_cell(path: Path, line: int) -> str:
    """Which line of which cell a line of a copy is; "" where it is none's."""
    file = next((file for file in _edits if _is_copy(file, path)), None)
    if file is None:
        return ""
    original = _text(file)
    moved = 0
    for region, part in sorted(_edits[file].items(), key=lambda edit: edit[0].extent(original)):
        first, last = region.extent(original)
        length = len(textwrap.dedent(part).strip("\n").splitlines())
        inside = line - 1 - (first + moved)
        if 0 <= inside < length:
            return f"line {inside + 2} of your cell %%cuda {region}"
        moved += length - (last + 1 - first)
    return ""


def _is_copy(file: Path, path: Path) -> bool:
    return file.parent in _begun and _copy(file) == path.resolve()


# ---- the cell's magic


def run_cell(line: str, cell: str, shell: Any = None) -> None:
    """What `%%cuda` does. KernelCellError says what is wrong with the first line, or the place."""
    region = region_of(line)
    if RESET in line.split():
        _bring_back(region, shell)
        return
    lines = put(region, cell)
    if lines:
        what = "line differs" if lines == 1 else "lines differ"
        print(f"yours: {lines} {what} from the course's {region}. What follows is built from yours")


def region_of(line: str) -> Region:
    """The part that the first line of a cell names, given without `%%cuda`. KernelCellError."""
    try:
        words = [word for word in shlex.split(line) if word != RESET]
    except ValueError:  # a quotation mark is missing
        raise KernelCellError(USAGE) from None
    if not 1 <= len(words) <= 4 or len(words) == 4 and not words[3].isdigit():
        raise KernelCellError(USAGE)
    file, name, start, lines = (*words, "", "", "")[:4]
    return Region(find(file), name, start, int(lines) if lines else None)


def _bring_back(region: Region, shell: Any) -> None:
    kept = reset(region)
    if shell is not None:
        shell.set_next_input(cell_text(region), replace=True)
    where = f"; yours is kept in {_shown(kept)}" if kept else ""
    print(f"{region} is the course's again{where}. Run the cell once more")


def cell_text(region: Region) -> str:
    """A whole `%%cuda` cell, as the course has it."""
    return f"%%cuda {region}\n{region.of(_text(region.file)).strip(chr(10))}"


def register_magic(shell: Any) -> None:
    """Give an IPython shell the `%%cuda` cell magic."""
    shell.register_magic_function(lambda line, cell: run_cell(line, cell, shell), "cell", "cuda")
