"""A map of where a result is right, wrong, NaN or never written."""

from typing import TYPE_CHECKING, Any

import numpy as np

from utils.check.comparison import NAN, OK, UNWRITTEN, WRONG
from utils.plots.picture import chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLANK = 4  # no element here
NAMES = {OK: "right", WRONG: "wrong", NAN: "NaN", UNWRITTEN: "never written"}
COLOURS = {
    OK: "#8fbcdb",
    WRONG: "#d95f02",
    NAN: "#9467bd",
    UNWRITTEN: "#404040",
    BLANK: "#ffffff",
}
WARP = 32
#: More cells than this are not drawn: one then shows the worst of the elements that it stands for.
MOST_ROWS, MOST_COLUMNS = 96, 192
#: Inches: of what stands among a report's words a slide shows no more with letters for a room
TALLEST = 2.6
LETTERS = 9  # points
#: Up to so many cells a side get edges.
EDGES = 64


def error_map(codes: np.ndarray, title: str = "") -> Any:
    """A figure of the codes of `utils.check.comparison`, an element a cell.

    codes: of the result's shape. Of one dimension they are drawn in rows of 32, a warp each, or as
    a strip where they are many; of more than two, rows below one another.
    """
    cells = _in_rows(codes)
    rows, columns = cells.shape
    small = _shrunk(cells)
    in_words = ", ".join(f"{(codes == code).sum():,} {name}" for code, name in NAMES.items())
    height = 1.1
    if rows > 1:
        height = min(1 + 5 * small.shape[0] / small.shape[1], TALLEST)
    fig, axes = chart(6, height, alt=f"Map of the {title or 'result'}: {in_words}")
    _draw(axes, small, (rows, columns))
    _name_edges(axes, rows, columns)
    if title:
        axes.set_title(title, fontsize=LETTERS, loc="left")
    _legend(fig, codes)
    return fig


def _in_rows(codes: np.ndarray) -> np.ndarray:
    """Two dimensions for any number of them."""
    if codes.ndim == 2:
        return codes
    if codes.ndim > 2:
        return codes.reshape(-1, codes.shape[-1])
    flat = codes.reshape(-1)
    if flat.size <= WARP or flat.size > WARP * MOST_ROWS:
        return flat.reshape(1, -1)
    padded = np.pad(
        flat,
        (0, -flat.size % WARP),
        constant_values=BLANK,
    )
    return padded.reshape(-1, WARP)


def _shrunk(cells: np.ndarray) -> np.ndarray:
    for axis, most in enumerate((MOST_ROWS, MOST_COLUMNS)):
        size = cells.shape[axis]
        cuts = np.linspace(0, size, min(most, size) + 1)
        starts = cuts.astype(int)[:-1]
        cells = np.maximum.reduceat(cells, np.unique(starts), axis=axis)
    return cells


def _draw(axes: "Axes", cells: np.ndarray, shape: tuple[int, int]) -> None:
    from matplotlib.colors import ListedColormap

    rows, columns = shape
    whole = cells.shape == shape
    edges = whole and max(shape) <= EDGES
    axes.pcolormesh(
        np.linspace(0, columns, cells.shape[1] + 1),
        np.linspace(0, rows, cells.shape[0] + 1),
        cells,
        cmap=ListedColormap(list(COLOURS.values())),
        vmin=OK,
        vmax=BLANK,
        edgecolors="#888888" if edges else "none",
        linewidth=0.5 if edges else 0,
        rasterized=True,  # a shape a cell would be too many
    )
    axes.invert_yaxis()
    axes.set_aspect("equal" if whole and rows > 1 else "auto", anchor="W")
    axes.spines[:].set_visible(False)


def _name_edges(axes: "Axes", rows: int, columns: int) -> None:
    """The first and the last index of each axis."""
    axes.tick_params(labelsize=LETTERS, length=0)
    for set_ticks, size in ((axes.set_xticks, columns), (axes.set_yticks, rows)):
        last = [(size - 0.5, f"{size - 1:,}")] if size > 1 else []
        places, names = zip((0.5, "0"), *last, strict=True)
        set_ticks(places, names)
    if rows == 1:
        axes.set_yticks([])


def _legend(fig: "Figure", codes: np.ndarray) -> None:
    from matplotlib.patches import Patch

    present = [code for code in NAMES if (codes == code).any()]
    patches = [
        Patch(facecolor=COLOURS[code], edgecolor="#888888", label=NAMES[code]) for code in present
    ]
    fig.legend(
        handles=patches,
        loc="outside lower left",
        ncols=4,
        fontsize=LETTERS,
        frameon=False,
    )
