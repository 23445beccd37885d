"""The learner's half: one line in a notebook that writes one file."""

import getpass
import html
import os
import re
from dataclasses import dataclass
from pathlib import Path

from course.copies import answers, workspace


@dataclass(frozen=True)
class HandedIn:
    """What was written. chapters: {chapter's key: how many cells of the learner's}."""

    path: Path
    chapters: dict[str, int]

    def __repr__(self):
        if not self.chapters:
            return "Nothing to hand in yet: no cell differs from the course's. Saved (Ctrl + S)?"
        cells = ", ".join(f"{key} {count}" for key, count in self.chapters.items())
        return (
            f"{self.path} holds your answers as they are saved now (cells: {cells}). "
            "Send or upload this one file."
        )

    def _repr_html_(self):
        if not self.chapters:
            return html.escape(repr(self))
        place = os.path.relpath(self.path)
        link = f'<a href="{html.escape(place)}" download>{html.escape(self.path.name)}</a>'
        return f"<p>{html.escape(repr(self))}<br>{link}</p>"


def hand_in(name: str | None = None, folder: Path | None = None) -> HandedIn:
    """Write all cells that the learner changed, as they are saved, into one file in their copy of
    the course.

    name: of the learner, which becomes the file's; unless given, the account's. folder: of the
    copy; unless given, the one in which the notebook lies. ValueError where there is none.
    """
    folder = folder or own_copy()
    who = name or os.environ.get("JUPYTERHUB_USER") or getpass.getuser()
    slug = re.sub(r"[^\w@. -]+", "_", who).strip(". ") or "me"
    path = folder / f"answers_{slug}.json"
    found = answers.answers(folder)
    if found:
        answers.export(path, folder)
    return HandedIn(path, {key: len(cells) for key, cells in found.items()})


def own_copy() -> Path:
    """The copy of the course that the working folder lies in, or the one that `make lab` makes."""
    here = Path.cwd()
    for folder in (here, *here.parents, workspace.MINE):
        if (folder / workspace.MADE_FROM).is_dir():
            return folder
    raise ValueError(
        "there is no copy of the course here (make lab makes one); hand in your notebooks as they "
        "are, the .ipynb files"
    )
