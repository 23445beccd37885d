"""Pieces of a source file as chapters show them, cut out of what really runs."""

import difflib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from utils.plots import svg
from utils.tools import yours
from utils.tools.yours import Region


class Listing(str):
    """Code that a notebook shows, in the colours of its language.

    language: a name that Markdown's fences know, such as "python" or "cuda"; "" for plain text.
    """

    language: str

    def __new__(cls, text: str, language: str = "python") -> Self:
        listing = super().__new__(cls, text)
        listing.language = language
        return listing

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str | None:
        return f"```{self.language}\n{self.rstrip()}\n```" if self.language else None


def function(
    path: str | Path,
    name: str,
    *,
    start: str = "",
    lines: int | None = None,
) -> Listing:
    """One function, kernel or struct of a CUDA C file, with the comment right above it.

    start: leave out what stands before the first line that holds this text.
    lines: show so many lines at most; what is left out is marked.
    LookupError names what there is when the file has none of that name, or the function no such
    line.
    """
    region = Region(yours.current(path), name, start, lines)
    text = region.file.read_text(encoding="utf-8")
    whole = Region(region.file, name)
    first, last = region.extent(text)
    outer_first, outer_last = whole.extent(text)
    before = "// …\n" if first > outer_first else ""
    after = "\n// …" if last < outer_last else ""
    return Listing(before + region.of(text) + after, "cuda")


def change(
    old: str | Path,
    new: str | Path,
    *,
    name: str = "",
    old_name: str = "",
    context: int = 1,
    gone: bool = True,
) -> "Change":
    """What changes from one source file to the next: `old` and `new` are their paths.

    name: compare only this function, kernel or struct (`old_name`: what it is called in `old`).
    context: so many kept lines are shown around each change.
    gone: show the lines that are no longer there too.
    In a notebook new lines are coloured, kept ones grey, and the whole new file is a click away.
    LookupError as in `function`.
    """
    old = yours.current(old)
    new = yours.current(new)
    before = _lines_of(old, old_name or name)
    after = _lines_of(new, name)
    steps = [step for step in _steps(before, after, context) if gone or step[0] != "-"]
    return Change(new.name, tuple(steps), new.read_text(encoding="utf-8"))


def constants(path: str | Path, **given: int) -> dict[str, int]:
    """The whole-number constants of a CUDA C file, so that a picture draws the sizes that run.

    They stand there as ``#define NAME 8`` or as ``constexpr int A = 1, B = 2 * A;``.
    given: macros as the compiler gets them. What is not arithmetic on numbers is left out.
    """
    text = yours.current(path).read_text(encoding="utf-8")
    values = dict(given)
    for name, value in re.findall(r"#define (\w+) (\d+)\b", text):
        values.setdefault(name, int(value))
    for statement in re.findall(r"constexpr int ([^;]+);", text):
        for name, expression in re.findall(r"(\w+) = ([^,]+)", statement):
            value = _number(expression, values)
            if value is not None:
                values[name] = value
    return values


def _number(expression: str, values: dict[str, int]) -> int | None:
    """The value of C arithmetic on whole numbers and known names; None for anything else."""
    code = re.sub(
        r"[A-Za-z_]\w*",
        lambda name: str(values.get(name[0], "?")),
        expression,
    )
    if not re.fullmatch(r"[\d\s()+*/%-]+", code):
        return None
    value: int = eval(code.replace("/", "//"), {"__builtins__": {}})
    return value


def _lines_of(path: Path, name: str) -> list[str]:
    """The lines of a file, or of one function of it."""
    if name:
        return function(path, name).splitlines()
    return path.read_text(encoding="utf-8").splitlines()


def _steps(before: list[str], after: list[str], context: int) -> Iterator[tuple[str, str]]:
    """(mark, line) for what is shown: "+" new, "-" gone, " " kept, "…" for kept lines left out."""
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    shown = 0  # lines of `after` that are shown or skipped
    for group in matcher.get_grouped_opcodes(context):
        if group[0][3] > shown:
            yield "…", ""
        for what, a0, a1, b0, b1 in group:
            if what == "equal":
                yield from ((" ", line) for line in after[b0:b1])
                continue
            yield from (("-", line) for line in before[a0:a1])
            yield from (("+", line) for line in after[b0:b1])
        shown = group[-1][4]
    if shown < len(after):
        yield "…", ""


#: How a line of each kind looks, on a light page and on a dark one
_LOOK = {
    "+": "background:color-mix(in srgb, #1A7F37 18%, transparent);font-weight:600",
    "-": f"color:{svg.strong('#B03A00')};text-decoration:line-through",
    " ": f"color:{svg.GREY}",
    "…": f"color:{svg.GREY}",
}


@dataclass(frozen=True)
class Change:
    """What changes from one file to the next, and the whole of the next.

    lines: (mark, text), the mark one of "+", "-", " " and "…".
    """

    name: str
    lines: tuple[tuple[str, str], ...]
    whole: str

    def __getitem__(self, part: slice) -> "Change":
        """A part of the lines, to be shown by itself."""
        return replace(self, lines=self.lines[part])

    @property
    def new(self) -> int:
        """How many lines are new."""
        return sum(mark == "+" for mark, _ in self.lines)

    def __repr__(self) -> str:
        return "\n".join(f"{mark} {text}".rstrip() for mark, text in self.lines)

    def _repr_html_(self) -> str:
        rows = "".join(_row(mark, text) for mark, text in self.lines)
        total = len(self.whole.splitlines())
        title = f"{self.new} lines are new; the whole of {self.name}, {total} lines"
        style = "font:12px/1.25 monospace;white-space:pre;overflow-x:auto;text-align:left;margin:0"
        return (
            f'<div style="{style}">{rows}</div>'
            f'<details><summary style="font-size:12px">{html.escape(title)}</summary>'
            f'<pre style="{style}">{html.escape(self.whole)}</pre></details>'
        )


def _row(mark: str, text: str) -> str:
    return f'<div style="{_LOOK[mark]}">{html.escape(f"{mark} {text}")}</div>'
