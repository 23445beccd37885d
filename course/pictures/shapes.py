"""Shapes that several pictures are made of: boxes, words, arrows on matplotlib's axes; a matrix of
numbers on a Drawing.
"""

import numpy as np

from utils.plots import ACCENT, BLOCK_COLOURS, IDLE, INK
from utils.plots.svg import FAINT, ON_COLOUR

SMALL = 8.5  # points: letters within a picture


def sheet(axes, width, height, below=0.0, equal=True):
    """Axes without ticks for things of width × height, y downwards; below: room under them."""
    axes.set(
        xlim=(-0.2, width + 0.2),
        ylim=(height + below, -0.2),
    )
    axes.axis("off")
    if equal:
        axes.set_aspect("equal")


def box(
    axes,
    x,
    y,
    width,
    height,
    colour=IDLE,
    edge=INK,
    line=0.8,
    **more,
):
    """A rectangle with its upper left corner at (x, y). line: of its edge, in points."""
    from matplotlib.patches import Rectangle

    look = {"facecolor": colour, "edgecolor": edge, "linewidth": line, **more}
    axes.add_patch(Rectangle((x, y), width, height, **look))


def word(axes, x, y, text, **more):
    """A text whose middle is at (x, y)."""
    look = {"ha": "center", "va": "center", "fontsize": SMALL, "color": INK}
    axes.text(x, y, text, **(look | more))


def arrow(
    axes,
    x,
    y,
    to_x,
    to_y,
    colour=ACCENT,
    line=1.2,
):
    """A straight arrow."""
    look = {"arrowstyle": "->", "color": colour, "linewidth": line}
    axes.annotate("", xy=(to_x, to_y), xytext=(x, y), arrowprops=look)


def plain(axes, title=""):
    """The look of a chart: no frame at top and right; a title, if given, at the left."""
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        titled(axes, title)


def titled(axes, title, size=9.5, **more):
    """A title at the left. size: of its letters, in points."""
    axes.set_title(title, fontsize=size, loc="left", color=INK, **more)


def grouped_order(down: int, across: int, group: int) -> np.ndarray:
    """[down, across]: when each tile's turn comes, in groups of `group` rows of tiles."""
    order = np.empty((down, across), int)
    for first in range(0, down, group):
        rows = order[first : first + group]
        rows[:] = first * across + np.arange(rows.size).reshape(across, -1).T
    return order


def strips_of(order: np.ndarray, running: int) -> tuple[int, int]:
    """(Rows of tiles, columns of tiles) that the first `running` tiles of an order need."""
    return tuple(len(set(places)) for places in np.nonzero(order < running))


def numbered(sheet, left, top, cell, numbers, marked):
    """A matrix of numbers on a Drawing: `marked` stands out, squares below zero are empty."""
    kinds = {
        FAINT: numbers < 0,
        BLOCK_COLOURS[0]: (numbers >= 0) & (numbers != marked),
        BLOCK_COLOURS[4]: numbers == marked,
    }
    for colour, chosen in kinds.items():
        corners = [(left + cell * x, top + cell * y) for y, x in np.argwhere(chosen)]
        sheet.cells(corners, cell - 2, fill=colour)
    for (row, column), number in np.ndenumerate(numbers):
        if number >= 0:
            middle = left + cell * (column + 0.5) - 1, top + cell * (row + 0.5) - 1
            sheet.text(*middle, number, size=0.5 * cell, colour=ON_COLOUR)
