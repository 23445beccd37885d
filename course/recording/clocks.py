"""Which cells time something, and so must run while nothing else does.

Seen from the code, not declared: a cell is timed if it names a clock, or uses what a module made
that names one, by itself or through what it imports. Too many cells alone cost some seconds, one
too few spoils a number; so every doubt means *alone*.
"""

import ast
import re
from functools import cache

from course.recording.cells import MAGIC, WRITES, names_of, statements_of
from utils.files import ROOT

#: What clocks are called, in Python and in C
CLOCK = re.compile(
    r"\b(?:perf_counter\w*|monotonic|process_time|time\.time|%?timeit|cuda\.event|elapsed_time"
    r"|event_elapsed_time|do_bench|cudaEventElapsedTime|clock64|clock|chrono|CUDAGraph|ncu|nsys"
    r"|mem_get_info|cudaMemGetInfo|benchmark|compare|copy_bandwidth|matmul_rate|torch\.profiler)\b"
)
#: Names of `utils` that measure; its other modules may have a clock for a limit, or for a cache
MEASURING = {
    "utils.benchmark",
    "utils.compare",
    "utils.machine",
    "utils.profilers",
    "utils.timing",
    "utils.hardware",
    "utils.tools.profilers",
}
#: Modules of the course that time no kernel: pictures, and answers, whose clocks are limits
UNTIMED = ("course.exercises", "course.checking", "course.pictures", "course.publish")


def timed(cells) -> set[str]:
    """The ids of a notebook's cells that time something."""
    found, clocks = set(), set()  # clocks: names and files that lead to one
    for cell in cells:
        if cell.cell_type == "code" and _is_timed(cell.source.strip(), clocks):
            found.add(cell.id)
    return found


def _is_timed(source: str, clocks: set[str]) -> bool:
    """Whether a cell is timed. clocks: names known so far, added to."""
    written = WRITES.match(source + "\n")
    if written:
        if CLOCK.search(source) or _names_file(source, clocks):
            clocks.add(written[2])
        return False  # it only writes
    is_timed = _names_file(source, clocks)
    for statement in statements_of(source):
        if statement.is_import:
            clocks |= {name for name, module in imported(statement.node) if times(module)}
            continue
        is_clock = bool(CLOCK.search(ast.unparse(statement.node)))
        makes = isinstance(statement.node, ast.FunctionDef | ast.ClassDef)
        leads = is_clock or (statement.uses | statement.later) & clocks
        clocks -= statement.sets
        if leads:
            clocks |= statement.sets | statement.changes
            is_timed |= not makes or bool(statement.uses & clocks)
    return is_timed or any(CLOCK.search(line) for line in MAGIC.findall(source))


def _names_file(source: str, clocks: set[str]) -> bool:
    """Whether a cell names a file that holds a clock."""
    words = {word.removeprefix("./") for word in re.findall(r"[\w./-]+", source)}
    return any(words & names_of(path) for path in clocks if "." in path)


def imported(node: ast.Import | ast.ImportFrom):
    """(name, where it comes from) of each name that an import brings."""
    for alias in node.names:
        where = alias.name
        if isinstance(node, ast.ImportFrom):
            where = f"{node.module}.{alias.name}"
        yield alias.asname or alias.name, where


@cache
def times(name: str) -> bool:
    """Whether `name`, a module or something in one, may be a clock or use one."""
    if name in MEASURING or name.rpartition(".")[0] in MEASURING:
        return True
    if name.startswith(UNTIMED) or not name.startswith("course."):
        return bool(CLOCK.search(name))
    return any(_has_clock(module) for module in (name, name.rpartition(".")[0]))


@cache
def _has_clock(module: str) -> bool:
    """Whether a module of the course names a clock, or imports what does."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    if not path.is_file():
        return False
    code = path.read_text(encoding="utf-8")
    waiting, known = [module], {module}
    while waiting:
        file = ROOT / f"{waiting.pop().replace('.', '/')}.py"
        if not file.is_file():
            continue
        code = file.read_text(encoding="utf-8")
        if CLOCK.search(code):
            return True
        nodes = [each for each in ast.walk(ast.parse(code)) if hasattr(each, "names")]
        imports = [each for each in nodes if isinstance(each, ast.Import | ast.ImportFrom)]
        for _, where in (each for node in imports for each in imported(node)):
            if where in MEASURING or where.rpartition(".")[0] in MEASURING:
                return True
            for each in (where, where.rpartition(".")[0]):
                if each.startswith("course.") and not each.startswith(UNTIMED):
                    waiting += {each} - known
                    known.add(each)
    return False
