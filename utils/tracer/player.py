"""The player of films (film.py): one piece of HTML, drawn in the browser from data sent once.

It plays in a notebook, on the website, in a deck and as a file of its own. Where scripts do not run
(a saved output that JupyterLab does not trust yet, a printed page) its still stands there, with
what the film shows in words.
"""

import base64
import functools
import html
import json
import re
import zlib
from pathlib import Path
from typing import Any

from ..files import write_whole
from .counts import WARP
from .film import Film
from .pictures import as_hex, lane_colour
from .record import ACCESSES
from .steps import Steps

HERE = Path(__file__).resolve().parent
STILL_WORDS = "A still. Run this cell, and the film plays here."
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --color-background-primary: #fff }}
:root {{ color: #222; background: #fff }}
@media (prefers-color-scheme: dark) {{
  :root {{ --color-background-primary: #16181b; color: #e6e6e6; background: #16181b }}
}}
body {{ margin: 12px auto; max-width: 1180px; padding: 0 8px; font-family: system-ui, sans-serif }}
</style>
<main>{player}</main>
</html>
"""


#: What a saved player has of this package: the script, and the style in its setting
SCRIPT = re.compile(
    r"(<script>)\((?:async )?\(host, films, setting\) =>.*?(\)\(\(document\.currentScript)",
    re.DOTALL,
)
STYLE = re.compile(r'"css":"(?:[^"\\]|\\.)*"')


class Player:
    """One film, or two on one clock. A notebook shows it; `share` writes it as a file."""

    def __init__(self, *films, names=(), start=0):
        self.films = films
        self.names = names
        self.start = start

    @property
    def title(self):
        return " and ".join(film.trace.title for film in self.films)

    @property
    def words(self):
        """What the films show, for those who cannot see them play."""
        parts = []
        for film in self.films:
            parts.append(
                f"Film of {film.trace.title}, {len(film):,} steps. {film.left_out}".strip()
            )
            if film.stop is not None:
                number = film.data["stop"]
                parts.append(f"It goes wrong at step {number + 1}: {film.describe(number)}")
        return "\n".join(parts)

    @property
    def html(self):
        """The player as HTML, with its still inside."""
        stills = "".join(map(still, self.films))
        words = "<br>".join(map(html.escape, self.words.splitlines()))
        return self._element(f"<div>{stills}<p>{words}<br>{STILL_WORDS}</p></div>")

    def _element(self, inside):
        films = [film.data for film in self.films]
        for data, name in zip(films, self.names, strict=False):
            data["name"] = name
        setting = {"colours": colours(), "start": self.start, "css": compact_css()}
        if len(self.films) > 1:
            setting["title"] = " and ".join(self.names)
        return (
            '<div class="kernel-film" data-lm-suppress-shortcuts="true" '
            f'data-p-suppress-shortcuts="true">{inside}<script>({compact_script()})('
            "(document.currentScript&&document.currentScript.parentElement)||"
            f"document.querySelector('.kernel-film'),{as_script(packed(films))},"
            f"{as_script(setting)})"
            "</script></div>"
        )

    def folded(self, summary):
        """HTML that unfolds to the player, for a page that has a picture of it already."""
        return (
            f"<details style='margin-top:6px'><summary>{html.escape(summary)}</summary>"
            f"{self._element(f'<p>{html.escape(self.words)}</p>')}</details>"
        )

    def share(self, path: str | Path) -> Path:
        """Write the film as one HTML file, which plays in any browser; returns the path."""
        path = Path(path)
        page = PAGE.format(
            title=html.escape(self.title),
            player=self._element(f"<p>{html.escape(self.words)}</p>"),
        )
        write_whole(path, page)
        return path

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.words}

    def __repr__(self):
        return self.words


def play(before: Any, after: Any, names: tuple[str, str] = ("before", "after")) -> Player:
    """Two Traces side by side on one clock: what an access costs moves it on. names: their titles.

    The clock's ticks are counted, not measured: an access takes as many as it has sectors, passes
    or lanes in a queue, everything else one.
    """
    return Player(Film(before), Film(after), names=names)


def still(film):
    """HTML of a picture: of what goes wrong in the film, of what it wastes, or of its accesses."""
    trace = film.trace
    if film.race is not None:
        shown = trace.draw_races()
    elif film.stop is not None and trace.error is not None:
        shown = trace.draw_barriers()
    elif any(row.conflicts for row in trace.banks):
        shown = trace.draw_banks()
    elif trace.coalescing and trace.efficiency() < 100:
        shown = trace.draw_memory()
    else:
        access = next((step for step in film.all_steps if step.kind in ACCESSES), None)
        if access is None:
            return ""
        shown = Steps(trace, access.warp).still()
    has_bundle = hasattr(shown, "_repr_mimebundle_")
    return shown._repr_mimebundle_()["text/html"] if has_bundle else shown._repr_html_()


@functools.cache
def colours():
    """Each lane's colour, and what can be read on it."""
    pairs = map(lane_colour, range(WARP))
    return [[as_hex(colour), ink] for colour, ink in pairs]


def packed(value):
    """JSON, deflated, as letters: a tenth of its size."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def as_script(value):
    """JSON that can stand within a <script>."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def refreshed(page):
    """HTML with players saved earlier, with today's script and style, and the data they have."""
    if not SCRIPT.search(page):
        return page
    page = SCRIPT.sub(lambda found: f"{found[1]}({compact_script()}{found[2]}", page)
    return STYLE.sub(lambda _: f'"css":{as_script(compact_css())}', page)


@functools.cache
def compact_script():
    """player.js without its comments and indentation."""
    text = (HERE / "player.js").read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    kept = [re.sub(r"\s+// [^`\"']*$", "", line) for line in lines if not line.startswith("//")]
    return "\n".join(line for line in kept if line).strip()


@functools.cache
def compact_css():
    """player.css without its line ends."""
    return re.sub(r"\s+", " ", (HERE / "player.css").read_text(encoding="utf-8")).strip()
