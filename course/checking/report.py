"""What a check tells the learner: an Outcome, shown as text anywhere and as a framed report in a
notebook.
"""

import base64
import html
import io
from dataclasses import dataclass

import numpy as np

from course.checking.diagnose import right, trim, unwritten, where
from course.checking.model import REASONS

MARKS = {
    "solved": ("✓", "Solved", "#2e7d32"),
    "not yet": ("○", "Not solved yet", "#b26a00"),
    "broken": ("✗", "Broken", "#c62828"),
}


class NotSolved(AssertionError):
    """Raised by check(..., strict=True) for an answer that is not accepted."""


@dataclass(frozen=True)
class Outcome:
    """The result of a check. `status` is "solved", "not yet" or "broken"; `reason` is a key of
    REASONS, ""
    when solved; `untouched` says that the answer is the starter as it was given."""

    exercise: str
    title: str
    status: str
    reason: str = ""
    untouched: bool = False
    lines: tuple = ()
    code: str = ""
    picture: bytes = b""
    picture_says: str = ""
    seed: int | None = None

    @property
    def solved(self):
        return self.status == "solved"

    @property
    def headline(self):
        mark, word, _ = MARKS[self.status]
        if self.untouched:
            return f"{mark} {self.exercise} · {word}: this is still the starter."
        why = f": {REASONS[self.reason]}" if self.reason else f": {self.title}"
        return f"{mark} {self.exercise} · {word}{why}"

    @property
    def next_step(self):
        if self.solved:
            return ""
        if self.seed is None:
            return f'Stuck? exercises.hint("{self.exercise}")'
        return (
            f'Stuck? exercises.hint("{self.exercise}") · The same inputs again: check(..., '
            f"seed={self.seed})"
        )

    def __repr__(self):
        parts = [self.headline, *("  " + line for line in self.lines)]
        if self.code:
            parts += ["", *("    " + line for line in self.code.splitlines()), ""]
        if self.next_step:
            parts.append("  " + self.next_step)
        return "\n".join(parts)

    def _repr_html_(self):
        colour = MARKS[self.status][2]
        body = "".join(f"<div>{marked_up(line)}</div>" for line in self.lines)
        if self.code:
            body += f"<pre style='margin:6px 0;padding:6px'>{html.escape(self.code)}</pre>"
        if self.picture:
            data = base64.b64encode(self.picture).decode()
            body += (
                f"<img alt='{html.escape(self.picture_says, quote=True)}' "
                f"src='data:image/png;base64,{data}'>"
            )
        if self.next_step:
            body += f"<div style='margin-top:6px'><small>{marked_up(self.next_step)}</small></div>"
        return (
            f"<div style='border-left:4px solid {colour};padding:4px 12px'>"
            f"<strong>{html.escape(self.headline)}</strong>{body}</div>"
        )


def marked_up(line):
    """Escaped HTML in which `code` is set as code."""
    parts = html.escape(line).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))


def describe(run, exercise):
    """Lines about one launch that went wrong: which it was, and its first wrong element."""
    launch = run.launch
    shapes = {
        n: getattr(v, "array", v).shape for n, v in run.arguments.items() if not np.isscalar(v)
    }
    on_gpu = ", on the GPU" if run.engine == "GPU" else ""
    arrays = ", ".join(f"`{name}` {shape}" for name, shape in shapes.items())
    lines = [
        f"Launch: grid {trim(launch.grid)}, block {trim(launch.block)} ({launch.label}{on_gpu}), "
        f"{arrays}."
    ]
    wrong = ~right(run, exercise)
    if not wrong.any():
        return lines
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    came = (
        "it was never written"
        if unwritten(run, exercise)[index]
        else f"got {number(run.actual[index])}"
    )
    lines.append(
        f"First wrong element: index {where(index)}, expected {number(run.expected[index])}, "
        f"{came} ({int(wrong.sum()):,} of {wrong.size:,} are wrong)."
    )
    return lines


def number(value):
    """A value as a learner would write it."""
    return f"{float(value):.6g}" if np.asarray(value).dtype.kind == "f" else str(value)


def draw(run, exercise):
    """(PNG, alt text): each element of the output, right, wrong or unwritten. 3-D: the first wrong
    layer.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    state = np.where(right(run, exercise), 0, np.where(unwritten(run, exercise), 2, 1))
    if state.size < 2 or not state.any():
        return b"", ""
    title = f"output {run.expected.shape}"
    if state.ndim == 3:
        layer = int(np.argwhere(state)[0][0])
        state, title = state[layer], f"{title}, layer {layer}"
    if state.ndim == 1:  # a row of 32 is a warp
        if state.size > 32:
            state = np.pad(state, (0, -state.size % 32), constant_values=3)
            title += ", 32 elements a row"
        state = state.reshape(-1, min(state.size, 32))
    height, width = state.shape
    cell = min(0.25, 6 / width, 4 / height)  # inches
    figure = Figure(
        figsize=(max(3.6, width * cell + 0.6), height * cell + 0.9), layout="constrained", dpi=90
    )
    axes = figure.subplots()
    names = {"right": "#8fbcdb", "wrong": "#d95f02", "never written": "#e8e8e8", "": "#ffffff"}
    line = 0.5 if max(width, height) <= 64 else 0
    colours = ListedColormap(list(names.values()))
    axes.pcolormesh(state, cmap=colours, vmin=0, vmax=3, edgecolors="#888888", linewidth=line)
    axes.invert_yaxis()
    axes.set_aspect("equal", anchor="W")
    axes.set_xticks(
        [0.5, width - 0.5] if width > 1 else [0.5], [0, width - 1] if width > 1 else [0]
    )
    axes.set_yticks(
        [0.5, height - 0.5] if height > 1 else [0.5], [0, height - 1] if height > 1 else [0]
    )
    axes.tick_params(labelsize=8, length=0)
    axes.spines[:].set_visible(False)
    patches = [
        Patch(facecolor=colour, edgecolor="#888888", label=name)
        for k, (name, colour) in enumerate(names.items())
        if name and (state == k).any()
    ]
    figure.suptitle(title, fontsize=9, x=0.02, ha="left")
    figure.legend(handles=patches, loc="outside lower left", ncols=3, fontsize=8, frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    right_n, wrong_n, holes = ((state == k).sum() for k in range(3))
    return (
        buffer.getvalue(),
        f"Map of the {title}: {right_n} right, {wrong_n} wrong, {holes} never written.",
    )
