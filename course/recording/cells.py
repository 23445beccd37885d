"""What the cells of a notebook depend on: each other, the files that they write, the project's."""

import ast
import re
from functools import cache

from IPython.core.inputtransformer2 import TransformerManager

from course.recording.flow import Statement, Values, mark_of, statements
from course.recording.versions import ID, Version, attributes, modules_in, take_imports

WRITES = re.compile(r"%%writefile (-a )?(\S+)\n")
PART = re.compile(r"%%cuda +(\S+)")  # a part of one of the course's files
OUTPUT = re.compile(r"(?<=-o )[\w./-]+")  # a program that a compiler makes
IN_MAGIC = re.compile(r"[{$]([a-z_]\w*)", re.IGNORECASE)
MAGIC = re.compile(r"^\s*[%!].*", re.MULTILINE)
PYTHON_MAGICS = "%%time", "%%capture"


@cache
def python_of(source: str) -> str:
    """A cell as plain Python: magics are calls. "" for a cell in another language."""
    if source.startswith("%%"):
        first, _, rest = source.partition("\n")
        return python_of(rest) if first.startswith(PYTHON_MAGICS) else ""
    return TransformerManager().transform_cell(source)


@cache
def statements_of(source: str) -> tuple[Statement, ...]:
    """The statements of a cell; none of one that is no Python."""
    try:
        return statements(python_of(source))
    except SyntaxError:  # a cell that shows one, on purpose
        return ()


class Run:
    """A notebook's cells as they run one after another. `mark` is asked for each in turn."""

    def __init__(self, version: Version):
        self.version = version
        self.values = Values()
        self.modules: dict[str, str] = {}
        self.files: dict[str, str] = {}  # path -> its name among the values

    def mark(self, cell) -> str:
        """The mark of a code cell's work."""
        source = cell.source.strip()
        data = self.version.data(source)
        written = WRITES.match(source + "\n")
        if written:
            return self._write(written[2], bool(written[1]), source, data)
        part = PART.match(source)
        if part:
            return self._write(part[1], True, source, data)
        found = [data] if statements_of(source) else [data, source]
        used = self.values.mark(self._files_in(source) | set(self._names_in_magics(source)))
        found += [used, *(self._run(statement, used) for statement in statements_of(source))]
        mark = mark_of(*found)
        for program in OUTPUT.findall(source):
            self._file(program, mark, source)
        return mark

    def _run(self, statement: Statement, used: str) -> str:
        if statement.is_import:
            self.modules |= modules_in(statement.node, self.version)
            take_imports(statement.node, self.values, self.version)
            return mark_of(statement.text)
        for name in statement.sets:
            self.modules.pop(name, None)
        named = sorted(attributes(statement.node, self.modules))
        marks = [self.version.named(*each) for each in named]
        marks += [self.version.entry(id) for id in ids_in(statement.node)]
        return self.values.run(statement, *marks, used)

    def _write(self, path: str, appends: bool, source: str, data: str) -> str:
        """A cell that writes a file."""
        mark = mark_of(source, data)
        before = self.values.marks.get(path, "") if appends else ""
        self._file(path, mark_of(before, mark), source)
        return mark

    def _file(self, path: str, mark: str, text: str) -> None:
        """A file is written; it needs the files that its text names whenever it is used."""
        self.files[path] = path
        self.values.set(path, mark, self._files_in(text) - {path})

    def _files_in(self, text: str) -> set[str]:
        """The files written so far that a text names, by path or name, with the ending or not."""
        words = set(re.findall(r"[\w./-]+", text))
        names = {word.removeprefix("./") for word in words}
        return {path for path in self.files if names & names_of(path)}

    def _names_in_magics(self, source: str) -> list[str]:
        """The names whose values magics and shell commands take: {name} and $name."""
        return [name for line in MAGIC.findall(source) for name in IN_MAGIC.findall(line)]


def names_of(path: str) -> set[str]:
    """How a file may be called: build/add.cu, add.cu, and the program made of it, build/add."""
    return {path, path.rpartition("/")[2], path.rpartition(".")[0] or path}


def ids_in(node: ast.AST) -> list[str]:
    """The texts in a piece of code that may be an exercise's id."""
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return sorted({text for text in texts if isinstance(text, str) and ID.fullmatch(text)})


def marks(cells, version: Version) -> dict[str, str]:
    """{cell id: the mark of its work} of a notebook's code cells."""
    run = Run(version)
    return {cell.id: run.mark(cell) for cell in cells if cell.cell_type == "code"}


def files_written(cells) -> frozenset[str]:
    """The paths of all files that a notebook's cells write."""
    sources = [cell.source.strip() + "\n" for cell in cells if cell.cell_type == "code"]
    written = {match[2] for source in sources if (match := WRITES.match(source))}
    return frozenset(written.union(*map(OUTPUT.findall, sources)))
