"""Errors as a learner wants to read them: what, where, the source line marked, no traceback."""

import re
from collections.abc import Mapping
from pathlib import Path

# nvcc and NVRTC:  k.cu(12): error: ...      g++ and clang++:  k.cu:12:5: error: ...
_KIND = r"(?P<kind>(?:catastrophic |fatal )?error|warning)"
_NVCC = re.compile(rf"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): {_KIND}[^:]*: (?P<text>.*)")
_GCC = re.compile(
    rf"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?::(?P<column>\d+))?: {_KIND}: (?P<text>.*)"
)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")

MAX_ERRORS = 5


class LearnerError(RuntimeError):
    """An error whose message says everything; IPython shows it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def unstyled(text: str) -> str:
    """A text without the terminal's colours and bold letters."""
    return _STYLE.sub("", text)


def annotate(log: str, sources: Mapping[str, Path] | None = None) -> str:
    """Compiler output with each error shown in its source.

    log: what nvcc, NVRTC, g++ or clang++ printed.
    sources: where to find a file that the log names only by its last part.
    Returns the errors (or, when there are none, the log as it is), each with the line it speaks of
    and a marker.
    """
    shown = []
    for entry in log.splitlines():
        match = _NVCC.match(entry) or _GCC.match(entry)
        if not match or match["kind"] == "warning":
            continue
        path = Path(match["file"])
        path = (sources or {}).get(path.name, path)
        lines = excerpt(path, int(match["line"]), match.groupdict().get("column"))
        block = f"{path}, line {match['line']}: {match['text']}\n{lines}"
        if block not in shown:
            shown.append(block)
    if len(shown) > MAX_ERRORS:  # one mistake early in a file can set off hundreds
        shown[MAX_ERRORS:] = [
            f"... and {len(shown) - MAX_ERRORS} more errors: mend the first and compile again"
        ]
    return "\n".join(shown) if shown else log.strip()


def excerpt(path: Path, line: int, column: str | None = None, around: int = 1) -> str:
    """The lines of a file around `line`, numbered: ``>`` at the line, ``^`` under the column."""
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    out = []
    for number in range(max(1, line - around), min(len(lines), line + around) + 1):
        marker = ">" if number == line else " "
        out.append(f"  {marker} {number:4} | {lines[number - 1]}")
        if number == line and column:
            out.append(f"         | {' ' * (int(column) - 1)}^")
    return "\n".join(out) + "\n"
