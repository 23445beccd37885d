"""What a piece of Python depends on: the names that a statement uses, sets and changes.

A statement's *mark* is a hash of its code and of the marks of all that it uses. Two notebooks in
which a cell has the same mark give it the same work on the same values, whatever else differs
between them. Comments and spaces are not part of it.
"""

import ast
import hashlib
import symtable
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

#: Methods that change what they are called on
CHANGING = frozenset(
    """add append clear copy_to_device extend fill insert pop remove setdefault shuffle sort update
    zero_ fill_ copy_ add_ sub_ mul_""".split()
)


def mark_of(*parts: str) -> str:
    """A hash of some texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a cell or a module.

    uses: names that it needs when it runs. later: names that functions made in it need when they
    are called. sets: names that it binds. changes: names of objects that it may change in place.
    launches: (kernel's name, names of its arguments) of each kernel that it launches. stores: of a
    function, the places of the parameters that it may change.
    """

    node: ast.stmt
    text: str
    uses: frozenset[str]
    later: frozenset[str]
    sets: frozenset[str]
    changes: frozenset[str]
    launches: tuple[tuple[str, tuple[str, ...]], ...]
    stores: frozenset[int] | None

    @property
    def is_import(self) -> bool:
        """Whether it only brings names of modules."""
        return isinstance(self.node, ast.Import | ast.ImportFrom)


@cache
def statements(code: str) -> tuple[Statement, ...]:
    """The statements of a piece of Python. SyntaxError where it is none."""
    return tuple(map(_statement, ast.parse(code).body))


def _statement(node: ast.stmt) -> Statement:
    text = ast.unparse(node)
    table = symtable.symtable(text, "cell", "exec")
    own = table.get_symbols()
    sets = {each.get_name() for each in own if each.is_assigned() or each.is_imported()}
    uses = {each.get_name() for each in own if each.is_referenced()}
    now, later = _inner(table)
    return Statement(
        node,
        _without_docstrings(node),
        frozenset(uses | now),
        frozenset(later),
        frozenset(sets | _globals_set(table)),
        frozenset(_changed(node) - sets),
        tuple(_launches(node)),
        _stores(node),
    )


def _inner(table) -> tuple[set[str], set[str]]:
    """Global names used by what a statement makes: at once (comprehensions, classes), or later."""
    now, later = set(), set()
    for child in table.get_children():
        used = {
            each.get_name()
            for each in child.get_symbols()
            if each.is_global() and each.is_referenced()
        }
        deeper_now, deeper_later = _inner(child)
        runs_at_once = child.get_type() == "class" or child.get_name().endswith("comp")
        runs_at_once |= child.get_name() == "genexpr"
        (now if runs_at_once else later).update(used)
        (now if runs_at_once else later).update(deeper_now)
        later |= deeper_later
    return now, later


def _globals_set(table) -> set[str]:
    """Names that functions declare `global` and set."""
    found = set()
    for child in table.get_children():
        found |= {
            each.get_name()
            for each in child.get_symbols()
            if each.is_declared_global() and each.is_assigned()
        }
        found |= _globals_set(child)
    return found


def _changed(node: ast.stmt) -> set[str]:
    """Names whose objects the statement changes in place: items and attributes that it sets,
    objects of methods that change them.
    """
    if isinstance(node, FUNCTION | ast.ClassDef):
        return set()
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript | ast.Attribute) and isinstance(each.ctx, ast.Store):
            found |= _root(each)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            found |= _root(each.func.value) if each.func.attr in CHANGING else set()
    return found


def _launches(node: ast.stmt) -> Iterable[tuple[str, tuple[str, ...]]]:
    """The launches kernel[grid, block](a, b) in a statement; "" for what is no name."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Subscript):
            given = tuple("".join(_root(argument)) for argument in each.args)
            yield "".join(_root(each.func)), given


def _stores(node: ast.stmt) -> frozenset[int] | None:
    """Which parameters a function may change: those into which it stores, or that it hands on."""
    if not isinstance(node, FUNCTION):
        return None
    changed = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            changed |= _root(each)
        elif isinstance(each, ast.Call):
            changed |= {argument.id for argument in each.args if isinstance(argument, ast.Name)}
    names = [each.arg for each in node.args.args]
    return frozenset(place for place, name in enumerate(names) if name in changed)


def _root(node: ast.expr) -> set[str]:
    """The name that an expression such as a.b[c] begins with."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _without_docstrings(node: ast.stmt) -> str:
    """The statement's code as one text; docstrings are comments that Python keeps."""
    copy = ast.parse(ast.unparse(node))
    for each in ast.walk(copy):
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(each):
            each.body = each.body[1:] or [ast.Pass()]
    return ast.dump(copy)


@dataclass
class Values:
    """What names stand for while statements run, one after another: name -> mark."""

    marks: dict[str, str] = field(default_factory=dict)
    later: dict[str, frozenset[str]] = field(default_factory=dict)
    stores: dict[str, frozenset[int]] = field(default_factory=dict)  # of functions

    def reached(self, names: Iterable[str]) -> set[str]:
        """The names, and those that their functions use when they are called."""
        found, waiting = set(), list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.later.get(name, ())
        return found

    def mark(self, names: Iterable[str]) -> str:
        """One mark for all that these names stand for now."""
        reached = sorted(self.reached(names))
        return mark_of(*(f"{name}={self.marks[name]}" for name in reached if name in self.marks))

    def run(self, statement: Statement, *more: str) -> str:
        """Take over what a statement sets and changes; its mark. more: what else it depends on."""
        mark = mark_of(statement.text, self.mark(statement.uses), *more)
        carried = {name for name in statement.uses if self.later.get(name)}
        for name in statement.sets:
            self.set(name, mark_of(mark, name), statement.later | carried)
        if statement.stores is not None:
            self.stores[statement.node.name] = statement.stores
        for name in self._changed(statement) & self.marks.keys():
            self.change(name, mark)
        return mark

    def _changed(self, statement: Statement) -> set[str]:
        """What the statement may change in place; of a kernel that is not known all arguments."""
        found = set(statement.changes)
        for kernel, given in statement.launches:
            places = self.stores.get(kernel, range(len(given)))
            found |= {given[place] for place in places if place < len(given)}
        return found

    def set(self, name: str, mark: str, later: Iterable[str] = ()) -> None:
        """The name stands for something new. later: what calling it will use."""
        self.marks[name] = mark
        self.later[name] = frozenset(later) - {name}
        self.stores.pop(name, None)

    def change(self, name: str, mark: str) -> None:
        """What the name stands for was changed in place."""
        self.marks[name] = mark_of(self.marks.get(name, ""), mark)
