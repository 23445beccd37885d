"""Pieces of a source file as a chapter shows them: cut out of the file itself, so that they cannot
differ from what runs.
"""

import re
import textwrap
from pathlib import Path

from utils.tools.listing import Listing


def function(path, name: str, *, start: str = "", lines: int | None = None) -> Listing:
    """One function, kernel or struct of a CUDA C file, with the comment right above it.

    start: leave out what stands before the first line that holds this text. lines: show so many
        lines at most; what is left
    out is marked. LookupError names what there is when the file has none of that name, or the
    function no such line.
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8").splitlines()
    heads = {found: n for n, line in enumerate(text) if (found := _defines(line, text, n))}
    if name not in heads:
        raise LookupError(f"{path.name} defines no {name!r}; it defines {', '.join(heads)}")
    first = last = heads[name]
    while first and (
        text[first - 1].startswith(("//", "template", "__global__")) or _continues(text[first - 1])
    ):
        first -= 1
    while not text[last].startswith("}") and not (
        last == heads[name] and text[last].rstrip().endswith(("}", "};"))
    ):
        last += 1
    begin = next((n for n in range(first, last + 1) if start in text[n]), None)
    if begin is None:
        raise LookupError(f"{name} in {path.name} has no line with {start!r}")
    end = min(last, begin + lines - 1) if lines else last
    body = textwrap.dedent("\n".join(text[begin : end + 1]))
    return Listing(
        f"{'// …' + chr(10) if begin > first else ''}{body}{chr(10) + '// …' if end < last else ''}"
    )


def _defines(line: str, lines: list[str], n: int) -> str | None:
    """The name that a line at the left margin begins to define, or None."""
    if not re.match(r"[A-Za-z_]", line) or line.startswith(
        ("using", "typedef", "return", "namespace", 'extern "C" {')
    ):
        return None
    structure = re.match(r"(?:struct|class)\s+(\w+)\s*(?::|\{|$)", line)
    if structure:
        return structure.group(1)
    called = re.search(
        r"(\w+)\s*\(", re.sub(r"__launch_bounds__\s*\([^()]*(?:\([^()]*\))?[^()]*\)", "", line)
    )
    if not called or called.group(1) in ("defined", "static_assert", "__launch_bounds__"):
        return None
    for following in lines[n : n + 12]:  # a body, not a declaration
        if "{" in following:
            return called.group(1)
        if ";" in following:
            return None
    return None


def _continues(line: str) -> bool:
    """Whether a line is the first half of a definition whose name stands on the next one."""
    return bool(re.match(r"(static|inline|__device__|__forceinline__)\b", line)) and not re.search(
        r"[;{}]", line
    )
