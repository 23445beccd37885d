"""What a check tells the learner: an Outcome, as text anywhere and framed in a notebook."""

import functools
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.checking import text
from course.checking.engines import Run
from course.checking.evidence import right, trim, unwritten, where
from course.checking.model import Exercise, sentence
from course.checking.speed import Report
from course.checking.text import marked_up
from utils.check.comparison import OK, UNWRITTEN, WRONG
from utils.check.error_map import error_map
from utils.plots import svg
from utils.plots.picture import page
from utils.timing import SAID

AFTERWARDS = "One way to write it, and what goes wrong"
MARKS = {
    "solved": ("✓", "Solved", "#2e7d32"),
    "not yet": ("○", "Not solved yet", "#b26a00"),
    "broken": ("✗", "Broken", "#c62828"),
}


class NotSolved(AssertionError):
    """Raised by check(..., strict=True) for an answer that is not accepted."""


@dataclass(frozen=True)
class Outcome:
    """The result of a check.

    kind: of the exercise. status: "solved", "not yet" or "broken". reason: a key of REASONS, ""
    when solved. untouched: the answer is the starter as it was given.
    """

    exercise: str
    title: str
    kind: str
    status: str
    reason: str = ""
    untouched: bool = False
    lines: tuple = ()
    code: str = ""
    picture: str = ""
    film: str = ""
    seed: int | None = None
    one_way: str = ""
    rejects: tuple = ()
    speed: Report | None = None

    @property
    def solved(self) -> bool:
        return self.status == "solved"

    @property
    def headline(self) -> str:
        mark, word, _ = MARKS[self.status]
        if self.untouched:
            return f"{mark} {self.exercise} · {word}: this is still the starter."
        why = f": {sentence(self.reason, self.kind)}" if self.reason else f": {self.title}"
        return f"{mark} {self.exercise} · {word}{why}"

    @property
    def next_step(self) -> str:
        if self.solved:
            return f'{AFTERWARDS}: exercises.solution("{self.exercise}")' if self.one_way else ""
        again = "" if self.seed is None else f" · {text.AGAIN.format(self.seed)}"
        return text.STUCK.format(self.exercise) + again

    def __repr__(self) -> str:
        parts = [self.headline, *("  " + line for line in self.lines)]
        if self.speed:
            parts += ["  " + line for line in self.speed.lines]
        if self.code:
            parts += ["", *("    " + line for line in self.code.splitlines()), ""]
        if self.next_step:
            parts.append("  " + self.next_step)
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        colour = MARKS[self.status][2]
        body = "".join(f"<div>{marked_up(line)}</div>" for line in self.lines)
        if self.code:
            body += f"<pre style='margin:6px 0;padding:6px'>{html.escape(self.code)}</pre>"
        body += self.picture + self.film
        if self.speed:
            body += timed(self.speed)
        if self.solved and self.one_way:
            body += folded(self.one_way, self.rejects)
        elif self.next_step:
            body += f"<div style='margin-top:6px'><small>{marked_up(self.next_step)}</small></div>"
        edge = f"style='border-left:4px solid {colour};padding:4px 12px'"
        headline = f"<strong>{html.escape(self.headline)}</strong>"
        if self.untouched:  # one line, after *Run all*, and what is to be done unfolds
            return f"<details {edge}><summary>{headline}</summary>{body}</details>"
        return f"<div {edge}>{headline}{body}</div>"


def timed(speed: Report) -> str:
    """HTML of how long an answer takes; an estimate has its own colour, and a broken line."""
    line = f"dashed {SAID}" if speed.estimated else "solid #2e7d32"
    body = "".join(f"<div>{marked_up(each)}</div>" for each in speed.lines)
    return f"<div style='border-left:2px {line};margin-top:6px;padding:0 8px'>{body}</div>"


def folded(one_way: str, rejects: Sequence[str]) -> str:
    """HTML that unfolds to a solution and to what the check would have rejected."""
    wrong = "".join(f"<li>{marked_up(each)}</li>" for each in rejects)
    return (
        f"<details style='margin-top:6px'><summary>{AFTERWARDS}</summary>"
        f"<pre style='margin:6px 0;padding:6px'>{html.escape(one_way)}</pre>"
        + (f"<div>The check rejects, among others:</div><ul>{wrong}</ul>" if wrong else "")
        + "</details>"
    )


def describe(run: Run, exercise: Exercise) -> list[str]:
    """Lines about one launch that went wrong: which it was, and its first wrong element."""
    launch = run.launch
    arrays = {n: getattr(v, "array", v) for n, v in run.arguments.items() if not np.isscalar(v)}
    on_gpu = ", on the GPU" if run.engine == "GPU" else ""
    shapes = ", ".join(f"`{name}` {array.shape}" for name, array in arrays.items())
    lines = [
        f"Launch: grid {trim(launch.grid)}, block {trim(launch.block)} ({launch.label}{on_gpu}), "
        f"{shapes}."
    ]
    wrong = ~right(run, exercise)
    if not wrong.any():
        return lines
    first, index = first_to_show(wrong, run.expected)
    came = f"got {number(run.actual[index])}"
    if unwritten(run, exercise)[index]:
        came = "it was never written"
    expected = number(run.expected[index])
    lines.append(
        f"{first}: index {where(index)}{made_of(run, index)}, expected {expected}, "
        f"{came} ({int(wrong.sum()):,} of {wrong.size:,} are wrong)."
    )
    return lines


def first_to_show(wrong: np.ndarray, expected: np.ndarray) -> tuple[str, tuple[int, ...]]:
    """What to call a wrong element, and its index: the first one, of numbers if there are any."""
    numbers = wrong
    if expected.dtype.kind == "f":
        numbers = wrong & np.isfinite(expected)
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    if not numbers.any() or numbers[first]:
        return "First wrong element", first
    finite = tuple(int(i) for i in np.argwhere(numbers)[0])
    return "First wrong element with a finite result", finite


def made_of(run: Run, index: tuple[int, ...]) -> str:
    """In words what the inputs that have an element for each of the output hold at an index."""
    inputs = {
        name: array[index]
        for name, array in run.arguments.items()
        if isinstance(array, np.ndarray) and array.shape == run.expected.shape
    }
    if not inputs:
        return ""
    return " (" + ", ".join(f"`{name}` {number(value)}" for name, value in inputs.items()) + ")"


def number(value: Any) -> str:
    """A value as a learner would write it."""
    return f"{float(value):.6g}" if np.asarray(value).dtype.kind == "f" else str(value)


def draw(run: Run, exercise: Exercise) -> str:
    """HTML: each element of the output. Of three dimensions the first wrong layer."""
    codes = np.where(unwritten(run, exercise), UNWRITTEN, WRONG)
    codes[right(run, exercise)] = OK
    if codes.size < 2 or not codes.any():
        return ""
    title = f"output {run.expected.shape}"
    if codes.ndim == 3:
        layer = int(np.argwhere(codes)[0][0])
        codes, title = codes[layer], f"{title}, layer {layer}"
    return as_html(error_map(codes, title))


@functools.cache
def get_ready() -> None:
    """Draw one picture: then a copy of this process has loaded what draws, and its fonts."""
    as_html(error_map(np.array([[OK, WRONG]]), "output"))


def as_html(picture: Any) -> str:
    """HTML of a picture, in the page's colours: a chart's of matplotlib's, or a drawing's."""
    if isinstance(picture, svg.Drawing):
        return picture._repr_html_()
    return page(picture)
