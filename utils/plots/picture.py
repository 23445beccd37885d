"""matplotlib's figures in the colours of the page: SVG whose ink and ground follow the theme.

A chart is drawn once, in dark ink on white. For a notebook its SVG is repainted: ink becomes the
colour of the page's text, white the page's ground, and dark lines grow lighter on a dark page. Text
that lies on a light colour stays dark.
"""

import base64
import functools
import html
import io
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from . import svg
from .compact import compact

if TYPE_CHECKING:
    from IPython.core.formatters import DisplayFormatter
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import Formatter

    class Picture(Figure):
        """What `_figure_class` makes, for those who read types: a figure with a description."""

        alt: str


#: Colours of charts that stand for ink and for a faint shade of it
INK = "#222222"
IDLE = "#EEEEEE"
PIXELS_AN_INCH = 96
#: Characters of SVG; a notebook with more than that in one picture opens slowly
LARGEST = 50_000
#: Powers that a logarithmic axis must span to do without ticks between them
FEW_POWERS = 1.5
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
#: Above this luminance a colour carries dark letters, below it a line needs more contrast
LIGHT, DARK = 0.3, 0.25

TAG = re.compile(r"<(\w+)[^>]*>")
PAINT = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")
DIGITS = re.compile(r"(\d\.\d\d)\d+")  # of coordinates, not of what a picture says
#: What a page has no use for in matplotlib's SVG, and what stands there instead
TIDY = (
    (re.compile(r"<style.*?</style>", re.DOTALL), ""),
    (re.compile(r"<defs>\s*</defs>"), ""),
    (re.compile(r"font-family: [^;\"]*sans-serif;? ?"), ""),
    (re.compile(r"font-family: [^;\"]*monospace"), "font-family: 'DejaVu Sans Mono', monospace"),
    (re.compile(r' id="(?:\w+|matplotlib\.axis)_\d+"'), ""),
    (re.compile(r' transform="rotate\(-0 [^"]*\)"'), ""),
    (re.compile(r"\s*\n\s*"), " "),
)
ROOT_STYLE = f'font-family="{svg.FONT}" fill="currentColor" stroke-linejoin="round" '
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


@functools.cache
def _figure_class() -> Any:
    # a third of a second: only once a picture is drawn
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    class Picture(Figure):
        """A figure that notebooks show as SVG, with a description (`alt`)."""

        alt = ""

        def _repr_mimebundle_(
            self, include: object = None, exclude: object = None
        ) -> dict[str, str]:
            drawn = page(self)  # type: ignore[arg-type]  # this is what `Picture` stands for above
            return {"text/html": drawn, "text/plain": self.alt}

        def savefig(self, *where: Any, **how: Any) -> None:
            """As matplotlib's, on white, unless another ground is asked for."""
            super().savefig(*where, **{"facecolor": "white", **how})

        def draw(self, renderer: "RendererBase") -> None:
            """As matplotlib's, which saves in two: a draw for the layout, which nobody sees, then
            one without. Here the first does the layout alone.
            """
            engine = self.get_layout_engine()
            saved = self.canvas.is_saving()
            if saved and self.axes and isinstance(engine, ConstrainedLayoutEngine):
                engine.execute(self)
            else:
                super().draw(renderer)

    ipython = sys.modules.get("IPython")  # a notebook has imported it
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        show_no_png(Picture, shell.display_formatter)
    return Picture


def show_no_png(kind: type, display_formatter: "DisplayFormatter") -> None:
    """Keep matplotlib's inline backend from adding a PNG of its own beside the picture's SVG."""
    display_formatter.formatters["image/png"].for_type(kind, lambda figure: None)


def figure(width: float = 7.0, height: float = 3.0, *, alt: str) -> "Picture":
    """An empty figure in inches, in the course's style. alt: what it shows, in a sentence."""
    fig: Picture = _figure_class()(figsize=(width, height), layout="constrained")
    fig.alt = alt
    return fig


def chart(width: float = 7.0, height: float = 3.0, *, alt: str) -> tuple["Picture", "Axes"]:
    """A figure with one pair of axes, and these."""
    fig = figure(width, height, alt=alt)
    return fig, fig.add_subplot()


def page(fig: "Picture") -> str:
    """The figure as HTML: SVG, or a plain image where that would have too many shapes."""
    drawn = themed(fig)
    if len(drawn) <= LARGEST:
        return svg.as_html(drawn, fig.alt, fig.get_figwidth() * PIXELS_AN_INCH)
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=100)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(fig.alt)}" src="data:image/png;base64,{data}">'


def themed(fig: "Picture") -> str:
    """The figure as one <svg> element in the colours of the page."""
    import matplotlib

    for axes in fig.axes:
        _keep_dark_on_fills(axes)
        _draw_powers_plainly(axes)
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": fig.alt}):
        fig.savefig(
            buffer,
            format="svg",
            facecolor="none",
            dpi=150,
            metadata=NO_METADATA,
        )
    text = buffer.getvalue()
    text = text[text.index("<svg ") :]
    for pattern, instead in TIDY:
        text = pattern.sub(instead, text)
    text = TAG.sub(_repainted, text)
    return compact(text.replace("<svg ", f"<svg {ROOT_STYLE}", 1))


def _draw_powers_plainly(axes: "Axes") -> None:
    """Logarithmic axes with ticks at powers alone, named in plain letters: 10\u00b3, not a formula.

    Else formulas and hundreds of small ticks take three quarters of the time to draw. An axis of
    hardly more than one power keeps its small ticks, since these have the names.
    """
    from matplotlib.scale import LogTransform
    from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, NullLocator

    for axis in (axes.xaxis, axes.yaxis):
        transform = axis.get_transform()
        if not isinstance(transform, LogTransform):
            continue
        base = transform.base
        low, high = sorted(axis.get_view_interval())
        if np.log(high / low) < FEW_POWERS * np.log(base):
            axis.set_minor_formatter(_as_numbers(axis.get_minor_formatter()))
            axis.set_major_formatter(_as_numbers(axis.get_major_formatter()))
            continue
        axis.set_minor_locator(NullLocator())
        if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
            axis.set_major_formatter(FuncFormatter(functools.partial(_power, base)))


def _as_numbers(formatter: "Formatter") -> "Formatter":
    """A formatter that names the ticks that this one names, as numbers: 0.6, not 6 × 10⁻¹.

    Names that a chart gives itself stay.
    """
    from matplotlib.ticker import Formatter, LogFormatterMathtext

    if not isinstance(formatter, LogFormatterMathtext):
        return formatter

    class Numbers(Formatter):
        def set_axis(self, axis: Any) -> None:
            formatter.set_axis(axis)

        def set_locs(self, locs: list[float]) -> None:
            formatter.set_locs(locs)

        def __call__(self, value: float, position: int | None = None) -> str:
            return f"{value:.10g}" if formatter(value, position) else ""

    return Numbers()


def _power(base: float, value: float, _: int | None = None) -> str:
    """A tick's name: a power of the base, or the number where it is none."""
    exponent = np.log(value) / np.log(base)
    if abs(exponent - round(exponent)) > 1e-6:
        return f"{value:g}"
    return f"{base:g}{str(round(exponent)).translate(RAISED)}"


def _repainted(tag: re.Match[str]) -> str:
    """A tag with the page's colours in place of matplotlib's, and coordinates of two decimals."""
    colour_of = _letter_colour if tag[1] == "text" else _shape_colour
    short = DIGITS.sub(r"\1", tag[0])
    return PAINT.sub(lambda paint: f"{paint[1]}: {colour_of(*paint.groups())}", short)


def _letter_colour(_: str, colour: str) -> str:
    """What the colour of letters becomes; light ones stand on dark areas, and stay."""
    if colour == INK:
        return svg.INK
    is_strong = colour != svg.ON_COLOUR and luminance(colour) < DARK
    return svg.strong(colour) if is_strong else colour


def _shape_colour(what: str, colour: str) -> str:
    """What the colour of an area (`what` is fill) or of a line (stroke) becomes."""
    if colour in ("#000000", INK):
        return svg.INK
    if colour == "#ffffff":
        return svg.PAPER
    if colour == IDLE.lower():
        return svg.FAINT
    if what == "stroke" and luminance(colour) < DARK:
        return svg.strong(colour)
    return colour


def luminance(colour: str | tuple) -> float:
    """The relative luminance of a colour: 0 for black, 1 for white.

    colour: anything that matplotlib takes for one.
    Source: WCAG 2.2, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
    """
    from matplotlib.colors import to_rgb

    channels = np.array(to_rgb(colour))
    linear = np.where(
        channels <= 0.04045,
        channels / 12.92,
        ((channels + 0.055) / 1.055) ** 2.4,
    )
    return float(linear @ (0.2126, 0.7152, 0.0722))


def _keep_dark_on_fills(axes: "Axes") -> None:
    """Letters in ink that lie on a light area or an image keep their dark colour."""
    from matplotlib.colors import same_color

    texts = [text for text in axes.texts if same_color(text.get_color(), INK)]
    texts += [text for text in axes.texts if same_color(text.get_color(), "black")]
    areas: list[Artist] = [patch for patch in axes.patches if _is_light_area(patch)]
    areas += axes.images
    if not texts or not areas:
        return
    boxes = np.array([area.get_window_extent().extents for area in areas])
    for text in texts:
        x, y = text.get_window_extent().get_points().mean(0)
        across = (boxes[:, 0] <= x) & (x <= boxes[:, 2])
        down = (boxes[:, 1] <= y) & (y <= boxes[:, 3])
        if (across & down).any():
            text.set_color(svg.ON_COLOUR)


def _is_light_area(patch: "Patch") -> bool:
    """A patch that is filled with a light colour: neither white nor the faint shade."""
    from matplotlib.colors import to_hex

    red_green_blue_alpha = patch.get_facecolor()
    if not patch.get_fill() or red_green_blue_alpha[3] < 0.5:
        return False
    colour = to_hex(red_green_blue_alpha)
    return colour not in ("#ffffff", IDLE.lower()) and luminance(colour) > LIGHT
