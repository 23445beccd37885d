"""What the learner has solved, kept as JSON in the user's own data folder.

The file is read tolerantly, merged with what another notebook has written meanwhile, and replaced
in one step, so that nothing solved is ever lost. `CUDA_COURSE_PROGRESS` names another file.
"""

import contextlib
import html
import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from course.chapters import CHAPTERS

SECTIONS = ("exercises", "quizzes")
# What could not be written: shown all the same, and written as soon as that works again.
_unsaved = {section: {} for section in SECTIONS}


def file():
    """The progress file's path."""
    given = os.environ.get("CUDA_COURSE_PROGRESS")
    return Path(given) if given else Path(platformdirs.user_data_dir("cuda-course")) / "progress.json"


def load():
    """{"exercises": {id: time solved}, "quizzes": {id: time}}. A missing file is empty progress; a corrupt
    one is set aside as .bak with a warning."""
    found = _read(file())
    return {section: {**found[section], **_unsaved[section]} for section in SECTIONS}


def solved():
    """The ids of the exercises that are solved."""
    return set(load()["exercises"])


def record_solved(id):
    """Note that an exercise is solved. Its first date is kept."""
    _record("exercises", id)


def record_quiz(id):
    """Note that a question was answered right."""
    _record("quizzes", id)


def _read(path):
    empty = {section: {} for section in SECTIONS}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return empty
    except OSError as error:
        _warn(f"your progress in {path} cannot be read ({error.strerror}).")
        return empty
    except ValueError:
        data = None
    if not isinstance(data, dict) or not all(isinstance(data.get(s, {}), dict) for s in SECTIONS):
        _set_aside(path)
        return empty
    # Sections that this version does not know (of a newer one) are kept as they are.
    return {**data, **{s: data.get(s, {}) for s in SECTIONS}}


def _set_aside(path):
    """Keep a corrupt file under a name of its own, without overwriting an earlier one."""
    kept = path.with_name(path.name + ".bak")
    number = 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}.bak{number}")
    try:
        path.rename(kept)
    except OSError as error:
        _warn(f"the progress file {path} is corrupt and cannot be set aside ({error.strerror}).")
    else:
        _warn(f"the progress file was corrupt; it is kept as {kept}, and a new one is started.")


def _record(section, id):
    path = file()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            data = _read(path)
            for name in SECTIONS:
                data[name] = {**_unsaved[name], **data[name]}
            data[section].setdefault(id, now)
            _replace(path, data)
    except OSError as error:
        _unsaved[section].setdefault(id, now)
        _warn(
            f"your progress could not be saved to {path} ({error.strerror}); it is kept until this notebook"
            " closes. Set CUDA_COURSE_PROGRESS to a file that you may write."
        )
    else:
        for name in SECTIONS:
            _unsaved[name].clear()


@contextlib.contextmanager
def _locked(path):
    """Only one notebook at a time reads, merges and writes."""
    import fcntl

    with open(path.with_name(path.name + ".lock"), "w") as lock:
        # Some network drives cannot lock; the atomic replace still keeps the file whole there.
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace(path, data):
    """Write beside the file, then put it in place in one step: a crash leaves the old file whole."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            json.dump(data, out, indent=1, sort_keys=True)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _warn(message):
    print(f"Note: {message}", file=sys.stderr)


# ---- the map ----


class ChapterMap:
    """All chapters with what is written and what is solved, for a notebook or a terminal."""

    def __init__(self, links="../chapters/"):
        self.links = links
        self.done = solved()

    def _state(self, chapter):
        """(mark, words) for a chapter."""
        total = len(chapter.exercises)
        done = sum(e in self.done for e in chapter.exercises)
        if not chapter.written:
            return "·", "not written yet"
        if not total:
            return "▷", "no exercises"
        return ("✓" if done == total else "◐" if done else "○"), f"{done} of {total} exercises solved"

    def __repr__(self):
        lines = []
        for chapter in CHAPTERS:
            mark, words = self._state(chapter)
            lines.append(
                f"{mark} {chapter.number:02d} {chapter.title} ({chapter.minutes} min) · {words}\n"
                f"     {chapter.brings}"
            )
        return "\n".join(lines)

    def _repr_html_(self):
        rows = "".join(self._row(chapter) for chapter in CHAPTERS)
        written = sum(c.written for c in CHAPTERS)
        ids = {e for c in CHAPTERS for e in c.exercises}
        head = (
            f"{len(self.done & ids)} of {len(ids)} exercises solved · {written} of {len(CHAPTERS)} chapters"
            " written"
        )
        cell = "text-align:left;padding:2px 14px 2px 0"
        return (
            f"<p><strong>{head}</strong></p><table><thead><tr><th style='{cell}'>Chapter</th><th"
            f" style='{cell}'>What it brings</th><th style='{cell}'>Minutes</th><th"
            f" style='{cell}'>You</th></tr></thead><tbody>{rows}</tbody></table>"
        )

    def _row(self, chapter):
        mark, words = self._state(chapter)
        name = f"{chapter.number:02d} {html.escape(chapter.title)}"
        fade = "" if chapter.written else "opacity:0.55;"
        if chapter.written:
            name = f"<a href='{self.links}{chapter.file}'><strong>{name}</strong></a>"
        dots = "".join("●" if e in self.done else "○" for e in chapter.exercises) if chapter.written else ""
        you = f"<span aria-hidden='true'>{dots or mark}</span> {words}"
        cell = f"style='{fade}text-align:left;vertical-align:top;padding:4px 14px 4px 0'"
        return (
            f"<tr><td {cell}>{name}</td><td {cell}>{html.escape(chapter.brings)}</td>"
            f"<td {cell}>{chapter.minutes}</td><td {cell}>{you}</td></tr>"
        )
