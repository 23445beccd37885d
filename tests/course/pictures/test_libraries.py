"""The pictures of the chapter Libraries say in words what they draw."""

import re

import numpy as np
import pytest

from course.pictures import libraries as pictures


def drawn(figure):
    """All words in a picture."""
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_library_reads_rows_as_columns():
    figure = pictures.two_readings(2, 3)
    assert "3 × 2 with the rows ad, be, cf" in figure.alt
    assert drawn(figure).count("a") == 3  # in memory, and in both matrices


def test_the_leading_dimension_is_the_distance_of_columns():
    figure = pictures.leading_dimension(4, 3, 6)
    assert "leading dimension is 6, the library reads the matrix" in figure.alt
    assert "refuses the call" in pictures.leading_dimension(4, 3, 6, told=3).alt
    assert "reads other elements" in pictures.leading_dimension(4, 3, 6, told=8).alt
    assert sum("," in word for word in drawn(figure)) == 12


@pytest.mark.parametrize("n, kept", [(8, 5), (7, 4), (1, 1)])
def test_half_of_the_bins_are_stored(n, kept):
    assert f"{kept} are stored" in pictures.bins_of(n).alt


def test_csr_has_three_arrays():
    alt = pictures.csr([[5, 0, 0, 1], [0, 0, 0, 0], [0, 2, 3, 0]]).alt
    assert alt == "A sparse matrix in CSR: values 5 1 2 3; columns 0 3 1 2; offsets 0 2 2 4."


def test_the_two_largest_of_four_stay():
    alt = pictures.two_of_four([0.1, -0.9, 0.5, 0.2, 0.7, 0.3, -0.1, -0.4]).alt
    assert "-0.9 0.5 0.7 -0.4, at places 1 2 0 3" in alt


def test_shares_are_said_and_missing_ones_left_out():
    figure = pictures.shares(
        [("sort", {"library": 0.5, "Python": None}), ("none", {"library": None})]
    )
    assert figure.alt == "Share of the roof. sort: library 50%."
    assert pictures.shares([("none", {"library": None})]) == "no shares are recorded yet"


def test_the_others_are_drawn():
    assert "handle" in pictures.lives().alt
    assert "fuse" in pictures.decide().alt


def test_empty_boxes_of_points_are_counted():
    side = (np.arange(pictures.BOXES) + 0.5) / pictures.BOXES
    even = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    drawing = pictures.points({"even": even, "one": even[:1]})
    assert "even: 0 of 256 boxes are empty; one: 255 of 256" in drawing.alt
    assert drawing.svg().count("h0") == len(even) + 1


def test_a_tensors_levels_lie_as_far_apart_as_in_memory():
    array = np.zeros((2, 3, 4, 8), np.float32)
    steps = [stride // array.itemsize for stride in array.strides]
    alt = pictures.nchw(*array.shape).alt
    assert [int(step) for step in re.findall(r"(?:image|channel|row|column) (\d+)", alt)] == steps


def test_in_a_stream_of_its_own_nobody_waits_for_the_other_package():
    drawing = pictures.two_streams()
    assert (
        "nobody waits: PyTorch's has busy, then fill x with 1, CuPy's has add x up" in drawing.alt
    )
    lefts = re.findall(r'<text x="([^"]*)"[^>]*>add x up<', drawing.svg())
    early, late = map(float, lefts)
    assert early < late
