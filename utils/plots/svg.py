"""Pictures as SVG within HTML: they follow the reader's theme and carry a description.

Ink is the colour of the text around the picture (`currentColor`), the ground is the page's own, so
that one picture serves light and dark pages. Where a page lets no SVG through (a notebook that
JupyterLab does not trust, a site that shows notebooks), the same picture stands as an image, black
on white.
"""

import base64
import html
import re
from collections.abc import Iterable
from typing import Any

#: Colours that follow the theme: the text's own, a faint shade of it, and what the page is made of
INK = "currentColor"
FAINT = "color-mix(in srgb, currentColor 12%, transparent)"
GREY = "color-mix(in srgb, currentColor 72%, transparent)"
PAPER = "var(--paper, #fff)"
#: Text on a light colour, the same in both themes; nearly black, so that any colour on which white
#: letters have too little contrast carries these. (Black itself is what matplotlib has for ink.)
ON_COLOUR = "#050505"

FONT = "'DejaVu Sans', Verdana, sans-serif"
# The page's ground: JupyterLab's name for it, Furo's, Visual Studio Code's, Colab's
GROUND = (
    "var(--jp-layout-color0, var(--color-background-primary, "
    "var(--vscode-editor-background, var(--colab-primary-surface-color, #fff))))"
)
# A page that leaves <style> out shows the image; one that takes it shows the SVG in its place.
# Hidden twice: others leave styles out, and JupyterLab `hidden` in what it does not trust. There
# the image stays, whatever styles the page has from outputs that it trusts.
STYLE = (
    f".course-picture{{--paper:{GROUND};overflow-x:auto}}"
    ".course-picture[hidden]{display:block!important}"
    ".course-picture[hidden]+img{display:none!important}"
    ".course-picture svg{width:100%;height:auto}"
)
#: Pixels: on a narrow screen a picture is no narrower, and scrolls; letters stay readable
NARROWEST = 520


def strong(colour: str) -> str:
    """A dark colour for lines and letters: darker on a light page, lighter on a dark one."""
    return f"color-mix(in srgb, {colour} 65%, currentColor)"


def as_html(svg: str, alt: str, width: float) -> str:
    """The HTML that shows an SVG: inline, and as an image for pages that allow only that.

    svg: a whole <svg> element. alt: what it shows. width: in pixels, the most it takes.
    """
    words = html.escape(alt)
    narrowest = min(width, NARROWEST)
    size = f"max-width:{width:.0f}px;min-width:{narrowest:.0f}px"
    inline = svg.replace("<svg ", f'<svg role="img" aria-label="{words}" style="{size}" ', 1)
    still = svg.replace("<svg ", '<svg style="background:#fff;color:#222" ', 1)
    data = base64.b64encode(still.encode()).decode()
    return (
        f"<style>{STYLE}</style>"
        f'<div class="course-picture" hidden style="display:none">{inline}</div>'
        f'<img alt="{words}" width="{width:.0f}" src="data:image/svg+xml;base64,{data}">'
    )


#: The image of `as_html`, which pages that take its SVG do without
STILL = re.compile(r'<img [^>]*src="data:image/svg\+xml;base64,[^"]*">')


def inline_only(page: str) -> str:
    """HTML in which pictures by `as_html` stand once, as SVG."""
    return STILL.sub("", page)


def element(tag: str, content: str = "", **attributes: object) -> str:
    """An SVG element as text. Of attribute names `_` becomes `-`; None leaves an attribute out."""
    words = [tag]
    for name, value in attributes.items():
        if value is not None:
            words.append(f'{name.replace("_", "-").strip("-")}="{_short(value)}"')
    head = " ".join(words)
    return f"<{head}>{content}</{tag}>" if content else f"<{head}/>"


def _short(value: object) -> str:
    """A number with two decimals at most, anything else as text within quotes."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return html.escape(str(value))


class Drawing:
    """Shapes on a sheet of width × height pixels, y downwards; notebooks show it as SVG.

    alt: what it shows, in a sentence or two, for those who cannot see it.
    """

    def __init__(self, width: float, height: float, *, alt: str):
        self.width = width
        self.height = height
        self.alt = alt
        self.elements: list[str] = []

    def add(self, tag: str, content: str = "", **attributes: object) -> None:
        """Append any element of SVG."""
        self.elements.append(element(tag, content, **attributes))

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        line: str | None = None,
        thick: float = 1.0,
        **more: Any,
    ) -> None:
        """A rectangle. line: colour of its edge; more: other attributes, such as rx."""
        edge: dict[str, Any] = {"stroke": line, "stroke_width": thick} if line else {}
        self.add(
            "rect",
            x=float(x),
            y=float(y),
            width=float(width),
            height=float(height),
            style=f"fill:{fill}",
            **edge,
            **more,
        )

    def cells(self, corners: Iterable[tuple[float, float]], side: float, *, fill: str) -> None:
        """Squares of one size and colour as one shape. corners: the upper left one of each."""
        way = f"h{side:g}v{side:g}h-{side:g}z"
        path = "".join(f"M{_short(float(x))} {_short(float(y))}{way}" for x, y in corners)
        if path:
            self.add("path", d=path, style=f"fill:{fill}")

    def dots(self, middles: Iterable[tuple[float, float]], across: float, *, colour: str) -> None:
        """Discs of one size and colour as one shape. middles: (x, y) of each."""
        path = "".join(f"M{_short(float(x))} {_short(float(y))}h0" for x, y in middles)
        round_ends = f"stroke:{colour};stroke-linecap:round"
        self.add("path", d=path, style=round_ends, stroke_width=across)

    def text(
        self,
        x: float,
        y: float,
        words: object,
        *,
        size: float = 13,
        colour: str = INK,
        anchor: str = "middle",
        **more: Any,
    ) -> None:
        """A line of text whose middle height is at y. anchor: what x is: start, middle or end."""
        self.add(
            "text",
            html.escape(str(words)),
            x=float(x),
            y=float(y + 0.35 * size),
            font_size=size,
            text_anchor=anchor,
            style=f"fill:{colour}",
            **more,
        )

    def text_from(self, x: float, y: float, words: object, **more: Any) -> None:
        """A line of text that begins at x."""
        self.text(x, y, words, anchor="start", **more)

    def heading(self, x: float, y: float, words: object, **more: Any) -> None:
        """A line of bold text that begins at x."""
        self.text_from(x, y, words, font_weight="bold", **more)

    def named(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: object,
        colour: str,
        *,
        size: float = 13,
        rx: float = 4,
        **more: Any,
    ) -> None:
        """A box of a light colour with a line of text in its middle. more: as `box` has it."""
        self.box(x, y, width, height, fill=colour, rx=rx, **more)
        self.text(x + width / 2, y + height / 2, words, size=size, colour=ON_COLOUR)

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        *,
        colour: str = INK,
        thick: float = 1.0,
        **more: Any,
    ) -> None:
        """A straight line."""
        self.add(
            "line",
            x1=float(x1),
            y1=float(y1),
            x2=float(x2),
            y2=float(y2),
            style=f"stroke:{colour}",
            stroke_width=thick,
            **more,
        )

    def arrow(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        *,
        colour: str = INK,
        thick: float = 1.5,
        head: float = 8,
    ) -> None:
        """A straight arrow that ends at (x2, y2). head: its length."""
        long = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
        along = (x2 - x1) / long, (y2 - y1) / long
        base = x2 - head * along[0], y2 - head * along[1]
        aside = 0.45 * head * along[1], -0.45 * head * along[0]
        corners = [
            (x2, y2),
            (base[0] + aside[0], base[1] + aside[1]),
            (base[0] - aside[0], base[1] - aside[1]),
        ]
        self.line(x1, y1, *base, colour=colour, thick=thick)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        self.add("polygon", points=points, style=f"fill:{colour}")

    def svg(self) -> str:
        """The whole <svg> element."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'font-family="{FONT}">{"".join(self.elements)}</svg>'
        )

    def _repr_html_(self) -> str:
        return as_html(self.svg(), self.alt, self.width)

    def __repr__(self) -> str:
        return self.alt
