"""What of a notebook an answer needs: the statements that make it, and those that make what they
use. Launches, pictures and timings beside it are left alone.
"""

import ast
import builtins
from dataclasses import dataclass

from course.recording.cells import statements_of
from course.recording.flow import FUNCTION, Statement

MOST_TEXT = 600_000  # characters of all cells together
KNOWN = frozenset(dir(builtins)) | {"get_ipython"}


@dataclass(frozen=True)
class Cell:
    """A code cell: its id ("" where the file has none) and its source."""

    id: str
    source: str


class Unreadable(Exception):
    """A cell that is no Python; says where."""


def sliced(cells: list[Cell], start: int, name: str) -> str:
    """Python source that defines `name` as it is after cell number `start`, with all that it needs.

    Raises Unreadable where that cell is no Python, or where the cells are too long. A name that
    nothing defines is left to whoever runs it.
    """
    if sum(len(cell.source) for cell in cells) > MOST_TEXT:
        raise Unreadable(f"the notebook has more than {MOST_TEXT:,} characters of code")
    try:
        return _sliced(cells, start, name)
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from None


def _sliced(cells, start, name) -> str:
    placed = [
        (number, statement)
        for number, cell in enumerate(cells)
        for statement in _statements(cell, number == start)
    ]
    before = [statement for number, statement in placed if number <= start]
    after = [statement for number, statement in placed if number > start]
    chosen = _needed(before, {name})
    made = set().union(*(statement.sets for statement in chosen))
    missing = _uses(chosen) - made - KNOWN
    if missing:  # functions look up names when they are called, which may be defined below
        later = _needed([*before, *after], missing)
        kept = {id(each) for each in (*chosen, *later)}  # to compare statements would read them all
        chosen = [each for each in (*before, *after) if id(each) in kept]
    return "\n\n".join(ast.unparse(statement.node) for statement in chosen)


def _statements(cell: Cell, needed: bool):
    """The statements of a cell; of one that is no Python none, where that does no harm."""
    found = statements_of(cell.source.strip())
    if needed and not found and cell.source.strip():
        try:
            compile(cell.source, "the cell", "exec")
        except (SyntaxError, ValueError) as error:
            where = getattr(error, "lineno", None)
            line = f"line {where}: " if where else ""
            raise Unreadable(f"{line}{getattr(error, 'msg', error)}") from None
    return found


def _needed(statements: list[Statement], wanted: set[str]) -> list[Statement]:
    """Of these those that make what is wanted, in their order."""
    wanted = set(wanted)
    modules = set().union(*(each.sets for each in statements if each.is_import))
    chosen = []
    for statement in reversed(statements):
        changes = statement.changes - modules  # np.append(...) changes nothing
        if not (statement.sets | changes) & wanted:
            continue
        chosen.append(statement)
        if not changes & wanted and not _may_not_run(statement):
            wanted -= statement.sets
        wanted |= statement.uses | statement.later
    return chosen[::-1]


def _may_not_run(statement: Statement) -> bool:
    """Whether what it sets may have been set before, too: `if`, `for`, `try`, `+=`."""
    definition = isinstance(statement.node, FUNCTION | ast.ClassDef)
    return hasattr(statement.node, "body") and not definition


def _uses(statements) -> set[str]:
    return set().union(*(statement.uses | statement.later for statement in statements))
