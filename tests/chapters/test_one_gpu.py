"""No function and no cell puts recorded numbers of two GPUs side by side.

Results of one topic (the first part of their names) are of one GPU. Who needs two topics asks by
`results.together`, or says of which GPU.
"""

import ast

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from course.chapters import WRITTEN
from tests import hygiene
from utils.files import ROOT
from utils.results.likeness import RECORDED_ON


def first_words(node):
    """What a name that is a text, or a text with gaps, begins with; "" for anything else."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def topics(tree):
    """The topics of all calls of `results.find` that leave the GPU open."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    open_ones = [call for call in calls if len(call.args) == 1 and not call.keywords]
    names = [first_words(call.args[0]) for call in open_ones if is_find(call.func)]
    return {name.partition("/")[0] for name in names if "/" in name}


def is_find(function):
    """Whether this is `results.find`."""
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "find"
        and isinstance(function.value, ast.Name)
        and function.value.id == "results"
    )


def pieces():
    """(where, syntax tree) of every function that is not a test, and of every cell."""
    for folder in ("course", "utils"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source if "results.find" in source else "")
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    yield f"{path.relative_to(ROOT)}: {node.name}", node
    for chapter in WRITTEN:
        for cell in hygiene.read(chapter.path).cells:
            if cell.cell_type == "code" and "results.find" in cell.source:
                source = TransformerManager().transform_cell(cell.source)
                yield f"{chapter.path.name}: {cell.id}", ast.parse(source)


def test_numbers_of_two_topics_are_asked_for_together():
    mixed = {where: found for where, tree in pieces() if len(found := topics(tree)) > 1}
    assert mixed == {}, "`results.together` gives them all of one GPU"


@pytest.mark.parametrize(
    "source, count",
    [
        ('results.find("a/b/c"); results.find(f"a/{n}")', 1),
        ('results.find("a/b"); results.find(f"b/{n}/c")', 2),
        ('results.find("a/b"); results.find("b/c", gpu)', 1),
        ('results.find("a/b"); results.find("b/c", gpu=gpu)', 1),
        ('results.find(name); other.find("b/c")', 0),
    ],
)
def test_topics_are_seen(source, count):
    assert len(topics(ast.parse(source))) == count


@pytest.mark.parametrize("chapter", WRITTEN)
def test_a_chapter_shows_the_outputs_of_one_gpu(chapter):
    """What the set-up cell said of the machine."""
    cells = hygiene.read(chapter.path).cells
    setup = next(cell for cell in cells if "setup" in cell.metadata.get("tags", []))
    said = "".join(map(hygiene.output_text, setup.outputs)).strip()
    assert said.startswith((f"{RECORDED_ON} · ", "no NVIDIA GPU", "CUDA_COURSE_CPU")), said
