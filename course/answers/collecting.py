"""What lies in a folder of handed-in work: learners, their files, and the cells in these.

Each entry of the folder is a learner's: a folder, whatever lies in it, or a file. The names that
Moodle and Canvas give to what they let you download are understood, and those that `hand_in` gives.
Only sources are read: no output, no metadata, and nothing is run. What is no plain file, or too
large, is named and left alone.
"""

import functools
import json
import os
import re
import stat
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from course.answers.slicing import Cell
from course.chapters import notebooks

MOST_BYTES = 30 << 20  # of a file: a notebook with its pictures
MOST_FILES = 400  # of a learner
MOST_CELLS = 2000  # of a file
MOST_TEXT = 100_000  # characters of a cell; longer ones are left out
CHECK = re.compile(r'exercises\.check\(\s*"([\w.]+)",\s*(?:"([^"]+)"|(\w+))\s*\)')
#: Folder names of Moodle: "Ann Lee_1234_assignsubmission_file_"
MOODLE = re.compile(r"(.+)_(\d+)_assignsubmission_[a-z]+_?")
#: File names of Canvas: "leeann_LATE_1234_567890_what she called it.ipynb"
CANVAS = re.compile(r"([^_]+)(?:_LATE)?_(\d+)_\d+_.+")
OURS = re.compile(r"(?:answers|handed_in)[_-](.+)")
CHAPTER = re.compile(r"[ _-]*\d\d_[a-z_]+$")
AGAIN = re.compile(r" ?\(\d{1,2}\)$")  # a browser's second download: "answers (1).json"


@dataclass(frozen=True)
class File:
    """One file of a learner, read. chapters: {key: its code cells}. problem: why it has none."""

    name: str
    chapters: dict[str, list[Cell]] = field(default_factory=dict)
    problem: str = ""


@dataclass
class Learner:
    """A learner as the folder names them. id: Moodle's or Canvas', "" where there is none."""

    name: str
    id: str = ""
    files: list[File] = field(default_factory=list)

    @property
    def label(self) -> str:
        """How lists call them: two may have the same name."""
        return f"{self.name} ({self.id})" if self.id else self.name


@dataclass(frozen=True)
class Asked:
    """Where the answer to an exercise is, by the course's own notebook.

    cell: the id of the starter's cell. name: what it defines, or "" where it writes `path`.
    """

    id: str
    chapter: str
    cell: str
    name: str
    path: str


def asked() -> dict[str, Asked]:
    """{exercise's id: where its answer is}, of all chapters in order."""
    found = {}
    for path in notebooks():
        key = key_of(path)
        start = ""
        for cell in originals(path):
            match = CHECK.search(cell.source)
            if "exercise" in cell.metadata.get("tags", ()):
                start = cell.id
            elif match and start:
                found[match[1]] = Asked(match[1], key, start, match[3] or "", match[2] or "")
                start = ""
    return found


@functools.cache
def originals(path: Path):
    """The code cells of one of the course's notebooks."""
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


def key_of(path: Path) -> str:
    """ "first_kernels" of chapters/05_first_kernels.ipynb, "index" of the start page."""
    number, _, name = path.stem.partition("_")
    return name if number.isdigit() else path.stem


# ---- the folder


def collect(folder: Path) -> list[Learner]:
    """All learners in a folder, by name. OSError where it cannot be read."""
    learners = {}
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        name, id = named(entry.name, entry.is_dir(follow_symlinks=False))
        learner = learners.setdefault((name, id), Learner(name, id))
        if entry.is_dir(follow_symlinks=False):
            learner.files += _all_in(Path(entry.path))
        else:
            learner.files.append(read(Path(entry.path), entry.name))
    return list(learners.values())


def named(entry: str, is_folder: bool) -> tuple[str, str]:
    """(name, id) of the learner whose an entry of the folder is."""
    entry = shown(unicodedata.normalize("NFC", entry))
    stem = entry if is_folder else entry.rpartition(".")[0] or entry
    match = MOODLE.fullmatch(stem) or (None if is_folder else CANVAS.fullmatch(stem))
    if match:
        return match[1].strip(), match[2]
    if is_folder:
        return stem.strip(), ""
    stem = AGAIN.sub("", stem)
    ours = OURS.fullmatch(stem)
    name = ours[1] if ours else CHAPTER.sub("", stem) or stem
    return name.strip(" _-"), ""


def shown(text: str) -> str:
    """A name as it may be printed: what would move the cursor or turn the line is written out."""
    plain = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "".join(plain).encode("utf-8", "backslashreplace").decode()


def _all_in(folder: Path) -> list[File]:
    """All files of a learner's folder, the first ones if they are very many."""
    files = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        for name in sorted(names):
            path = Path(where, name)
            if not name.startswith(".") and len(files) < MOST_FILES:
                files.append(read(path, str(path.relative_to(folder))))
    return files


# ---- a file


def read(path: Path, name: str) -> File:
    """A file's cells by chapters; of one that has none the reason."""
    name = shown(name)
    try:
        content = _content(path)
        if path.suffix == ".ipynb":
            return File(name, _of_notebook(content))
        return File(name, _of_answers(content))
    except NotRead as error:
        return File(name, problem=str(error))
    except OSError as error:
        return File(name, problem=f"it cannot be read ({error.strerror})")


class NotRead(Exception):
    """A file that holds no answers; says why."""


def _content(path):
    """What a file's JSON says. Raises NotRead."""
    facts = path.lstat()
    if not stat.S_ISREG(facts.st_mode):
        raise NotRead("it is a link, or no plain file")
    if path.suffix not in (".ipynb", ".json"):
        raise NotRead("it is neither a notebook (.ipynb) nor a file of answers (.json)")
    if facts.st_size > MOST_BYTES:
        raise NotRead(f"it has {facts.st_size >> 20} MiB, more than {MOST_BYTES >> 20}")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, encoding="utf-8-sig") as file:
        try:
            return json.loads(file.read(MOST_BYTES))
        except (ValueError, RecursionError):
            raise NotRead("it is no JSON, so no notebook and no answers") from None


def _of_notebook(content) -> dict[str, list[Cell]]:
    """{chapter: code cells} of a notebook: the chapter whose checks it names most often."""
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise NotRead("it is no notebook of today's form: it has no list of cells")
    found = [_cell(cell) for cell in cells[:MOST_CELLS]]
    code = [cell for cell in found if cell is not None]
    named = [match[1].partition(".")[0] for cell in code for match in CHECK.finditer(cell.source)]
    if not named:
        raise NotRead("none of its cells checks an exercise of the course")
    key = max(sorted(set(named)), key=named.count)
    return {"index" if key == "start" else key: code}


def _cell(cell) -> Cell | None:
    """A code cell; None for another, or for what is none."""
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return None
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    metadata = cell.get("metadata") if isinstance(cell.get("metadata"), dict) else {}
    id = cell.get("id", metadata.get("id", ""))
    good = isinstance(source, str) and len(source) <= MOST_TEXT
    return Cell(id if isinstance(id, str) else "", source) if good else None


def _of_answers(content) -> dict[str, list[Cell]]:
    """{chapter: code cells} of a file of answers: the course's cells with the learner's in them."""
    good = isinstance(content, dict) and all(
        isinstance(cells, dict) and all(isinstance(source, str) for source in cells.values())
        for cells in content.values()
    )
    if not good:
        raise NotRead("it holds no answers: {chapter: {cell: source}} is expected")
    paths = {key_of(path): path for path in notebooks()}
    found = {}
    for key, own in content.items():
        if key in paths:
            own = {id: source for id, source in own.items() if len(source) <= MOST_TEXT}
            cells = [Cell(cell.id, own.get(cell.id, cell.source)) for cell in originals(paths[key])]
            known = {cell.id for cell in cells}
            added = [Cell(id, source) for id, source in own.items() if id not in known]
            found[key] = (cells + added)[:MOST_CELLS]
    if not found:
        raise NotRead("it names no chapter of the course")
    return found


def answer_cell(cells: list[Cell], where: Asked) -> int | None:
    """The number of the cell that holds an answer: the one with the starter's id, else the last
    one before its check that defines the name, or writes the file; None where there is none.
    """
    for number, cell in enumerate(cells):
        if cell.id == where.cell:
            return number
    checks = [n for n, cell in enumerate(cells) if f'"{where.id}"' in cell.source]
    if not checks:
        return None
    found = [n for n in range(checks[0]) if holds_answer(cells[n], where)]
    return found[-1] if found else None


def own_cell(cells: list[Cell], where: Asked, original: list[Cell]) -> int | None:
    """The number of a cell that the learner added, and that holds an answer; the last of several,
    None for none. For those who leave the starter as it was.
    """
    given = {cell.source.strip() for cell in original}
    found = [
        number
        for number, cell in enumerate(cells)
        if cell.source.strip() not in given and holds_answer(cell, where)
    ]
    return found[-1] if found else None


def holds_answer(cell: Cell, where: Asked) -> bool:
    """Whether a cell defines the name that is asked for, or writes the file."""
    sign = rf"^def {re.escape(where.name)}\b|^{re.escape(where.name)}\s*="
    if not where.name:
        sign = rf"^%%\w+ .*{re.escape(Path(where.path).name)}"
    return re.search(sign, cell.source, re.MULTILINE) is not None
