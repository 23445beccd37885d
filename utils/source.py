"""Pieces of a source file as a chapter shows them: cut out of the file itself, so that they cannot differ from what runs."""

import re
from pathlib import Path


class Excerpt(str):
    """C++ text that a notebook shows in colours, and anything else as it is."""

    def __repr__(self):
        return str(self)

    def _repr_markdown_(self):
        return f"```c++\n{self}\n```"


def function(path, name: str) -> Excerpt:
    """One function, kernel or struct of a CUDA C file, with the comment right above it.

    LookupError names what there is when the file has none of that name.
    """
    path = Path(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    heads = {found: n for n, line in enumerate(lines) if (found := _defines(line, lines, n))}
    if name not in heads:
        raise LookupError(f"{path.name} defines no {name!r}; it defines {', '.join(heads)}")
    first = last = heads[name]
    while first and (lines[first - 1].startswith(("//", "template", "__global__", " *", "/*")) or _continues(lines[first - 1])):
        first -= 1
    while not lines[last].startswith("}") and not (last == heads[name] and lines[last].rstrip().endswith("}")):
        last += 1
    return Excerpt("\n".join(lines[first:last + 1]))


def _defines(line: str, lines: list[str], n: int) -> str | None:
    """The name that a line at the left margin begins to define, or None."""
    if not re.match(r"[A-Za-z_]", line) or line.startswith(("using", "typedef", "return", "namespace", "extern \"C\" {")):
        return None
    structure = re.match(r"(?:struct|class)\s+(\w+)[^;]*$", line)
    if structure:
        return structure.group(1)
    called = re.search(r"(\w+)\s*\(", re.sub(r"__launch_bounds__\s*\([^()]*(?:\([^()]*\))?[^()]*\)", "", line))
    if not called or called.group(1) in ("defined", "static_assert", "__launch_bounds__"):
        return None
    for following in lines[n:n + 12]:  # a body, not a declaration
        if "{" in following:
            return called.group(1)
        if ";" in following:
            return None
    return None


def _continues(line: str) -> bool:
    """Whether a line is the first half of a definition whose name stands on the next one."""
    return bool(re.match(r"(static|inline|__device__|__forceinline__)\b", line)) and not re.search(r"[;{}]", line)
