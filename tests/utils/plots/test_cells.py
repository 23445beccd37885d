"""Cells are drawn as shapes that cover them, each once; too many of them as an image."""

import numpy as np
import pytest

from utils.plots import IDLE, cells, chart, picture


@pytest.mark.parametrize("share", [0, 0.2, 0.8, 1])
def test_rectangles_cover_the_chosen_cells_once(share):
    chosen = np.random.default_rng(3).random((9, 13)) < share
    covered = np.zeros(chosen.shape, int)
    for left, top, right, bottom in cells.rectangles(chosen):
        covered[top:bottom, left:right] += 1
    assert np.array_equal(covered, chosen)


def drawn(colours):
    """The SVG of cells of these colours."""
    fig, axes = chart(3, 2, alt="cells")
    cells.draw_cells(axes, colours)
    cells.draw_lines(axes, *colours.shape[:2])
    return picture.themed(fig)


def test_cells_follow_the_theme_as_shapes():
    faint = [int(IDLE[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    colours = np.full((4, 6, 3), faint)
    colours[1, 2:4] = 0, 0.5, 1
    said = drawn(colours)
    assert "<image" not in said and "#0080ff" in said
    assert picture.svg.FAINT in said and picture.svg.PAPER in said


def test_too_many_pieces_are_an_image():
    noise = np.random.default_rng(4).random((50, 50, 3))
    assert "<image" in drawn(noise)
