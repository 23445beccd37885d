"""The pictures of the chapter on Triton: what they count and say is right."""

import base64
import re
import zlib
from types import SimpleNamespace

import numpy as np
import torch

from course.chapters import FOLDER
from course.pictures import triton as pictures
from tests import hygiene

BLOCKED = (
    "#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], "
    "warpsPerCTA = [2, 1], order = [1, 0]}>"
)


def test_programs_and_masked_lanes():
    assert "4 programs of 16 lanes; the last 14 lanes" in pictures.programs(50, 16).alt


def test_the_question_when_nothing_is_grey_has_an_answer_in_the_saved_slider():
    cells = hygiene.read(FOLDER / "15_triton.ipynb").cells
    (slider,) = (cell for cell in cells if cell.id == "add-picture")
    packed = re.search(r'"([\w+/=]+)"\)</script>', slider.outputs[0]["data"]["text/html"])[1]
    pages = zlib.decompress(base64.b64decode(packed)).decode()
    assert "none masked" in pages and "are masked" in pages


def test_a_tile_of_addresses_is_row_times_length_plus_column():
    addresses = pictures.tile_addresses(program=2, rows=10, columns=6, block=(4, 8))
    x = np.arange(60).reshape(10, 6)
    assert (addresses[:2, :6] == x[8:]).all()
    assert (addresses[2:] == -1).all() and (addresses[:, 6:] == -1).all()
    sheet = pictures.tile(program=2, rows=10, columns=6, block=(4, 8))
    assert "rows 8 to 11 stand" in sheet.alt and "20 outside of 10 × 6 are masked" in sheet.alt
    assert all(f">{number}</text>" in sheet.svg() for number in (11, 48, 59))


def test_thin_matrices_stand_beside_their_product():
    a, b = np.full((96, 2), 0.5, np.float32), np.full((2, 128), 0.5, np.float32)
    fig = pictures.thin(a, b)
    assert "448 numbers in place of 12,288" in fig.alt
    left, above, product = (axes.images[0].get_array() for axes in fig.axes)
    assert left.shape == (96, 2) and above.shape == (2, 128) and (product == 0.5).all()


def test_a_print_is_cut_off_at_black_and_white():
    fig = pictures.photographs({"one": torch.tensor([[-1.0, 0.5], [3.0, torch.nan]])})
    assert fig.axes[0].images[0].get_array().tolist() == [[0, 0.5], [1, 0]]
    assert "one (mean 0.38, a pixel and the one below differ by 0.75)" in fig.alt


def test_groups_read_less_than_rows():
    assert "row by row: 10; groups of 4: 8" in pictures.tile_order(8, 8, 4, 16).alt


def test_a_blocked_layout_is_read_and_dealt():
    layout = pictures.blocked(BLOCKED)
    assert layout["threadsPerWarp"] == [4, 8]
    threads = pictures.owner(layout, (16, 64))
    assert threads[0, :4].tolist() == [0] * 4 and threads[0, 4] == 1 and threads[1, 0] == 8
    assert threads[4, 0] == 32 and threads[8, 0] == 0 and threads[0, 32] == 0
    counts = np.bincount(threads.ravel())
    assert len(counts) == 64 and set(counts) == {16}
    assert "thread 0 has 4 of them" in pictures.layout(BLOCKED, (8, 32)).alt


def test_the_swizzle_is_a_permutation_of_each_row_and_column():
    assert "p XOR r % 8" in pictures.swizzle().alt


def test_without_records_nothing_is_claimed(monkeypatch):
    monkeypatch.setattr(pictures.results, "find", lambda name: None)
    assert "not recorded yet" in pictures.languages().alt
    assert "not recorded yet" in pictures.rows_table()


def test_recorded_shares_are_drawn(monkeypatch):
    entry = {"value": 0.97, "gpu": "A GPU", "date": "2026-11-22T00:00:00Z"}
    monkeypatch.setattr(
        pictures.results, "find", lambda name: entry if "/4096/gluon" in name else None
    )
    assert pictures.languages().alt == "bf16 matmul, share of cuBLAS on A GPU: Gluon: 4096: 97%"


def test_each_graph_of_a_function_is_drawn_with_its_operations():
    def first(x):
        return torch.relu(x)

    def second(x):
        return torch.sigmoid(x) + 1

    found = SimpleNamespace(
        graphs=[torch.fx.symbolic_trace(first), torch.fx.symbolic_trace(second)]
    )
    sheet = pictures.graphs(found)
    assert sheet.alt == "Graphs of a function. graph 1: relu; graph 2: sigmoid, add."
    assert sheet.svg().count("needs a value") == 1


def test_what_two_programs_do_to_one_total_is_computed():
    sheet = pictures.meeting([5, 3, 1], start=2)
    assert "the last store leaves 3. Atomically: 11." in sheet.alt
    for words in ("load 2", "store 7", "store 3", "7 + 3", "10 + 1", "3 remains, 11 is right"):
        assert f">{words}" in sheet.svg() or words in sheet.svg(), words
