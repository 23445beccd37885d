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


def chapter_map():
    """The map of all chapters with what is written and what you have solved."""
    return ChapterMap(solved())


class ChapterMap:
    """All chapters, for a notebook (cards) or a terminal (text). `links` leads to the notebooks."""

    def __init__(self, done, links="../chapters/"):
        self.done, self.links = done, links

    def headline(self):
        """One line: how much is solved."""
        from course.exercises import EXERCISES

        written = sum(chapter.written for chapter in CHAPTERS)
        return (
            f"{len(self.done & set(EXERCISES))} of {len(EXERCISES)} exercises solved · "
            f"{written} of {len(CHAPTERS)} chapters written so far"
        )

    def state(self, chapter):
        """What to say of a chapter: (a mark for each exercise, words)."""
        if not chapter.written:
            return "", "not written yet"
        marks = "".join("●" if e in self.done else "○" for e in chapter.exercises)
        return marks, f"{marks.count('●')} of {len(marks)} exercises solved" if marks else "no exercises"

    def __repr__(self):
        lines, part = [self.headline()], None
        for chapter in CHAPTERS:
            if chapter.part != part:
                part = chapter.part
                lines += ["", part]
            marks, words = self.state(chapter)
            lines.append(
                f"  {chapter.number:02d} {chapter.title:25}{chapter.minutes:4} min  {marks} {words}".rstrip()
            )
        return "\n".join(lines)

    def _repr_html_(self):
        parts = [f"<p><strong>{self.headline()}</strong></p>"]
        for part in dict.fromkeys(chapter.part for chapter in CHAPTERS):
            cards = "".join(self._card(chapter) for chapter in CHAPTERS if chapter.part == part)
            parts.append(f"<h4 style='margin:14px 0 6px'>{part}</h4><div style='{GRID}'>{cards}</div>")
        return "".join(parts)

    def _card(self, chapter):
        marks, words = self.state(chapter)
        title = f"{chapter.number:02d} · {html.escape(chapter.title)}"
        style = CARD
        if chapter.written:
            title = f"<a href='{self.links}{chapter.path.name}'>{title}</a>"
        else:
            style += "border-style:dashed;opacity:0.7;"
        dots = f"<span aria-hidden='true' style='letter-spacing:2px'>{marks}</span> " if marks else ""
        return (
            f"<div style='{style}'><strong>{title}</strong><br>{html.escape(chapter.brings)}<br>"
            f"<small>{chapter.minutes} min · {dots}{words}</small></div>"
        )


GRID = "display:grid;grid-template-columns:repeat(auto-fill,minmax(200px,1fr));gap:8px;max-width:1000px"
CARD = "border:1px solid #8888;border-radius:6px;padding:8px 12px;line-height:1.45;"
