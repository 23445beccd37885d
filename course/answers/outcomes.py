"""What became of an answer, as it is told from process to process.

An outcome is a dict: "status"; "reason", a key of `course.checking.model.REASONS` or "";
"lines", what the learner would have read.
"""

import json

from course.checking.model import REASONS

STATUSES = ("solved", "not yet", "broken", "untouched", "not believed")
LINES, LENGTH = 4, 300  # that are kept of an outcome, and of a line


def short(line: str) -> str:
    """The beginning of a line, in characters that can be printed."""
    return "".join(c if c.isprintable() else " " for c in line[:LENGTH])


def valid(text: bytes | str) -> dict | None:
    """The outcome that a text says; None where it says none. Whoever wrote it may be anybody."""
    try:
        found = json.loads(text)
        status, reason, lines = (found[name] for name in ("status", "reason", "lines"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(lines, list) or not all(isinstance(t, str) for t in (status, reason, *lines)):
        return None
    if status not in STATUSES or (reason and (status == "solved" or reason not in REASONS)):
        return None
    return {"status": status, "reason": reason, "lines": [short(line) for line in lines[:LINES]]}
