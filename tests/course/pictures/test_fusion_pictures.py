"""The pictures of the chapter on fusion: what they count is right."""

import re

import numpy as np
import pytest

from course.kernels.low_precision import formats
from course.pictures import fusion as pictures
from utils import results


def test_passes_are_counted():
    alt = pictures.passes({"a": (1, 1), "b": (2, 1)}, fused=(2, 1)).alt
    assert "5 passes" in alt
    assert "reads 2, writes 1" in alt


def test_of_the_logits_one_chunk_exists_at_a_time():
    drawing = pictures.chunks_of_logits(tokens=8192, chunk=2048, now=1)
    assert "8,192 tokens in 4 chunks. Of the logits only the rows of chunk 2 exist." in drawing.alt
    assert drawing.svg().count("forgotten") == 1 and drawing.svg().count("not yet") == 2
    assert "in 3 chunks" in pictures.chunks_of_logits(tokens=21, chunk=8, now=0).alt


def test_formats_and_their_numbers():
    assert "e4m3 1 + 4 + 3" in pictures.bits(formats.FORMATS).alt
    line = pictures.number_line({"e2m1": formats.numbers(formats.E2M1)}, 8)
    assert "e2m1 8" in line.alt


@pytest.mark.parametrize("at, words", [(1.0, "e4m3 0.125"), (2.0**12, "e4m3 too large")])
def test_spacings(at, words):
    shown = (formats.FP16, formats.E4M3)
    assert words in pictures.spacings(shown, formats.spacing, at).alt


def test_a_lane_has_two_rows_of_the_tile():
    assert "Lane 5 is marked" in pictures.int4_tile().alt
    kept = pictures.two_of_four(np.array([1.0, 0, 2, 0]), np.array([1.0, 2]), np.array([0, 2]))
    assert "1 at 0, 2 at 2" in kept.alt


def test_a_point_for_each_network():
    rows = [("float32", 1.6e6, 0.95), ("int4, one scale", 2e5, 0.94)]
    assert "int4, one scale: 200 KB, 94.0%" in pictures.accuracy_against_bytes(rows).alt


def test_what_is_recorded_is_printed(capsys, monkeypatch):
    entry = {"name": "a/share_of_copy", "value": 0.987, "unit": "1"}
    entry |= {"gpu": "NVIDIA X", "date": "2026-11-22T00:00:00Z"}
    monkeypatch.setattr(results, "find", {"a/share_of_copy": entry}.get)
    pictures.recorded("a/share_of_copy", "b/rate")
    told = capsys.readouterr().out
    assert "98.7% (NVIDIA X, 2026-11-22)" in told
    assert "b/rate: not recorded yet" in told


def test_the_scales_of_one_result_are_marked():
    sheet = pictures.scales(row=1, step=2, column=3)
    assert "A: one a row: 4; " in sheet.alt and "B: 128 × 128: 16." in sheet.alt
    marked = re.findall(rf'd="([^"]*)" style="fill:{pictures.BLOCK_COLOURS[4]}"', sheet.svg())
    assert [path.count("z") for path in marked] == [4, 4, 1, 1]
