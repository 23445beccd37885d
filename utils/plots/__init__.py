"""Pictures for the chapters, all drawn from what they show.

Every function returns a matplotlib ``Figure`` made without pyplot, so that nothing is shown twice
and no figure stays in memory; as the last value of a cell it is displayed as SVG in the colours of
the page, with a description for those who cannot see it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .picture import IDLE, INK, chart, figure

if TYPE_CHECKING:
    from ipywidgets import Widget
    from matplotlib.axes import Axes

    from .picture import Picture

__all__ = [
    "ACCENT",
    "ALARM",
    "BLOCK_COLOURS",
    "FAR_APART",
    "IDLE",
    "INK",
    "OTHERS",
    "bundle_of",
    "chart",
    "figure",
    "images",
    "index_map",
    "roofline",
    "timing_bars",
    "widget_view",
]

#: (name -> bytes per second, name -> FLOP per second, whose they are)
Roofs = tuple[Mapping[str, float], Mapping[str, float], str]
#: (FLOP per byte, FLOP per second where it is known)
Point = tuple[float, float | None]


class Timed(Protocol):
    """What a bar is drawn of (`utils.timing.Timing`)."""

    @property
    def time(self) -> tuple[float, float] | None: ...

    @property
    def where(self) -> str: ...

    @property
    def copy_time(self) -> float | None: ...


class WithWidget(Protocol):
    """What ipywidgets can show."""

    def widget(self) -> "Widget": ...


# Okabe and Ito's palette, which people with colour-blindness can tell apart; light enough for black
# numbers on it.
BLOCK_COLOURS = (
    "#56B4E9",
    "#F0C36D",
    "#7FCBA4",
    "#E7A3C4",
    "#F29E6B",
    "#F4EB7A",
    "#A9BCD6",
    "#C9C9C9",
)
ACCENT = "#0072B2"
ALARM = "#B03A00"
OTHERS = "#A9BCD6"  # bars beside the one that matters

#: More cells than this are drawn without numbers, since nobody could read them; more than MAX_CELLS
#: are refused.
MAX_NUMBERED, MAX_CELLS = 400, 4096
WARP = 32
LETTERS = 9.5  # points: 18 pixels or more on a slide
LETTERS_A_CELL = 95  # points of a single letter that fills a cell of an inch
LINE_PITCH = 1.2  # from line to line of a 1-D map, in cells


def images(
    pictures: Sequence[np.ndarray],
    titles: Sequence[str] = (),
    *,
    alt: str,
    width: float = 8.0,
    columns: int | None = None,
) -> "Picture":
    """Pictures side by side: [h, w] grey (0..255, or 0..1 floats) or [h, w, 3] colour.

    alt: what they show.
    """
    columns = columns or len(pictures)
    rows = [pictures[start : start + columns] for start in range(0, len(pictures), columns)]
    above = 0.35 if titles else 0.08
    tallest = [max(p.shape[0] / p.shape[1] for p in row) for row in rows]
    heights = [ratio * width / columns + above for ratio in tallest]
    fig = figure(width, sum(heights), alt=alt)
    grid = fig.add_gridspec(len(rows), columns, height_ratios=heights)
    for index, picture in enumerate(pictures):
        axes = fig.add_subplot(grid[index // columns, index % columns])
        is_fraction = np.issubdtype(picture.dtype, np.floating) and picture.max(initial=0) <= 1
        white = 1 if is_fraction else 255
        colours = "gray" if picture.ndim == 2 else None
        axes.imshow(
            picture,
            cmap=colours,
            vmin=0,
            vmax=white,
            interpolation="nearest",
        )
        axes.set_axis_off()
        if index < len(titles):
            axes.set_title(titles[index], fontsize=10, color=INK)
    return fig


def index_map(
    grid: int | Sequence[int],
    block: int | Sequence[int],
    shape: Sequence[int] | None = None,
    *,
    owner: np.ndarray | None = None,
    title: str | None = None,
) -> "Picture":
    """Which thread of which block takes which element, for a 1-D or 2-D launch.

    grid, block: as in ``kernel[grid, block]``: an int or (x,) or (x, y).
    shape: of the data, (n,) or (rows, columns); threads that lie outside it are drawn hollow: these
        are the ones that a guard must stop.
    owner: for each element the number of the block that wrote it, -1 for none, as a kernel recorded
        it. Without it the map is worked out from grid and block. Elements that nobody took are
        drawn with a red edge.

    Colour: the block. Number: the thread's global index, ``cuda.grid(1)``, or x, y of
        ``cuda.grid(2)``.
    Raises ValueError for more cells than anybody could look at.
    """
    (grid_x, grid_y), (block_x, block_y) = _axis(grid), _axis(block)
    threads_x = grid_x * block_x
    threads_y = grid_y * block_y
    one_d = threads_y == 1 and (shape is None or len(shape) == 1)
    shape = shape or ((threads_x,) if one_d else (threads_y, threads_x))
    rows, columns = (1, shape[0]) if one_d else shape
    across = max(threads_x, columns)
    down = max(threads_y, rows)
    if across * down > MAX_CELLS:
        raise ValueError(f"{across * down:,} cells are too many to draw; {MAX_CELLS:,} is the most")
    y, x = np.mgrid[0:down, 0:across]
    launched = (x < threads_x) & (y < threads_y)
    inside = (x < columns) & (y < rows)
    taken = np.where(launched, x // block_x + y // block_y * grid_x, -1)
    if owner is not None:
        taken[:rows, :columns] = np.asarray(owner).reshape(rows, columns)
    alt = _caption(
        blocks=grid_x * grid_y,
        block=block_x * block_y,
        threads=int(launched.sum()),
        elements=rows * columns,
        idle=int((launched & ~inside).sum()),
        missed=int(((taken < 0) & inside).sum()),
    )
    line = _line_length(block_x) if one_d else across
    width = min(line, across)
    height = (across + line - 1) // line if one_d else down
    pitch = LINE_PITCH if one_d else 1
    scale = min(0.42, 8.8 / width, 5.0 / height)
    numbered = across * down <= MAX_NUMBERED and scale > (0.22 if one_d else 0.3)
    margin = 0.6 if one_d else 0.8
    fig, axes = chart(max(width * scale + 0.5, 6.2), height * scale * pitch + margin, alt=alt)
    for j, i in np.argwhere(inside | launched).tolist():
        left, top = (i % line, i // line * pitch) if one_d else (i, j)
        number = ""
        if numbered:
            number = f"{i}" if one_d else f"{i},{j}"
        _cell(axes, left, top, taken[j, i], bool(inside[j, i]), number, scale)
    if not one_d:
        _outline_blocks(axes, grid_x, grid_y, block_x, block_y)
        axes.set_xlabel("x (columns) →", fontsize=LETTERS)
        axes.set_ylabel("← y (rows)", fontsize=LETTERS)
    axes.set(xlim=(-0.1, width + 0.1), ylim=(height * pitch + 0.1, -0.1), aspect="equal")
    axes.set(xticks=[], yticks=[], anchor="W")
    axes.spines[:].set_visible(False)
    text = f"{title}\n{alt}" if title else alt
    colour = ALARM if "NOT" in alt else INK
    axes.set_title(text, fontsize=9.5, color=colour, loc="left")
    return fig


def _line_length(block: int) -> int:
    """Threads a line of a 1-D map: whole blocks, as text is broken into words."""
    return WARP // block * block if block <= WARP else WARP


def _axis(size: int | Sequence[int]) -> tuple[int, int]:
    """A launch size, an int or (x,) or (x, y), as (x, y)."""
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    if len(sizes) > 2:
        raise ValueError(f"a map shows 1-D and 2-D launches, not {sizes}")
    x, y = (*sizes, 1)[:2]
    return x, y


def _cell(
    axes: "Axes", x: float, y: float, block: int, inside: bool, text: str, inches: float
) -> None:
    from matplotlib.patches import Rectangle

    colour = BLOCK_COLOURS[block % len(BLOCK_COLOURS)]
    style: dict[str, Any]
    if not inside:
        style = {
            "facecolor": "white",
            "edgecolor": colour,
            "hatch": "" if text else "////",
            "linewidth": 1,
        }
    elif block >= 0:
        style = {"facecolor": colour, "edgecolor": "white", "linewidth": 1}
    else:
        style = {"facecolor": IDLE, "edgecolor": "#D55E00", "linewidth": 1.4}
    axes.add_patch(Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, **style))
    if text:
        size = min(LETTERS, LETTERS_A_CELL * inches / len(text))
        ink = INK if inside else "#666666"
        axes.text(
            x + 0.5,
            y + 0.52,
            text,
            ha="center",
            va="center",
            color=ink,
            fontsize=size,
        )


def _outline_blocks(axes: "Axes", grid_x: int, grid_y: int, block_x: int, block_y: int) -> None:
    from matplotlib.patches import Rectangle

    for by in range(grid_y):
        for bx in range(grid_x):
            corner = bx * block_x, by * block_y
            block = Rectangle(corner, block_x, block_y, fill=False, edgecolor=INK, linewidth=1.2)
            axes.add_patch(block)


def _caption(blocks: int, block: int, threads: int, elements: int, idle: int, missed: int) -> str:
    plural = "" if blocks == 1 else "s"
    text = f"{blocks:,} block{plural} × {block:,} threads = {threads:,} threads"
    text += f" for {elements:,} elements"
    if idle:
        text += f" · {idle:,} idle (hollow)"
    if missed:
        text += f" · {missed:,} NOT REACHED (red)"
    return text


#: From this ratio on the shortest bar would not be seen beside the longest: a logarithmic axis.
FAR_APART = 50


def timing_bars(
    timings: Mapping[str, Timed], in_words: Callable[[float], str] = lambda ms: f"{ms:.3g} ms"
) -> "Picture":
    """A bar for the median of each timing (`utils.timing.Timing`), with whiskers.

    The quickest is highlighted; a mark on a bar says how long a copy of as many bytes takes.
    in_words: milliseconds -> text, the same as beside the chart. Without a GPU the bars are of
    recorded times, and the axis says whose.
    """
    measured = {label: t for label, t in timings.items() if t.time}
    times = [t.time for t in measured.values() if t.time]
    medians = [median for median, _ in times]
    spreads = [spread for _, spread in times]
    whose = "; ".join(dict.fromkeys(t.where for t in measured.values() if t.where))
    note = f", recorded on {whose}" if whose else ""
    numbers = [in_words(median) for median in medians]
    pairs = ", ".join(f"{label} {n}" for label, n in zip(measured, numbers, strict=True))
    fig, axes = chart(7, 0.6 + 0.42 * len(measured), alt=f"Median times{note}: {pairs}")
    best = min(medians)
    colours = [ACCENT if median == best else OTHERS for median in medians]
    whiskers = {"ecolor": INK, "capsize": 3}
    bars = axes.barh(
        list(measured), medians, xerr=spreads, color=colours, height=0.6, error_kw=whiskers
    )
    axes.bar_label(bars, numbers, padding=5, color=INK)  # a short bar may not be seen
    axes.margins(x=0.14)
    if max(medians) > FAR_APART * best:
        note = f", logarithmic{note}"
        axes.set_xscale("log")
        axes.set_xlim(best / 2, max(medians) * 6)
    _mark_roofs(axes, measured)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.minorticks_off()
    axes.set_xlabel(f"time (median{note}; less is better)")
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    return fig


def _mark_roofs(axes: "Axes", measured: Mapping[str, Timed]) -> None:
    """On each bar of known bytes a mark where a copy of as many bytes would end."""
    roofs = {row: t.copy_time for row, t in enumerate(measured.values()) if t.copy_time}
    if not roofs:
        return
    axes.plot(
        list(roofs.values()),
        list(roofs),
        "|",
        color=ALARM,
        markersize=18,
        markeredgewidth=2,
        label="a copy of as many bytes",
    )
    # above the bars: the words under them may be long
    axes.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1))


def roofline(roofs: Roofs, kernels: Mapping[str, Point], title: str = "") -> "Picture":
    """FLOP/s against arithmetic intensity, with the roofs and a point for each kernel.

    roofs: what `utils.hardware.roofs` returns: {name: bytes/s}, {name: FLOP/s}, and whose they are.
    kernels: name -> (FLOP per byte, FLOP per second or None). A kernel without a rate stands as a
        hollow point on the lowest roof over it: the most it could reach, which nobody measured.
    """
    bandwidths, peaks, whose = roofs
    slope = max(bandwidths.values())
    top = max(peaks.values())
    intensities = [intensity for intensity, _ in kernels.values()]
    low = min([*intensities, 0.1]) / 2
    high = max([*intensities, top / slope]) * 20  # room for the names of roofs and points
    fig, axes = chart(8.5, 3.6, alt=_roofline_in_words(roofs, kernels))
    _draw_roofs(axes, roofs, low, high)
    lowest = min(peaks.values())
    points = {}
    for name, (intensity, rate) in kernels.items():
        height = rate or min(intensity * slope, lowest)
        points[name] = intensity, height / 1e12
        axes.plot(*points[name], "o", color=ALARM, fillstyle="full" if rate else "none")
    axes.set(xscale="log", yscale="log", xlim=(low, high))
    _name_points(axes, points, fig.get_figwidth())
    axes.set(xlabel="arithmetic intensity, FLOP a byte", ylabel="TFLOP/s")
    measured = any(rate for _, rate in kernels.values())
    words = title or whose
    if not measured:
        words += "; hollow: the most a kernel could reach"
    axes.set_title(words, fontsize=LETTERS, loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    return fig


def _roofline_in_words(roofs: Roofs, kernels: Mapping[str, Point]) -> str:
    bandwidths, peaks, whose = roofs
    flat = ", ".join(f"{peak / 1e12:.3g}" for peak in peaks.values())
    points = []
    for name, (intensity, rate) in kernels.items():
        reached = f" at {rate / 1e12:.3g} TFLOP/s" if rate else ""
        points.append(f"{name}, {intensity:.3g} FLOP a byte{reached}")
    slope = max(bandwidths.values()) / 1e12
    head = f"Roofline, {whose}: a slope of {slope:.3g} TB/s, flat roofs at {flat} TFLOP/s. "
    return head + "; ".join(points)


def _draw_roofs(axes: "Axes", roofs: Roofs, low: float, high: float) -> None:
    """The slope of the memory and a flat line for each peak, with their names beside them."""
    bandwidths, peaks, _ = roofs
    slope = max(bandwidths.values())
    top = max(peaks.values())
    by_height = sorted(peaks.items(), key=lambda item: item[1])
    for (name, peak), style in zip(by_height, ("-", "--", ":"), strict=False):
        height = peak / 1e12
        axes.plot([peak / slope, high], [height, height], style, color=INK, linewidth=1.5)
        text = f"{name}, {height:,.0f} TFLOP/s"
        axes.text(
            high,
            height * 1.2,
            text,
            ha="right",
            fontsize=LETTERS,
            color=INK,
        )
    axes.plot([low, top / slope], [low * slope / 1e12, top / 1e12], color=ACCENT, linewidth=1.5)
    middle = (low * min(peaks.values()) / slope) ** 0.5
    text = f"{next(iter(bandwidths))}, {slope / 1e12:.2f} TB/s"
    axes.text(
        middle / 1.25,
        middle * slope / 8e11,
        text,
        ha="right",
        fontsize=LETTERS,
        color=ACCENT,
    )


LETTER = 5.4  # points: about the width of a letter of NAMES
DOT = 5  # points: half the width of a kernel's point, and a little room
NAMES: dict[str, Any] = {"textcoords": "offset points", "fontsize": LETTERS, "color": ALARM}


def _name_points(axes: "Axes", points: Mapping[str, tuple[float, float]], inches: float) -> None:
    """Write each point's name beside it: on its left where it is too long, none over another or
    over a point. inches: the figure's width.
    """
    low, high = axes.get_xlim()
    decade = inches * 72 * 0.87 / np.log10(high / low)  # points, about
    places = [(np.log10(x) * decade, y) for x, y in points.values()]
    taken = [(place - DOT, place + DOT, y, 0) for place, y in places]

    def is_over_another(left: float, right: float, y: float, shift: float) -> bool:
        for left2, right2, y2, shift2 in taken:
            apart = abs(np.log10(y / y2) * 60 + shift - shift2)
            if left < right2 and left2 < right and apart < 12:
                return True
        return False

    for name, (x, y) in sorted(points.items(), key=lambda item: -item[1][1]):
        is_too_long = np.log10(high / x) * decade < 8 + LETTER * len(name)
        side, away = ("right", -8) if is_too_long else ("left", 8)
        begin = np.log10(x) * decade + away
        end = begin + np.copysign(LETTER * len(name), away)
        shift = -10
        while is_over_another(min(begin, end), max(begin, end), y, shift):
            shift -= 4
        taken.append((min(begin, end), max(begin, end), y, shift))
        axes.annotate(name, (x, y), xytext=(away, shift), ha=side, **NAMES)


def bundle_of(thing: WithWidget) -> dict:
    """The mime bundle of what has a text and, where ipywidgets is there, a `widget()`."""
    bundle: dict[str, Any] = {"text/plain": repr(thing)}
    try:
        bundle |= widget_view(thing.widget())
    except ImportError:
        pass
    return bundle


def widget_view(widget: "Widget") -> dict[str, dict]:
    """The entry of a mime bundle that shows the widget.

    ipywidgets 7, which Colab has, makes no such bundle itself.
    """
    return {
        "application/vnd.jupyter.widget-view+json": {
            "version_major": 2,
            "version_minor": 0,
            "model_id": widget.model_id,
        }
    }
