"""No cell asks a GPU for a capability that the CPU engines have: without one, it runs."""

import ast
from types import SimpleNamespace

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

from course.chapters import notebooks
from course.kernels.convolution import hopper
from course.kernels.low_precision import int4
from tests.needs import without_gpu

ASKS = ("compute_capability", "available")
#: What conditions of cells may name, as it is without a GPU
NAMES = {
    "gpu": None,
    "has_gpu": lambda: False,
    "hopper": hopper,
    "int4": int4,
    "machine": lambda: SimpleNamespace(gpu=None),
}


def conditions(source):
    """The conditions in a cell's code that ask what a GPU can do."""
    for node in ast.walk(ast.parse(TransformerManager().transform_cell(source))):
        if isinstance(node, ast.If) and any(word in ast.unparse(node.test) for word in ASKS):
            yield ast.unparse(node.test)


def code_cells(path):
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code" and not cell.source.startswith("%%"):
            yield cell


@without_gpu("this is about machines without a GPU")
def test_no_cell_is_skipped_for_want_of_a_gpus_capability():
    asked = [
        (path.name, cell.id, condition)
        for path in notebooks()
        for cell in code_cells(path)
        for condition in conditions(cell.source)
    ]
    assert asked  # chapters on convolution and reductions ask
    assert [one for one in asked if not eval(one[2], dict(NAMES))] == []


def test_a_cell_that_is_skipped_is_found():
    (condition,) = conditions("if gpu and gpu.compute_capability >= (9, 0):\n    run()")
    assert not eval(condition, dict(NAMES))
