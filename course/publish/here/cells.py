"""Which cells of a chapter run in a page, and which cells before them they need."""

import ast
import builtins
import re
import symtable

#: Chapters whose cells run in a page: their keys
CHAPTERS = ("meet_the_gpu", "first_kernels", "memory", "synchronization", "reductions")
#: What needs a compiler, PyTorch or sliders; it is shown as it was recorded
ELSEWHERE = re.compile(
    r"^\s*[%!]|\bcuda_c\b|\bmachine_code\b|\binteract\b|\bexercises\.(predict|quiz)\b|\.cu\"|\btorch\b"
    r"|\bnjit\b|\bcourse\.kernels\b",
    re.MULTILINE,
)


def live(notebook):
    """The cells that run in a page: a list of {"id", "source", "needs"}, in order.

    needs: ids of cells before it, in order, which define what it uses, and what these use.
    """
    made = []
    last = {}  # name -> number in `made` of the cell that defines it
    missing = set()  # names that only cells define which do not run here
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if ELSEWHERE.search(cell.source) or used(cell.source) & missing - last.keys():
            missing |= defined_by(cell.source)
            continue
        direct = {last[name] for name in used(cell.source) if name in last}
        needs = sorted(direct.union(*(made[number]["numbers"] for number in direct)))
        ids = [made[number]["id"] for number in needs]
        made.append({"id": cell.id, "source": cell.source, "needs": ids, "numbers": needs})
        if "raises-exception" not in cell.metadata.get("tags", []):
            last.update(dict.fromkeys(defined(ast.parse(cell.source)), len(made) - 1))
    return [{key: cell[key] for key in ("id", "source", "needs")} for cell in made]


def defined_by(source):
    """The names that a cell defines; none of one that is no Python."""
    try:
        return defined(ast.parse(source))
    except SyntaxError:  # `%nvcc`
        return set()


def used(source):
    """The names that a cell takes from elsewhere: those that it reads before it gives them a value.

    What a function reads it may be given anywhere in the cell: it is called later.
    """
    taken = set()
    before = set()
    for statement in ast.parse(source).body:
        taken |= {node.id for node in outermost(statement) if is_read(node)} - before
        before |= defined(statement)
    inner = [symtable.symtable(source, "cell", "exec")]
    for table in inner:
        inner += table.get_children()
        if table.get_type() == "function":
            names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
            taken |= names - before
    return {name for name in taken if not hasattr(builtins, name)}


def is_read(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def defined(tree):
    """The names that code gives a value outside of its functions."""
    names = set()
    for node in outermost(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def outermost(node):
    """A node and all within it but what stands in functions and classes; decorators count."""
    yield node
    inner = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
        inner = getattr(node, "decorator_list", [])
    for child in inner:
        yield from outermost(child)
