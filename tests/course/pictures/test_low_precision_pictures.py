"""The pictures of the chapter on low precision: what they count is right."""

import re

import numpy as np
import pytest

from course.kernels.low_precision import formats
from course.pictures import low_precision as pictures


def test_a_neuron_is_a_picture_of_its_weights():
    weights = np.zeros((2, 16))
    weights[0, 5], weights[1, 0] = 0.5, -0.25
    picture = pictures.neurons(weights, limit=0.5)
    assert "2 neurons, 4 × 4 weights each; not 0 are 1, 1." in picture.alt
    first, second = (axes.images[0].get_array() for axes in picture.axes)
    assert tuple(first[2, 2]) == pictures.FOR  # behind the frame
    white, orange = np.full(3, pictures.WHITE), np.array(pictures.AGAINST)
    assert np.abs(second[1, 1] - (white + orange) / 2).max() <= 1


def test_wrong_answers_are_marked():
    picture = pictures.reading(np.zeros((3, 16)), [7, 2, 1], [7, 3, 1])
    assert picture.alt == "Digits 7 3 1, read as 7 2 1: 1 wrong."
    words = [text.get_text() for text in picture.axes[0].texts]
    assert words == ["7", "2 ×", "1"]


@pytest.mark.parametrize("code", range(0b0_1111_110 + 1))
def test_a_code_is_told_as_the_number_that_it_is(code):
    (number,) = formats.decode([code], formats.E4M3)
    alt = pictures.value(code, formats.E4M3, [0.0, float(number), 500.0]).alt
    made = alt.split(" is ")[1].split(" = ")[0].replace("·", "*").replace("^", "**")
    assert eval(made) == number and f"The code {code:08b} is" in alt


def test_errors_that_cancel_leave_an_area_right():
    true = np.full((17, 16), 10.0)
    chequered = true + 2 * (-1.0) ** np.indices(true.shape).sum(0)
    picture = pictures.greys(true, {"by turns": chequered, "darker": true - 3})
    assert "at most 3 greys" in picture.alt
    assert "by turns: pixels 2.00 off, areas 0.00; darker: pixels 3.00 off, areas 3.00" in (
        picture.alt
    )


def test_bits_have_one_colour_in_all_pictures():
    def sign_of(picture):
        return picture.axes[0].patches[0].get_facecolor()

    assert sign_of(pictures.bits((formats.E4M3,))) == sign_of(
        pictures.value(0, formats.E4M3, [0.0, 1.0])
    )


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
