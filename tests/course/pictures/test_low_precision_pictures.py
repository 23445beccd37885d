"""The pictures of the chapter on low precision: what they count is right."""

import re

import numpy as np
import pytest

from course.kernels.low_precision import formats
from course.pictures import low_precision as pictures


def test_formats_and_their_numbers():
    assert "e4m3 1 + 4 + 3" in pictures.bits(formats.FORMATS).alt
    line = pictures.number_line({"e2m1": formats.numbers(formats.E2M1)}, 8)
    assert "e2m1 8" in line.alt


@pytest.mark.parametrize("at, words", [(1.0, "e4m3 0.125"), (2.0**12, "e4m3 too large")])
def test_spacings(at, words):
    shown = (formats.FP16, formats.E4M3)
    assert words in pictures.spacings(shown, formats.spacing, at).alt


def test_a_rounded_number_is_told_with_its_code_and_error():
    alt = pictures.rounding(0.7, formats.E4M3, 0b0_0110_011, [0.625, 0.6875, 0.75]).alt
    assert "0.7 with 4 exponent and 3 mantissa bits becomes 0.6875, code 00110011" in alt
    assert "an error of 1.8%" in alt


def test_a_lane_has_two_rows_of_the_tile():
    assert "Lane 5 is marked" in pictures.int4_tile().alt
    kept = pictures.two_of_four(np.array([1.0, 0, 2, 0]), np.array([1.0, 2]), np.array([0, 2]))
    assert "1 at 0, 2 at 2" in kept.alt


def test_a_point_for_each_network():
    rows = [("float32", 1.6e6, 0.95), ("int4, one scale", 2e5, 0.94)]
    assert "int4, one scale: 200 KB, 94.0%" in pictures.accuracy_against_bytes(rows).alt


def test_the_scales_of_one_result_are_marked():
    sheet = pictures.scales(row=1, step=2, column=3)
    assert "A: one per row: 4; " in sheet.alt and "B: 128 × 128: 16." in sheet.alt
    marked = re.findall(rf'd="([^"]*)" style="fill:{pictures.BLOCK_COLOURS[4]}"', sheet.svg())
    assert [path.count("z") for path in marked] == [4, 4, 1, 1]
