"""A new rung of the matmul ladder: it is right as it begins, and all rungs behind it move on."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from course.authoring import rung
from course.chapters import WRITTEN
from course.pictures.matmul import RUNGS
from utils.files import ROOT

MATMUL, TENSOR_CORES = (
    f"chapters/{each.name}.ipynb" for each in WRITTEN if each.key in rung.LADDER
)
KERNEL = "course/kernels/matmul/kernels/warp_deep.cu"
SIGHT = """
from course.pictures.matmul import RUNGS
print(*(RUNGS[name] for name in ("warp_tile", "warp_deep", "whole", "stream_k")))
"""


def cells(folder, name):
    return {cell.id: cell for cell in nbformat.read(folder / name, 4).cells}


def numbers(*books):
    texts = [cell.source for book in books for cell in book.values()]
    return [int(number) for text in texts for _, number in rung.HEADING.findall(text)]


NEW = RUNGS["warp_tile"] + 1
BEGIN = ("course.new", "rung", "matmul.warp_deep", "--after", "warp-predict")


def test_a_rung_has_a_file_and_cells_behind_the_one_that_it_is_like(with_ladder):
    done = with_ladder.run(*BEGIN)
    assert done.returncode == 0, done.stderr
    made = cells(with_ladder, MATMUL)
    order = list(made)
    ids = order[order.index("warp-explain") + 1 :][:5]
    assert ids[0] == "warp-deep-title" and ids[2] == "predict-warp-deep"
    assert made[ids[0]].source.startswith(f"#### Rung {NEW}: TODO")
    assert '(KERNELS / "warp_deep.cu", tile=(128, 256), threads=256)' in made[ids[3]].source
    old = (ROOT / KERNEL).with_name("warp_tile.cu").read_text()
    new = (with_ladder / KERNEL).read_text()
    assert new == f"// TODO: what differs from warp_tile.cu, and why\n{old}"
    assert '"warp_deep": ("LDGSTS"' in (with_ladder / rung.TESTS.relative_to(ROOT)).read_text()
    kept = {id: cell for id, cell in made.items() if id not in ids and cell.cell_type == "code"}
    before = cells(ROOT, MATMUL)
    assert kept == {id: cell for id, cell in before.items() if cell.cell_type == "code"}
    again = with_ladder.run(*BEGIN)
    assert again.returncode == 1 and "there is a rung" in again.stderr


def test_the_rungs_behind_it_move_on_and_what_else_names_them_is_said(with_ladder):
    said = with_ladder.run(*BEGIN).stdout
    last = len(numbers(cells(ROOT, MATMUL), cells(ROOT, TENSOR_CORES)))
    own, others = cells(with_ladder, MATMUL), cells(with_ladder, TENSOR_CORES)
    assert numbers(own, others) == list(range(1, last + 2))
    end = RUNGS["stream_k"] + 1
    assert own["upper-fold"].source.endswith(f"rungs {NEW - 1} to {end}")
    glossary = (with_ladder / "course/glossary.md").read_text()
    assert f"Rung {RUNGS['split_k'] + 1}: split-K](../chapters" in glossary
    for where in ("cell title: Eight rungs", f"cell wmma-tiles: rung {end}", ": next rung"):
        assert where in said
    (with_ladder / "look.py").write_text(SIGHT)
    numbered = [NEW - 1, NEW, RUNGS["whole"] + 1, end]
    assert with_ladder.run("look").stdout.split() == list(map(str, numbered))


def test_what_cannot_be_is_told_and_nothing_is_written(with_ladder):
    for arguments, says in {
        "first_kernels.x --after guard": "the ladder's chapters are matmul and tensor_cores",
        "matmul.x --after warp-climb --like wrap": "no file wrap.cu: say --like NAME",
        "matmul.warp_tile --after warp-climb": "there is a rung",
        "matmul.x": "where? Say --after CELL.",
    }.items():
        done = with_ladder.run("course.new", "rung", *arguments.split())
        assert done.returncode == 1 and says in done.stderr, (arguments, done.stderr)
    assert with_ladder.changed() == {}


@pytest.mark.parametrize(
    "before, after",
    [
        ("Rung 9 and rung 10's loads", "Rung 9 and rung 11's loads"),
        ("rungs 9 to 14, rungs 10 and 12", "rungs 9 to 15, rungs 11 and 13"),
        ("rungs 9, 10 or 11 of 14", "rungs 9, 11 or 12 of 14"),
        ("rung_10, 10 rungs, rung 10x, chapter 10", "rung_10, 10 rungs, rung 10x, chapter 10"),
    ],
)
def test_a_mention_moves_on_from_the_new_number(before, after):
    assert rung.moved(before, 10) == after


def test_what_a_person_has_to_look_at_is_found():
    prose, code = new_markdown_cell, new_code_cell
    assert rung.looked_at(prose("rungs 6 to 9, rungs 10 to 15"), 10) == ["rungs 6 to 9"]
    assert rung.looked_at(prose("All six rungs, four by rungs"), 10) == ["six rungs"]
    table = "| rung | values |\n|---|---|\n| 9 | 1 |\n| 10 | 2 |"
    assert rung.looked_at(prose(table), 10) == ["its table"]
    assert rung.looked_at(prose(table), 11) == []
    assert rung.looked_at(code("print('rung 9, rung 10')  # rung_10"), 10) == ["rung 10"]


def test_a_launch_without_plain_sizes_is_left_to_write():
    above = [new_code_cell('launcher(K, tile=its["T"], threads=1)\nladder.climb("tile_2d")')]
    made = rung.cells_of("mine", "tile_2d", "###", 6, above)
    assert re.search(r"threads=256\)  # TODO: its tile, its threads$", made[3].source, re.M)
