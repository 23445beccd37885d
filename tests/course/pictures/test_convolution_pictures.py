"""The pictures of the chapter Convolution say what they show."""

import pytest

from course.pictures import convolution as pictures


def test_a_window_says_its_sum():
    figure = pictures.window([0, 1, 3, 2, 5, 4], [1, 2, 1], 2)
    assert "12 is element 2 of the result" in figure.alt


@pytest.mark.parametrize(
    "steps, count", [((5, 3, 2, 1, 1), 3), ((6, 3, 1, 0, 2), 2), ((3, 3, 1, 0, 1), 1)]
)
def test_places_are_counted(steps, count):
    assert f"{count} × {count} places" in pictures.places(*steps).alt


def test_a_tile_has_its_halo():
    figure = pictures.halo(32, 8, 5)
    assert "36 × 12 pixels" in figure.alt
    assert len(figure.axes[0].patches) == 36 * 12


@pytest.mark.parametrize("row, side", [(4, 5), (3, 3)])
def test_a_row_of_the_walk_counts_for_as_many_results_as_the_filter_has_rows(row, side):
    picture = pictures.walk(row, side)
    assert f"counts for results {row - side // 2} to {row + side // 2}" in picture.alt
    assert picture.svg().count("<polygon") == side
    for k in range(side):
        assert f"sums[{k}] += filter&#x27;s row {side - 1 - k} · this row" in picture.svg()
    assert picture.svg().count(", complete") == 1


@pytest.mark.parametrize("tap, later", [(0, 0), (4, 8), (8, 16)])
def test_a_tap_of_the_shifted_patch_is_the_same_row_later(tap, later):
    assert f"read {later} pixels later" in pictures.shifted_patch(tap).alt


def test_matrix_and_layouts_are_drawn():
    assert "pixels 0, 1, 4, 5" in pictures.im2col().alt
    assert "place 5 covers pixels 6, 7, 10, 11" in pictures.im2col(5).alt
    assert "NHWC holds all channels of pixel 0" in pictures.layouts(2, 3).alt


def test_shares_show_what_is_recorded(monkeypatch, capsys):
    monkeypatch.setattr(pictures.results, "find", lambda name: None)
    assert pictures.shares() is None
    assert "not recorded yet" in capsys.readouterr().out
    known = {"value": 1.25, "gpu": "a GPU"}
    only = "conv/dgrad/64x56/share_of_cudnn"
    monkeypatch.setattr(pictures.results, "find", lambda name: known if name == only else None)
    figure = pictures.shares()
    assert "on a GPU. data gradient 64 ch, 56²: 125%" in figure.alt
    assert max(bar.get_height() for bar in figure.axes[0].patches) == 1.25


def test_a_pixel_gets_its_blame_by_the_taps_that_it_went_into():
    assert "Pixel 2 went into result 2 by tap 0, result 1 by tap 1, result 0 by tap 2." in (
        pictures.blame(2).alt
    )
    at_the_edge = pictures.blame(5)
    assert at_the_edge.alt.endswith("Pixel 5 went into result 3 by tap 2.")
    assert at_the_edge.svg().count("<polygon") == 1
