"""Make the learner's copies, and renew them when the course has changed.

Beside each copy the version that it was made from is kept (`my/.made_from`). By it one sees what
the learner changed; what they did not is simply replaced. Whatever else a renewal would drop is
kept first, in `my/before`.
"""

import contextlib
import os
from datetime import date
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from course.chapters import notebooks
from course.copies.merge import Merged, changed_cells, merge
from utils.files import ROOT, write_whole

MINE = ROOT / "my"
MADE_FROM = ".made_from"
BEFORE = "before"
# What chapters link to, besides each other, and how they look when they are presented
LINKED = "assets", "tests", "utils", "README.md", "chapters/rise.css"
UNREADABLE = (ValueError, AttributeError, TypeError, KeyError)  # what a torn notebook raises


def refresh(folder: Path = MINE) -> list[str]:
    """Make or renew all copies in `folder`; says in a line each what was done to the learner's own.

    Nothing that they wrote is lost: their cells move into the newer chapter, and the copy as it was
    is kept. Safe to stop at any moment and to start again.
    """
    said = []
    for original in notebooks():
        place = original.relative_to(ROOT)
        _follow_new_name(folder, place)
        said += _renew(folder, place, original.read_bytes())
    _link(folder)
    return said


def pairs(folder: Path = MINE):
    """(place, copy, what it was made from) of every copy, place being chapters/05_….ipynb."""
    for original in notebooks():
        place = original.relative_to(ROOT)
        copy = folder / place
        made_from = folder / MADE_FROM / place
        if copy.is_file() and made_from.is_file():
            yield place, copy, made_from


def keep_aside(folder: Path, copy: Path, content: bytes) -> Path:
    """Keep content in my/before under the copy's name and today's date; where it is."""
    kept = folder / BEFORE / f"{copy.stem}_{date.today()}{copy.suffix}"
    number = 1
    while kept.exists() and kept.read_bytes() != content:
        number += 1
        kept = kept.with_name(f"{copy.stem}_{date.today()}_{number}{copy.suffix}")
    write_whole(kept, content)
    return kept


def notebook(content: bytes):
    """The notebook in a file's content, whose cells all have ids. ValueError and the like for what
    is none.
    """
    read = nbformat.reads(content.decode(), 4)
    if not all(isinstance(cell.id, str) for cell in read.cells):
        raise ValueError("cells without ids")
    if not read.cells:
        raise ValueError("no cells")
    return read


def _renew(folder, place, new):
    """Bring one copy up to date; what to tell the learner, in lines."""
    copy = folder / place
    base = folder / MADE_FROM / place
    was = base.read_bytes() if base.is_file() else None
    mine = copy.read_bytes() if copy.is_file() else None
    if mine is not None and was == new:
        return []
    _trust(new)
    said = []
    if mine not in (None, was, new):
        new_copy, said = _with_the_learners(folder, copy, was, mine, new)
        write_whole(copy, new_copy)
    elif mine != new:
        write_whole(copy, new)
    write_whole(base, new)
    return said


def _with_the_learners(folder, copy, was, mine, new):
    """(the new chapter with what the learner wrote, what to tell them)."""
    try:
        theirs = notebook(mine)
        made_from = notebook(was or new)
        touched = changed_cells(made_from, theirs)
        merged = merge(made_from, theirs, notebook(new))
    except UNREADABLE:
        kept = keep_aside(folder, copy, mine)
        return new, [f"{copy.name} could not be read: it is kept as {_short(kept)}, and a new one"]
    written = nbformat.writes(merged.notebook) + "\n"
    _sign(theirs, merged)
    if not touched:
        return written.encode(), []
    kept = keep_aside(folder, copy, mine)
    return written.encode(), [_says(copy, merged, kept)]


def _says(copy, merged: Merged, kept):
    """What a learner is told of one renewed chapter."""
    cells = "cell" if len(merged.kept) == 1 else "cells"
    line = f"{copy.name} is renewed; {len(merged.kept)} {cells} of yours stayed"
    if merged.both_changed:
        line += f" (the course changed {len(merged.both_changed)} of them, too)"
    return f"{line}. As it was: {_short(kept)}"


def _short(path):
    """A path as the learner knows it."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _trust(content):
    """Sign what the course itself brings: else JupyterLab would show none of its sliders.

    What an untrusted notebook saved of widgets and HTML is not run; see "Security in notebook
    documents" in Jupyter's documentation.
    """
    with contextlib.suppress(OSError):  # Jupyter's own folder cannot be written: it asks again
        notary = NotebookNotary()
        notary.sign(nbformat.reads(content.decode(), 4))
        notary.store.close()


def _sign(theirs, merged):
    """Trust what was trusted: Jupyter signs a notebook's content."""
    try:
        notary = NotebookNotary()
        if notary.check_signature(theirs):
            notary.sign(merged.notebook)
        notary.store.close()
    except OSError:
        pass  # Jupyter's own folder cannot be written: it asks again


def _follow_new_name(folder, place):
    """A chapter that has another number now: the copy of the old name moves."""
    key = place.stem.partition("_")[2]
    if (folder / place).exists() or not key:
        return
    known = {path.stem for path in notebooks()}
    for old in sorted((folder / MADE_FROM / place.parent).glob(f"[0-9][0-9]_{key}.ipynb")):
        copy = folder / place.parent / old.name
        if old.stem not in known and copy.is_file():
            old.replace(folder / MADE_FROM / place)
            copy.replace(folder / place)
            return


def _link(folder):
    """Link what is not copied, so that paths in the copies lead where they lead in the originals.

    Links are relative inside the course's own folder, which may move.
    """
    entries = [path for path in (ROOT / "course").iterdir() if path.suffix != ".ipynb"]
    wanted = [ROOT / name for name in LINKED] + entries
    for target in wanted:
        if target.name.startswith((".", "__")) or not target.exists():
            continue
        link = folder / target.relative_to(ROOT)
        inside = folder.is_relative_to(ROOT)
        to = os.path.relpath(target, link.parent) if inside else str(target)
        if link.is_symlink() and os.readlink(link) != to:
            link.unlink()
        if not inside and target.suffix == ".md":  # JupyterLab opens nothing outside its folder
            write_whole(link, target.read_bytes())
        elif not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(to)
    for link in folder.glob("course/*"):
        if link.is_symlink() and not link.exists():
            link.unlink()
