"""The project's files as they are, and as they were committed."""

import ast
import re
import subprocess
from functools import cached_property
from pathlib import Path

from course.recording.flow import Values, mark_of, statements
from utils.files import ROOT

#: Whose changes cells see: what draws, launches and asks. The checking of answers and `utils` are
#: not followed: a change there shows at the next recording of everything.
FOLLOWED = ("course/exercises/", "course/pictures/", "course/kernels/", "course/libraries/")
FOLLOWED += ("course/extensions/", "course/leaderboard.py", "assets/")
ENTRIES = "course/exercises"
ID = re.compile(r"[a-z]\w*\.\w+")


def git(*arguments: str, folder: Path = ROOT) -> str | None:
    """What git says, or None where it fails, or is not there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, encoding="utf-8"
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def changed_files(since: str, root: Path = ROOT) -> set[str]:
    """Files that are not as in that commit, the new ones among them."""
    differ = git("diff", "--name-only", "--no-renames", since, folder=root) or ""
    new = git("ls-files", "--others", "--exclude-standard", folder=root) or ""
    return set((differ + new).splitlines())


class Version:
    """The project's files at one time, and what each of their definitions stands for.

    since: a commit, or None for the files as they are. changed: only these are read, relative to
    root; all others are the same in both versions, and what they hold needs no mark.
    """

    def __init__(self, since: str | None, changed: set[str], root: Path = ROOT):
        self.since, self.changed, self.root = since, changed, root
        self._modules: dict[str, Values | None] = {}
        self._entries: dict[str, dict[str, str]] = {}

    def read(self, name: str) -> str:
        """The text of a file, "" where it is not there (or is no text)."""
        if self.since is not None:
            return git("show", f"{self.since}:{name}", folder=self.root) or ""
        try:
            return (self.root / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    @cached_property
    def code_changed(self) -> bool:
        """Whether any module that is followed is another one now."""
        return any(name.startswith(FOLLOWED) and name.endswith(".py") for name in self.changed)

    @cached_property
    def data_changed(self) -> dict[str, str]:
        """Files that are no modules: how texts call them -> path."""
        others = [each for each in self.changed if each.startswith(FOLLOWED)]
        paths = [Path(each) for each in others if not each.endswith(".py")]
        return {word: str(path) for path in paths for word in (path.name, f'"{path.stem}"')}

    def file_of(self, module: str) -> str:
        """The file of a module that is followed, or ""."""
        name = module.replace(".", "/")
        for path in (f"{name}.py", f"{name}/__init__.py"):
            if path.startswith(FOLLOWED) and path != f"{ENTRIES}/__init__.py":
                if path in self.changed or (self.root / path).is_file():
                    return path
        return ""

    def named(self, module: str, name: str = "") -> str:
        """The mark of what `module` calls `name`; "" where nothing could have changed."""
        path = self.file_of(module) if self.code_changed else ""
        values = self._values(path) if path else None
        return values.mark([name]) if values else ""

    def _values(self, path: str) -> Values | None:
        """What the names of a module stand for."""
        if path not in self._modules:
            self._modules[path] = None  # for a circle of imports
            self._modules[path] = run_module(self.read(path), self)
        return self._modules[path]

    def entry(self, id: str) -> str:
        """The mark of the exercise or question of this id; "" where nothing could have changed."""
        key = id.partition(".")[0]
        path = f"{ENTRIES}/{key}.py"
        if not self.code_changed or not (path in self.changed or (self.root / path).is_file()):
            return ""
        if path not in self._entries:
            self._entries[path] = entries_of(self.read(path), self._values(path))
        return self._entries[path].get(id, "")

    def data(self, text: str) -> str:
        """The mark of the changed files that a text names: tile.cu, or as a text alone "tile"."""
        words = set(re.findall(r'"[\w-]+"|[\w.-]+', text.replace("'", '"')))
        paths = sorted({path for word, path in self.data_changed.items() if word in words})
        return mark_of(*map(self.read, paths)) if paths else ""


def run_module(code: str, version: Version) -> Values | None:
    """What the names of a module stand for at its end; None where it is no Python."""
    values = Values()
    try:
        lines = statements(code)
    except SyntaxError:
        return None
    for statement in lines:
        if statement.is_import:
            take_imports(statement.node, values, version)
        else:
            values.run(statement, version.data(ast.unparse(statement.node)))
    return values


def take_imports(node: ast.Import | ast.ImportFrom, values: Values, version: Version) -> None:
    """Names from modules: where they come from counts, and what they are there if they changed."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            name = alias.asname or alias.name.partition(".")[0]
            values.set(name, mark_of("module", alias.name))
            continue
        name = alias.asname or alias.name
        mark = version.named(node.module or "", alias.name)
        values.set(name, mark_of("from", node.module or "", alias.name, mark))


def modules_in(node: ast.Import | ast.ImportFrom, version: Version) -> dict[str, str]:
    """Name -> module, of the modules that are followed among what is imported."""
    found = {}
    for alias in node.names:
        module = alias.name
        if isinstance(node, ast.ImportFrom):
            module = f"{node.module}.{alias.name}"
        if version.file_of(module):
            found[alias.asname or alias.name] = module
    return found


def attributes(node: ast.AST, modules: dict[str, str]) -> set[tuple[str, str]]:
    """(module, name) of each `module.name` in a piece of code."""
    return {
        (modules[each.value.id], each.attr)
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id in modules
    }


def entries_of(code: str, values: Values | None) -> dict[str, str]:
    """{id: mark} of the exercises and questions that a module makes."""
    found = {}
    for node in ast.walk(ast.parse(code)) if values else ():
        if not isinstance(node, ast.Call):
            continue
        given = [*node.args, *(each.value for each in node.keywords if each.arg == "id")]
        for each in given:
            if isinstance(each, ast.Constant) and ID.fullmatch(str(each.value)):
                names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                found[each.value] = mark_of(ast.dump(node), values.mark(names))
    return found
