"""Kernels that stand in a chapter's cells are the course's files: one source, two places.

    python -m course.publish.cells [--check]            (a part of `make tables`)

writes every `%%cuda` cell anew from the file that its first line names, and every Python cell whose
metadata says `"source": "reductions/sums.py:name"` from that function. Outputs stay.
"""

import argparse
import ast
import re
import sys
from pathlib import Path

import nbformat

from course.chapters import notebooks
from utils.files import ROOT, write_whole
from utils.tools import yours

CUDA_CELL = re.compile(r"%%cuda +(.+)")
SOURCE = "source"


def is_cuda(cell) -> bool:
    """Whether a cell holds a part of a CUDA C file of the course."""
    return cell.cell_type == "code" and bool(CUDA_CELL.match(cell.source))


def region_of(cell) -> yours.Region:
    """The part of a file that a `%%cuda` cell names. KernelCellError where there is none."""
    return yours.region_of(CUDA_CELL.match(cell.source)[1])


def function_of(named: str) -> str:
    """The text of a function with its decorators: "reductions/sums.py:name", below course/kernels.

    LookupError where there is none.
    """
    file, _, name = named.partition(":")
    text = (ROOT / "course" / "kernels" / file).read_text(encoding="utf-8")
    return _definition(text, name, file)


def _definition(text: str, name: str, where: str) -> str:
    for node in ast.parse(text).body:
        if getattr(node, "name", None) == name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise LookupError(f"{where} defines no {name}")


def as_in_file(cell) -> str:
    """The source that a cell has to have; its own, where it holds no kernel of a file."""
    if is_cuda(cell):
        return yours.cell_text(region_of(cell))
    named = cell.metadata.get(SOURCE) if cell.cell_type == "code" else None
    if not named:
        return cell.source
    name = named.partition(":")[2]
    return cell.source.replace(_definition(cell.source, name, cell.id), function_of(named))


def outdated(path: Path) -> tuple[nbformat.NotebookNode, list[str]]:
    """A notebook as it has to be, and the ids of the cells that are not."""
    notebook = nbformat.v4.reads(path.read_text(encoding="utf-8"))
    changed = []
    for cell in notebook.cells:
        wanted = as_in_file(cell)
        if wanted != cell.source:
            cell.source = wanted
            changed.append(cell.id)
    return notebook, changed


def main(arguments=None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course.publish.cells")
    parser.add_argument("--check", action="store_true", help="write nothing, name the cells")
    check = parser.parse_args(arguments).check
    found = 0
    for path in notebooks():
        notebook, changed = outdated(path)
        found += len(changed)
        if changed:
            print(path.name, ", ".join(changed), "outdated: make tables" if check else "written")
        if changed and not check:
            write_whole(path, nbformat.v4.writes(notebook) + "\n")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
