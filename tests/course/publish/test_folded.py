"""Folded sections: nothing outside of them needs what they define, and one does without another."""

import ast
import builtins
import re

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbformat.v4 import new_code_cell, new_markdown_cell

from course.chapters import WRITTEN
from course.publish.folded import FOLDED, folds, unfolded
from tests import hygiene

FILE = re.compile(r"build/[\w.]+\w")
INCLUDE = re.compile(r'^#include "([\w.]+)"', re.MULTILINE)
FROM_IPYTHON = {"get_ipython", "__name__"}


def names(source):
    """(defined, used): the names and files of a cell; used are those that it does not define
    itself.
    """
    if source.startswith("%%writefile"):
        first, _, text = source.partition("\n")
        return {first.split()[-1]}, {f"build/{name}" for name in INCLUDE.findall(text)}
    if source.startswith("%%"):
        return set(), set()
    tree = ast.parse(TransformerManager().transform_cell(source))
    defined, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {(a.asname or a.name).partition(".")[0] for a in node.names}
    return defined, (used - defined) | set(FILE.findall(source))


def missing(cells):
    """(cell id, names) of cells that need what only another, folded section defines."""
    known = {None: set(dir(builtins)) | FROM_IPYTHON}  # folded section -> what it defines
    wrong = []
    for cell, at in zip(cells, folds(cells), strict=True):
        if cell.cell_type != "code":
            continue
        defined, used = names(cell.source)
        here = known[None] | known.setdefault(at, set())
        everywhere = set().union(*known.values())
        if lost := sorted(used & everywhere - here):
            wrong.append((cell.id, lost))
        known[at] |= defined
    return wrong


@pytest.mark.parametrize("chapter", WRITTEN)
def test_a_chapter_runs_without_what_is_folded(chapter):
    assert missing(hygiene.read(chapter.path).cells) == []


@pytest.mark.parametrize("chapter", WRITTEN)
def test_what_folds_an_exercise_says_so(chapter):
    """Nobody must find out by unfolding that there is something to solve."""
    cells = hygiene.read(chapter.path).cells
    silent = set()
    for cell, at in zip(cells, folds(cells), strict=True):
        if at is not None and "exercise" in cell.metadata.get("tags", []):
            heading = cells[at].source.splitlines()[0]
            if "exercise" not in heading.lower():
                silent.add(heading)
    assert not silent, f"add 'with an exercise' to these headings: {sorted(silent)}"


# ---- the rule itself


def chapter_with(*sources):
    """Cells: a string that begins with # is a heading, one that ends with ▸ a folded one."""
    cells = []
    for source in sources:
        if source.startswith("#"):
            cells.append(new_markdown_cell(source.removesuffix("▸")))
            cells[-1].metadata[FOLDED] = source.endswith("▸")
        else:
            cells.append(new_code_cell(source))
    return cells


def test_a_fold_ends_at_the_next_heading_of_its_level():
    cells = chapter_with("## a", "x = 1", "### b▸", "y = 1", "#### c", "z = 1", "## d", "w = 1")
    assert [c.source for c in unfolded(cells)] == ["## a", "x = 1", "## d", "w = 1"]


@pytest.mark.parametrize(
    "sources, lost",
    [
        (("## a▸", "x = 1", "## b", "print(x)"), ["x"]),
        (("## a▸", "x = 1", "## b▸", "print(x)"), ["x"]),
        (("## a▸", "%%writefile build/k.cu\nint x;", "## b", "%nvcc build/k.cu"), ["build/k.cu"]),
        (("## a▸", "import os", "## b", "os.getcwd()"), ["os"]),
        (("x = 1", "## a▸", "print(x)", "y = x", "print(y)"), None),
        (("## a▸", "x = 1", "## b", "x = 2", "print(x)"), None),
    ],
)
def test_what_is_lost_is_found(sources, lost):
    found = missing(chapter_with(*sources))
    assert [names for _, names in found] == ([lost] if lost else [])
