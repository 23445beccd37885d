"""What the learner has solved and predicted, kept as JSON in the user's own data folder.

The file is read tolerantly, merged with what another notebook has written meanwhile, and replaced
in one step, so that nothing solved is ever lost. A file that is there and cannot be read is left
alone: only "not there" counts as empty. `CUDA_COURSE_PROGRESS` names another file.
"""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from utils.files import write_whole

SECTIONS = ("exercises", "quizzes", "predictions")
PATIENCE = 10  # seconds to wait for another notebook that is writing
# Until November 2026 ids began with the chapter's number of that time.
OLD_NUMBERS = {
    "00": "start",
    "01": "ecosystem",
    "02": "your_gpu",
    "03": "c_for_cuda",
    "04": "meet_the_gpu",
    "05": "first_kernels",
    "06": "memory",
    "07": "synchronization",
    "08": "profiling",
    "10": "matmul",
    "16": "mnist_cnn",
    "17": "beating_pytorch",
}
# What could not be written: shown all the same, and written as soon as that works again.
_unsaved = {section: {} for section in SECTIONS}


def file():
    """The progress file's path."""
    given = os.environ.get("CUDA_COURSE_PROGRESS")
    return (
        Path(given).expanduser()
        if given
        else Path(platformdirs.user_data_dir("cuda-course")) / "progress.json"
    )


def load():
    """{"exercises": {id: time solved}, "quizzes": {id: time}, "predictions": {time: what was said
    and what it was}}. A missing file is empty progress; a corrupt one is set aside as .bak with a
    warning.
    """
    try:
        found = _read(file())
    except OSError as error:
        _warn(f"your progress in {file()} cannot be read ({error.strerror}).")
        found = _empty()
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


def record_prediction(when, said):
    """Keep a prediction with what it turned out to be; one of the same time is replaced.

    said: a dict with "guess" and "was" in one unit, or with "right".
    """
    _record("predictions", when, said)


def moment():
    """Now, as it is kept."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _empty():
    return {section: {} for section in SECTIONS}


def _read(path):
    """What the file holds. Raises OSError if it is there and cannot be read: what is in it must not
    be overwritten then.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return _empty()
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or not all(isinstance(data.get(s, {}), dict) for s in SECTIONS):
        _set_aside(path)
        return _empty()
    # Sections that this version does not know (of a newer one) are kept as they are.
    return {**data, **{s: _renamed(data.get(s, {})) for s in SECTIONS}}


def _renamed(section):
    """Ids of old bear the chapter's number, today's its name: "05.rotate" is
    "first_kernels.rotate".
    """
    renamed = {}
    for id, when in section.items():
        number, _, rest = id.partition(".")
        chapter = OLD_NUMBERS.get(number)
        renamed[f"{chapter}.{rest}" if chapter else id] = when
    return renamed


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


def _record(section, id, said=None):
    """Keep the date of `id` unless one is kept; or what is `said` of it."""
    path = file().resolve()  # a link stays one: the file that it names is replaced
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(
            f"{path}.lock", timeout=PATIENCE
        ):  # one notebook at a time reads, merges and writes
            data = _read(path)
            for name in SECTIONS:
                data[name] = {**_unsaved[name], **data[name]}
            data[section][id] = said or data[section].get(id, now)
            write_whole(path, json.dumps(data, indent=1, sort_keys=True))
    except Timeout:
        _keep(section, id, said or now, path, "another notebook holds it")
    except OSError as error:
        _keep(section, id, said or now, path, error.strerror)
    else:
        for name in SECTIONS:
            _unsaved[name].clear()


def _keep(section, id, said, path, reason):
    _unsaved[section].setdefault(id, said)
    _warn(
        f"your progress could not be saved to {path} ({reason}); it is kept until this notebook "
        "closes. Set CUDA_COURSE_PROGRESS to a file that you may read and write."
    )


def _warn(message):
    print(f"Note: {message}", file=sys.stderr)
