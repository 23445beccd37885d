"""The entries of glossary.md, one a line: its names, one sentence, and where the word is taught.

- **name** (other names): one sentence. [Chapter · Heading](../chapters/NN_x.ipynb#cell-id=ID)
"""

import functools
import re
from dataclasses import dataclass

from utils.files import ROOT

FILE = ROOT / "course" / "glossary.md"
# The links name cells, which JupyterLab and pages made by nbconvert both find; headings with a "·"
# JupyterLab does not.
LINE = re.compile(
    r"- \*\*(.+?)\*\*(?: \((.+?)\))?: (.+) "
    r"\[(.+?) · ([^\]]+)\]\(\.\./chapters/(\w+)\.ipynb#cell-id=([\w-]+)\)"
)


@dataclass(frozen=True)
class Entry:
    """A word of the field. chapter: the name of the notebook that teaches it; cell: an id there."""

    name: str
    others: tuple[str, ...]
    means: str
    title: str
    heading: str
    chapter: str
    cell: str

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the thing, the usual one first."""
        return self.name, *self.others

    @property
    def anchor(self) -> str:
        """The entry's id on the website's page."""
        return "term-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


@functools.cache
def read(line: str) -> Entry | None:
    """The entry in a line; None where it is not written as one."""
    match = LINE.fullmatch(line)
    if not match:
        return None
    name, others, *rest = match.groups()
    return Entry(name, tuple(others.split(", ")) if others else (), *rest)


def entries() -> list[Entry]:
    """All entries, in the order of the file."""
    found = map(read, FILE.read_text(encoding="utf-8").splitlines())
    return [entry for entry in found if entry]
