"""Whoever skips what is folded misses nothing that a later cell needs."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from course.chapters import WRITTEN
from course.publish.folded import FOLDED, folds
from course.recording.cells import IN_MAGIC, MAGIC, WRITES, names_of, statements_of


def needs_of_folded(cells):
    """What cells of the main line use and only folded cells before them make: "cell: name"."""
    own, folded, problems = set(), set(), []
    for cell, under in zip(cells, folds(cells), strict=True):
        if cell.cell_type != "code":
            continue
        made, used = made_and_used(cell.source)
        if under is not None:
            folded |= made
            continue
        problems += [f"{cell.id}: {name}" for name in sorted(used & (folded - own - made))]
        own |= made
    return problems


def made_and_used(source):
    """The names that a cell sets and the files that it writes; those that it uses."""
    source = source.strip() + "\n"
    found = statements_of(source.strip())
    made = set().union(*(each.sets for each in found))
    used = set().union(*(each.uses | each.later for each in found))
    used |= {name for line in MAGIC.findall(source) for name in IN_MAGIC.findall(line)}
    written = WRITES.match(source)
    if written:
        made.add(written[2])
    text = source.partition("\n")[2] if written else source
    used |= {path for word in re.findall(r"[\w./-]+", text) for path in files_of(word)}
    return made, used


def files_of(word):
    """The files in `build` that a word may name: build/add for build/add.cu."""
    if not word.startswith("build/"):
        return set()
    endings = (".cu", ".cuh", ".cpp", ".py")
    return {word} | {word + end for end in endings if word in names_of(word + end)}


@pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.name)
def test_the_main_line_needs_nothing_that_is_folded(chapter):
    cells = nbformat.v4.reads(chapter.path.read_text(encoding="utf-8")).cells
    problems = needs_of_folded(cells)
    assert not problems, f"made in a folded cell alone: {problems}; move the import or the cell up"


def test_what_a_folded_cell_alone_makes_is_found():
    heading = new_markdown_cell("### Going further: more", metadata={FOLDED: True})
    folded = [
        heading,
        new_code_cell("from a import b\nc = 1"),
        new_code_cell("%%writefile build/k.cu\n//"),
    ]
    main = [
        new_markdown_cell("### On"),
        new_code_cell("c = 2\nprint(c)", id="own"),
        new_code_cell("b(c)", id="imported"),
        new_code_cell("%nvcc build/k.cu --run", id="file"),
    ]
    assert needs_of_folded([*folded, *main]) == ["imported: b", "file: build/k.cu"]
    assert not needs_of_folded(main)
