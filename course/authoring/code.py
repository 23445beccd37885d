"""Edits of Python modules as text: what stands in them stays as it is."""

import ast
import subprocess
import sys
from pathlib import Path


def names_in(text: str) -> set[str]:
    """All names that a module sets or imports at its top."""
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, ast.Assign):
            found |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def assignment(text: str, name: str) -> ast.Assign:
    """Where a module sets this name. LookupError where it does not."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == [name]:
            return node
    raise LookupError(f"nothing sets {name}")


def at(text: str, line: int, column: int) -> int:
    """The index of a place that `ast` names (line from 1, column in bytes)."""
    lines = text.splitlines(keepends=True)
    begun = "".join(lines[: line - 1])
    return len(begun) + len(lines[line - 1].encode()[:column].decode())


def with_item(text: str, name: str, item: str) -> str:
    """The module with one more item at the end of the tuple that it calls `name`."""
    value = assignment(text, name).value
    end = at(text, value.end_lineno, value.end_col_offset) - 1  # its closing bracket
    inside = text[:end].rstrip()
    comma = "" if inside.endswith((",", "(")) else ","
    last = "" if value.elts else ","
    return f"{inside}{comma} {item}{last}{text[end:]}"


def with_entry(text: str, name: str, entry: str) -> str:
    """The module with one more entry at the end of the dictionary that it calls `name`."""
    value = assignment(text, name).value
    end = at(text, value.end_lineno, value.end_col_offset) - 1  # its closing brace
    inside = text[:end].rstrip()
    comma = "" if inside.endswith((",", "{")) else ","
    return f"{inside}{comma} {entry},{text[end:]}"


def before(text: str, name: str, part: str) -> str:
    """The module with a part more, before the statement that sets `name`."""
    line = assignment(text, name).lineno
    lines = text.splitlines(keepends=True)
    above, below = "".join(lines[: line - 1]).rstrip(), "".join(lines[line - 1 :])
    return "\n\n\n".join([above, part.strip("\n"), below])


def with_imports(text: str, imports: str) -> str:
    """The module with these lines of imports below its docstring; `tidied` puts them in order."""
    body = ast.parse(text).body
    has_words = bool(body) and isinstance(body[0], ast.Expr)
    line = body[0].end_lineno if has_words else 0
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:line], f"\n{imports.strip()}\n", *lines[line:]])


def tidied(path: Path) -> None:
    """Put a module's imports in order and format it, in place, by ruff."""
    ruff = str(Path(sys.executable).with_name("ruff"))
    subprocess.run([ruff, "check", "-q", "--fix", "--select", "I", str(path)], check=True)
    subprocess.run([ruff, "format", "-q", str(path)], check=True)
