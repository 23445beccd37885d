"""Sizes of shared and local arrays are constants, as Numba's compiler for GPUs wants them."""

import ast

import nbformat

from course.chapters import notebooks
from utils.files import ROOT

KERNELS = [
    path for path in sorted((ROOT / "course").rglob("*.py")) if "cuda.jit" in path.read_text()
]


def computed_shapes(source):
    """The calls of cuda.shared.array and cuda.local.array whose shape is an expression."""
    lines = [line if line[:1] not in "%!" else "" for line in source.splitlines()]
    found = []
    for node in ast.walk(ast.parse("\n".join(lines))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = ast.unparse(node.func)
        if not name.endswith(("shared.array", "local.array")):
            continue
        parts = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
        if any(isinstance(part, ast.BinOp) for part in parts):
            found.append(ast.unparse(node))
    return found


def test_an_expression_is_found():
    assert computed_shapes("tile = cuda.shared.array((8, B + 1), np.float32)\n")
    assert not computed_shapes("tile = cuda.shared.array((8, B), np.float32)\n")


def test_kernels_of_the_course():
    found = {str(path): computed_shapes(path.read_text()) for path in KERNELS}
    assert {path: calls for path, calls in found.items() if calls} == {}


def test_kernels_of_the_chapters():
    sources = {
        f"{path.name}, {cell.id}": cell.source
        for path in notebooks()
        for cell in nbformat.read(path, 4).cells
        if cell.cell_type == "code" and "cuda.jit" in cell.source and "%%" not in cell.source[:2]
    }
    found = {cell: computed_shapes(source) for cell, source in sources.items()}
    assert sources and {cell: calls for cell, calls in found.items() if calls} == {}
