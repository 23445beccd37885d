"""A grid of coloured cells as a few shapes: sharp at any size, in the colours of the page."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

#: (first, behind the last) of cells in a row
Run = tuple[int, int]
#: (left, top, right, bottom)
Rectangle = tuple[int, int, int, int]
#: More pieces than this are drawn as an image: as shapes they would be too many characters
MOST_PIECES = 1000


def draw_cells(axes: "Axes", picture: np.ndarray) -> None:
    """Draw [rows, columns, 3] of red, green and blue in 0..1, cell (row, column) at (column, row).

    As matplotlib's `imshow`, but a shape a colour, since only those follow the page's theme.
    """
    from matplotlib.patches import PathPatch

    rows, columns, _ = picture.shape
    cells = picture.reshape(-1, 3)
    colours, kinds = np.unique(cells, axis=0, return_inverse=True)
    kinds = kinds.reshape(rows, columns)
    pieces = [rectangles(kinds == kind) for kind in range(len(colours))]
    across = -0.5, columns - 0.5
    down = rows - 0.5, -0.5
    if sum(map(len, pieces)) > MOST_PIECES:
        extent = *across, *down
        axes.imshow(picture, aspect="auto", interpolation="nearest", extent=extent)
        return
    for colour, own in zip(colours, pieces, strict=True):
        outline = _outline(own)
        patch = PathPatch(outline, facecolor=colour, linewidth=0)
        axes.add_patch(patch)
    axes.set_xlim(across)
    axes.set_ylim(down)


def draw_lines(axes: "Axes", rows: int, columns: int, width: float = 0.7) -> None:
    """Lines in the page's own colour between cells drawn by `draw_cells`."""
    between_columns = np.arange(0.5, columns - 1)
    between_rows = np.arange(0.5, rows - 1)
    bottom = rows - 0.5
    right = columns - 0.5
    axes.vlines(between_columns, -0.5, bottom, "white", linewidth=width)
    axes.hlines(between_rows, -0.5, right, "white", linewidth=width)


def rectangles(chosen: np.ndarray) -> list[Rectangle]:
    """Rectangles that cover the chosen cells, none of them twice.

    chosen: booleans [rows, columns]. Runs of a row are joined with equal ones of the row above.
    """
    done = []
    growing: dict[Run, int] = {}  # run -> the row where it began
    for row, line in enumerate(chosen):
        runs = _runs(line)
        tops = {run: growing.pop(run, row) for run in runs}
        done += _ended(growing, row)
        growing = tops
    bottom = len(chosen)
    return [*done, *_ended(growing, bottom)]


def _ended(runs: dict[Run, int], row: int) -> list[Rectangle]:
    """The rectangles of runs that end above a row."""
    return [(left, top, right, row) for (left, right), top in runs.items()]


def _runs(line: np.ndarray) -> list[Run]:
    """The runs of chosen cells."""
    none = [False]
    around = np.concatenate((none, line, none))
    steps = np.diff(around.astype(int))
    edges = np.flatnonzero(steps)
    pairs = edges.reshape(-1, 2)
    return [(first, behind) for first, behind in pairs.tolist()]


def _outline(pieces: list[Rectangle]) -> "Path":
    """All rectangles as one path, half a cell to the left of and above their numbers."""
    from matplotlib.path import Path

    corners = []
    for left, top, right, bottom in pieces:
        corners += [
            (left, top),
            (right, top),
            (right, bottom),
            (left, bottom),
            (left, top),
        ]
    around = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY]
    steps = around * len(pieces)
    places = np.array(corners) - 0.5
    return Path(places, steps)
