"""Whose hands: kernels that a chapter explains are cells to change, and what follows uses them."""

import re

import nbformat
import pytest

from course.chapters import WRITTEN
from course.publish import cells

EDITABLE = re.compile(
    r"%%writefile \S+\.(?:cu|cuh)\n|%%cuda |^@(?:cuda|triton|gluon|cute|ct)\.(?:jit|kernel)\b",
    re.MULTILINE,
)
LISTING = re.compile(
    r"\bshow\(|\bsource\.(?:function|change)\(|\bgetsource(?:lines)?\(|\bListing\("
)
#: Chapters that are not converted yet: (cells to change, listings) as they are. Only better.
TODAY = {}


def code_cells(chapter):
    notebook = nbformat.v4.reads(chapter.path.read_text(encoding="utf-8"))
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def counted(chapter):
    """(cells that hold a kernel to change, cells that list one)."""
    sources = [cell.source for cell in code_cells(chapter)]
    editable = [bool(EDITABLE.search(text)) for text in sources]
    listing = [bool(LISTING.search(text)) for text in sources]
    return sum(editable), sum(listing)


def test_listings_do_not_outnumber_kernels_to_change():
    """Chapters from 09 on had 129 cells to change against 211 listings; those in TODAY still do."""
    problems = []
    for chapter in WRITTEN:
        now = editable, listings = counted(chapter)
        known = TODAY.get(chapter.key)
        if known is None and listings > editable:
            problems.append(f"{chapter.name}: {listings} listings, {editable} kernels to change")
        elif known and (editable < known[0] or listings > known[1]):
            problems.append(f"{chapter.name}: {now}, and it was {known}")
        elif known and now != known:
            problems.append(f"{chapter.name} is better: write {now} into TODAY, or take it out")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.name)
def test_kernels_in_cells_are_those_of_the_files(chapter):
    _, outdated = cells.outdated(chapter.path)
    assert not outdated, f"{outdated}: change the file in course/kernels, then `make tables`"
