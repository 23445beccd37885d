"""Pictures for the chapters, all drawn from what they show (matplotlib figures; the caller displays them).

Every function returns a ``matplotlib.figure.Figure`` made without pyplot, so that nothing is shown twice and no
figure stays in memory.
"""

from collections.abc import Mapping, Sequence

import numpy as np

# Okabe and Ito's palette, which people with colour-blindness can tell apart; light enough for black numbers on it.
BLOCK_COLOURS = ("#56B4E9", "#F0C36D", "#7FCBA4", "#E7A3C4", "#F29E6B", "#F4EB7A", "#A9BCD6", "#C9C9C9")
IDLE, INK, ACCENT = "#EEEEEE", "#222222", "#0072B2"

#: More cells than this are drawn without numbers, since nobody could read them.
MAX_NUMBERED = 400


def figure(width: float = 7.0, height: float = 3.0):
    """A figure in inches, in the course's style."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def images(pictures: Sequence[np.ndarray], titles: Sequence[str] = (), *, width: float = 8.0, columns: int | None = None):
    """Pictures side by side: [h, w] grey (0..255, or 0..1 floats) or [h, w, 3] colour."""
    columns = columns or len(pictures)
    rows = -(-len(pictures) // columns)
    aspect = max(p.shape[0] / p.shape[1] for p in pictures)
    fig = figure(width, rows * (width / columns * aspect + (0.35 if titles else 0.05)))
    for index, picture in enumerate(pictures):
        axes = fig.add_subplot(rows, columns, index + 1)
        top = 1 if np.issubdtype(picture.dtype, np.floating) and picture.max(initial=0) <= 1 else 255
        axes.imshow(picture, cmap="gray" if picture.ndim == 2 else None, vmin=0, vmax=top, interpolation="nearest")
        axes.set_axis_off()
        if index < len(titles):
            axes.set_title(titles[index], fontsize=10, color=INK)
    return fig


def _axis(size) -> tuple[int, int]:
    """An int or (x,) or (x, y) launch size as (x, y)."""
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    return (*sizes, 1)[:2] if len(sizes) < 3 else sizes[:2]


def index_map(grid, block, shape=None, *, title: str | None = None):
    """Which thread of which block takes which element, for a 1-D or 2-D launch.

    grid, block: as in ``kernel[grid, block]``: an int or (x,) or (x, y).
    shape: of the data, (n,) or (rows, columns); threads that lie outside it are drawn empty and hatched: these are the
    ones that a guard must stop. Data that no thread reaches is drawn with a red edge.

    Colour: the block. Number: the thread's global index, ``cuda.grid(1)`` or x, y of ``cuda.grid(2)``.
    """
    (grid_x, grid_y), (block_x, block_y) = _axis(grid), _axis(block)
    threads_x, threads_y = grid_x * block_x, grid_y * block_y
    one_d = threads_y == 1 and (shape is None or len(shape) == 1)
    if one_d:
        return _index_map_1d(grid_x, block_x, shape[0] if shape else threads_x, title)
    rows, columns = shape if shape else (threads_y, threads_x)
    across, down = max(threads_x, columns), max(threads_y, rows)
    scale = min(0.42, 8.5 / across, 6.0 / down)
    fig = figure(across * scale + 0.6, down * scale + 0.8)
    axes = fig.add_subplot()
    numbered = across * down <= MAX_NUMBERED and scale > 0.3
    for y in range(down):
        for x in range(across):
            launched = x < threads_x and y < threads_y
            inside = x < columns and y < rows
            _cell(axes, x, y, (x // block_x) + (y // block_y) * grid_x, launched, inside, f"{x},{y}" if numbered else "")
    _block_edges(axes, grid_x, grid_y, block_x, block_y)
    axes.set(xlim=(-0.1, across + 0.1), ylim=(down + 0.1, -0.1), aspect="equal")
    axes.set_xlabel("x (columns) →", fontsize=9)
    axes.set_ylabel("← y (rows)", fontsize=9)
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)
    _caption(axes, title, grid_x * grid_y, block_x * block_y, threads_x * threads_y, rows * columns,
             max(0, rows * columns - min(rows, threads_y) * min(columns, threads_x)))
    return fig


def _index_map_1d(grid, block, size, title):
    """One row of cells, broken into lines of whole blocks so that it stays readable."""
    threads = grid * block
    total = max(threads, size)
    per_line = max(block, min(32, total) // block * block) if block <= 32 else 32
    lines = -(-total // per_line)
    scale = min(0.42, 8.5 / min(per_line, total))
    fig = figure(min(per_line, total) * scale + 0.4, lines * scale * 1.25 + 0.7)
    axes = fig.add_subplot()
    numbered = total <= MAX_NUMBERED and scale > 0.22
    for i in range(total):
        _cell(axes, i % per_line, i // per_line * 1.25, i // block, i < threads, i < size, str(i) if numbered else "")
    axes.set(xlim=(-0.1, min(per_line, total) + 0.1), ylim=((lines - 1) * 1.25 + 1.1, -0.1), aspect="equal")
    axes.set_axis_off()
    _caption(axes, title, grid, block, threads, size, max(0, size - threads))
    return fig


def _cell(axes, x, y, block, launched, inside, text):
    from matplotlib.patches import Rectangle

    if launched and inside:
        style = {"facecolor": BLOCK_COLOURS[block % len(BLOCK_COLOURS)], "edgecolor": "white", "linewidth": 1}
    elif launched:
        style = {"facecolor": "white", "edgecolor": BLOCK_COLOURS[block % len(BLOCK_COLOURS)], "hatch": "////", "linewidth": 1}
    elif inside:
        style = {"facecolor": IDLE, "edgecolor": "#D55E00", "linewidth": 1.4}
    else:
        return
    axes.add_patch(Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, **style))
    if text:
        axes.text(x + 0.5, y + 0.52, text, ha="center", va="center", color=INK if inside else "#888888",
                  fontsize=8 if len(text) < 4 else 6.5)


def _block_edges(axes, grid_x, grid_y, block_x, block_y):
    from matplotlib.patches import Rectangle

    for by in range(grid_y):
        for bx in range(grid_x):
            axes.add_patch(Rectangle((bx * block_x, by * block_y), block_x, block_y, fill=False, edgecolor=INK, linewidth=1.2))


def _caption(axes, title, blocks, block, threads, size, missed):
    idle = max(0, threads - (size - missed))
    text = f"{blocks:,} block{'s' * (blocks != 1)} × {block:,} threads = {threads:,} threads for {size:,} elements"
    if idle:
        text += f" · {idle:,} idle (hatched)"
    if missed:
        text += f" · {missed:,} NOT REACHED (red)"
    axes.set_title((title + "\n" if title else "") + text, fontsize=9.5, color="#B03A00" if missed else INK, loc="left")


def timing_bars(timings: Mapping[str, object]):
    """A bar for the median of each timing (objects with .median and .spread in ms), whiskers for the spread."""
    known = {label: t for label, t in timings.items() if t.samples}
    fig = figure(7, 0.6 + 0.42 * len(known))
    axes = fig.add_subplot()
    labels = list(known)
    axes.barh(labels, [known[k].median for k in labels], xerr=[known[k].spread or 0 for k in labels], color=ACCENT, height=0.6,
              error_kw={"ecolor": INK, "capsize": 3})
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds (median, less is better)")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
