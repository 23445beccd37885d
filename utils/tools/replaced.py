"""Which file is built in a source's place: the source itself, unless somebody replaces it.

A learner changes kernels of the course in cells: `utils.tools.yours` does that, and is the
`replacer` from its import on. What builds sources asks here, and knows nothing of cells.
"""

from pathlib import Path
from typing import Protocol


class Replacer(Protocol):
    """Whoever puts other files in the place of sources; a module will do."""

    def current(self, path: str | Path) -> Path:
        """The file to build for this one."""

    def note(self, path: str | Path) -> str:
        """What to say where it is built; "" if nothing is replaced."""

    def named(self, log: str) -> str:
        """A compiler's message, with the place of replaced lines."""


replacer: Replacer | None = None


def current(path: str | Path) -> Path:
    """The file to build for this one."""
    return replacer.current(path) if replacer else Path(path)


def note(path: str | Path) -> str:
    """What to say where it is built; "" if nothing is replaced."""
    return replacer.note(path) if replacer else ""


def named(log: str) -> str:
    """A compiler's message, with the place of replaced lines."""
    return replacer.named(log) if replacer else log
