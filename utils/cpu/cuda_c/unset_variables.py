"""Variables of a kernel or function that are used before they have a value, as nvcc warns of them.

g++ and clang++ know them when they compile what the rewrite made; of all that they say only this is
passed on, with the learner's own lines. Where the compiler is not sure, as behind `if (i < n)
v = a[i];`, the source decides: it counts if the first that is done to the variable is not to assign
to it.
"""

import re
from pathlib import Path

#: What asks the compiler for it
GCC_FLAGS = ["-Wuninitialized", "-Wmaybe-uninitialized"]
CLANG_FLAGS = ["-w", "-Wuninitialized", "-Wsometimes-uninitialized"]
_PLACE = r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: "
_WARNING = re.compile(
    _PLACE + r"warning: (variable )?[‘'](?P<name>[^’']*)[’'] (?P<how>is|may be) used uninitialized"
)
_DECLARED = re.compile(_PLACE + r"note: [‘'][^’']*[’'] (was )?declared here")
_ASSIGNS = re.compile(r"\s*(\[[^\]]*\]\s*)*=(?!=)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NOT_THE_LEARNERS = re.compile(r"/cuda_c/(include|runtime)/|^/usr/|^<")


def warnings_in(log: str) -> list[str]:
    """One line for each such variable in a compiler's text: "file:line: warning: ..."."""
    found = []
    pending = None
    for line in log.split("\n"):
        if warning := _WARNING.match(line):
            found += _told(pending, None)
            pending = warning
        elif pending and (declared := _DECLARED.match(line)):
            found += _told(pending, declared)
            pending = None
    found += _told(pending, None)
    return list(dict.fromkeys(found))


def _told(warning: re.Match | None, declared: re.Match | None) -> list[str]:
    places = [place for place in (warning, declared) if place and not _is_ours(place)]
    name = _NAME.match(warning["name"]) if warning else None
    if not places or not name:
        return []
    place = places[0]
    if warning["how"] == "may be" and not _is_read_first(name[0], declared or warning):
        return []
    text = f"`{name[0]}` {warning['how']} used before it has a value"
    if declared and declared["line"] != place["line"]:
        text += f" (line {declared['line']} declares it without one)"
    return [f"{place['file']}:{place['line']}: warning: {text} [uninitialised-local]"]


def _is_read_first(name: str, declared: re.Match) -> bool:
    try:
        lines = Path(declared["file"]).read_text(errors="replace").split("\n")
    except OSError:
        return False
    after = "\n".join(lines[int(declared["line"]) - 1 :])
    uses = list(re.finditer(rf"\b{name}\b", after))
    if len(uses) < 2 or _ASSIGNS.match(after, uses[1].end()):
        return False
    before = after[: uses[1].start()].rstrip()
    is_filled = before.endswith((">>", "&")) and not before.endswith("&&")  # f(&v), in >> v
    return not is_filled


def _is_ours(place: re.Match) -> bool:
    return bool(_NOT_THE_LEARNERS.search(place["file"]))
