"""Things to move in a notebook: a picture that follows sliders and menus.

`interact` draws the pictures of all positions beforehand where that is quick, and sends them once:
they then answer at once, on a page without Python, too. Where it would take long, ipywidgets asks
for each; a recording of the notebook (`course/record.py`) still draws some of them, so that what is
saved can be moved on the website and in decks.
"""

import base64
import functools
import html
import itertools
import json
import math
import os
import re
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import ipywidgets
from IPython.core.formatters import DisplayFormatter
from IPython.display import display
from IPython.utils.capture import capture_output
from ipywidgets import Dropdown, FloatSlider, IntSlider

from utils.plots import widget_view
from utils.plots.svg import inline_only

__all__ = ["interact", "slider"]

#: What shows a picture: it takes what the sliders and menus say, by name
Draw = Callable[..., Any]
#: What somebody can move: one of ipywidgets', or a list to choose from
Move: TypeAlias = list | IntSlider | FloatSlider | Dropdown
#: (HTML, plain text)
Page = tuple[str, str]
#: Set while a notebook is recorded: pictures are drawn beforehand even where it takes long
DRAW = "CUDA_COURSE_DRAW"
QUICK = 0.8  # seconds for all pictures of a cell, so that nobody waits for what they may not want
MOST = 72  # pictures that are saved of a cell that has more,
LONG = 30  # and seconds that they may take
PARTS = Path(__file__).resolve().parent
STYLE = (
    ".course-bar{display:flex;flex-wrap:wrap;gap:6px 10px;align-items:center;margin:4px 0 8px;"
    "font:14px/1.4 system-ui,sans-serif}.course-bar label{display:flex;gap:8px;align-items:center;"
    "margin-right:8px}.course-bar input{width:150px}.course-bar output{min-width:2.2em}"
    ".course-bar button,.course-bar select{font:inherit;min-width:34px;min-height:28px}"
    ".course-said{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}"
)


def slider(value: int, least: int, most: int, step: int = 1) -> IntSlider:
    """A slider for whole numbers that speaks once, when it is let go (or after a press of a key).

    While it moves, a slider of ipywidgets asks for a picture at every step; those queue, and what
    is seen lags behind.
    """
    return IntSlider(value, least, most, step, continuous_update=False)


@dataclass(frozen=True)
class Field:
    """A slider or a menu: the argument it sets, its name, what it shows at each position, the
    values there, and its position at first.
    """

    argument: str
    name: str
    labels: tuple
    values: tuple
    first: int

    def thinned(self) -> "Field":
        """The field with every second value."""
        kept = slice(self.first % 2, None, 2)
        return replace(
            self, labels=self.labels[kept], values=self.values[kept], first=self.first // 2
        )


def interact(draw: Draw | None = None, /, **moves: Move) -> Any:
    """As ipywidgets' `interact`: call `draw` with what the sliders and menus say, show the result.

    moves: for each argument a slider, a menu, or a list to choose from. Also a decorator.
    """
    if draw is None:
        return functools.partial(interact, **moves)
    fields = fields_of(moves)
    drawn = drawn_of(draw, fields) if fields else None
    if drawn is not None and drawn.is_whole:
        display(drawn.bundle, raw=True)
        return draw

    # ipywidgets would give each other argument a field as well
    def drawn_anew(**values: Any) -> object:
        return draw(**values)

    if drawn is None:
        moved = ipywidgets.interact(drawn_anew, **moves).widget
        draw.widget = moved  # type: ignore[attr-defined]  # a function, as ipywidgets' own has it
        return draw
    moved = ipywidgets.interactive(drawn_anew, **moves)
    display({**widget_view(moved), **drawn.bundle}, raw=True)
    return draw


def fields_of(moves: Mapping[str, Move]) -> list[Field] | None:
    """The Field of each argument; None where one is neither a slider, a menu nor a list."""
    fields = []
    for name, move in moves.items():
        if isinstance(move, list):
            fields.append(Field(name, name, tuple(move), tuple(move), 0))
        elif isinstance(move, IntSlider | FloatSlider):
            count = round((move.max - move.min) / move.step) + 1
            values = tuple(move.min + n * move.step for n in range(count))
            labels = tuple(round(value, 6) for value in values)
            first = round((move.value - move.min) / move.step)
            fields.append(Field(name, move.description or name, labels, values, first))
        elif isinstance(move, Dropdown):
            labels, values = zip(*move._options_full, strict=True)
            fields.append(Field(name, move.description or name, labels, values, move.index or 0))
        else:
            return None
    return fields


def drawn_of(draw: Draw, fields: list[Field]) -> "Drawn | None":
    """The Drawn of what `draw` shows; None where it takes long, fails or is no picture."""
    start = time.monotonic()
    one = shown_by(draw, {field.argument: field.values[field.first] for field in fields})
    took = time.monotonic() - start
    if one is None:
        return None
    is_whole = took * positions(fields) <= QUICK
    if not is_whole and not os.environ.get(DRAW):
        return None
    most = min(MOST, LONG / took)
    while not is_whole and positions(fields) > max(most, 2 ** len(fields)):
        longest = max(fields, key=lambda field: len(field.values))
        fields = [field.thinned() if field is longest else field for field in fields]
    names = [field.argument for field in fields]
    places = itertools.product(*(field.values for field in fields))
    pages = [shown_by(draw, dict(zip(names, place, strict=True))) for place in places]
    drawn = [page for page in pages if page is not None]
    return Drawn(one, fields, drawn, is_whole) if len(drawn) == len(pages) else None


def positions(fields: list[Field]) -> int:
    """How many there are."""
    return math.prod(len(field.values) for field in fields)


def shown_by(draw: Draw, values: dict[str, Any]) -> Page | None:
    """The page of what `draw` prints, displays and returns; None if it is no HTML."""
    try:
        with capture_output() as printed:
            result = draw(**values)
    except Exception:  # ipywidgets shows it, in the cell
        return None
    pages, words = [], []
    if printed.stdout:
        pages.append(f"<pre>{html.escape(printed.stdout)}</pre>")
        words.append(printed.stdout.rstrip())
    bundles = [output.data for output in printed.outputs]
    if result is not None:
        bundles.append(DisplayFormatter().format(result)[0])
    for bundle in bundles:
        if "text/html" not in bundle:
            return None
        pages.append(bundle["text/html"])
        words.append(bundle.get("text/plain", ""))
    return ("".join(pages), "\n".join(words)) if pages else None


class Drawn:
    """Pictures of all positions of some fields, drawn beforehand.

    one: the page at first. pages: the same at each position, those of the last field side
    by side. is_whole: no position was left out.
    """

    def __init__(self, one: Page, fields: list[Field], pages: list[Page], is_whole: bool) -> None:
        self.one = one
        self.fields = fields
        self.pages = pages
        self.is_whole = is_whole

    @property
    def bundle(self) -> dict[str, str]:
        """What a notebook shows."""
        return {"text/html": self.html, "text/plain": self.one[1]}

    @property
    def html(self) -> str:
        """The pictures as one piece of HTML; without scripts the first of them stands there."""
        numbers: dict[str, int] = {}
        order = [numbers.setdefault(inline_only(page), len(numbers)) for page, _ in self.pages]
        every = json.dumps({"frames": list(numbers), "order": order}, separators=(",", ":"))
        packed = base64.b64encode(zlib.compress(every.encode(), 9)).decode()
        fields = [[field.name, field.labels, field.first] for field in self.fields]
        told = json.dumps(fields, ensure_ascii=False).replace("<", "\\u003c")
        return (
            '<div class="course-moves" data-lm-suppress-shortcuts="true" '
            f'data-p-suppress-shortcuts="true"><style>{STYLE}</style>'
            f'<div class="course-bar"></div><div class="course-frame">{self.one[0]}</div>'
            f"<script>({script()})(document.currentScript.parentElement,{told},"
            f'"{packed}")</script></div>'
        )


@functools.cache
def script() -> str:
    """moves.js without its comments and indentation."""
    lines = (PARTS / "moves.js").read_text(encoding="utf-8").splitlines()
    kept = (line.strip() for line in lines)
    return "\n".join(line for line in kept if line and not re.match("//", line))
