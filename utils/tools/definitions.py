"""Where a definition of a C or CUDA C file begins and ends, found by its lines alone."""

import re
from pathlib import Path


def extent(
    path: Path,
    text: list[str],
    name: str,
) -> tuple[int, int]:
    """First and last line of a definition, the comment above it included."""
    heads = {}
    for n, line in enumerate(text):
        defined = _defines(line, text, n)
        if defined:
            heads[defined] = n
    if name not in heads:
        raise LookupError(f"{path.name} defines no {name!r}; it defines {', '.join(heads)}")
    first = last = heads[name]
    while first and _belongs(text[first - 1]):
        first -= 1
    while not text[last].startswith("}") and not (last == heads[name] and _ends(text[last])):
        last += 1
    return first, last


def _belongs(line: str) -> bool:
    """Whether a line right above a definition is its comment, or its beginning."""
    return line.startswith(("//", "template", "__global__")) or _continues(line)


def _ends(line: str) -> bool:
    """Whether a definition ends on the line on which it begins."""
    return line.rstrip().endswith(("}", "};"))


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
