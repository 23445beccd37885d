"""Whether this learner has joined the class: a file of theirs, beside their progress."""

import json
import os
from pathlib import Path

from course import progress
from utils.files import write_whole

BOARD = "CUDA_COURSE_BOARD"  # the board's address, which the Hub gives each server
TOKEN = "JUPYTERHUB_API_TOKEN"  # by which the board learns from the Hub who sends


def board() -> str:
    """The address of the class's board, with a slash at its end; "" where there is no class."""
    address = os.environ.get(BOARD, "")
    return address if address.startswith(("http://", "https://")) else ""


def file() -> Path:
    """Where it is noted that the learner joined."""
    return progress.file().with_name("class.json")


def joined() -> bool:
    """Whether the learner joined this class. Another notebook may have done so."""
    return bool(board()) and _noted().get("board") == board()


def named() -> bool:
    """Whether the learner agreed to show their account's name."""
    return _noted().get("named") is True


def class_id() -> str:
    """What the board called the class when it took the learner in; "" before it did."""
    return str(_noted().get("class", ""))


def label() -> str:
    """What the learner is called on the board, "learner 17" or a name; "" before it said so."""
    return str(_noted().get("label", ""))


def join(named: bool, class_id: str = "", label: str = "") -> None:
    """Note that the learner joins; named: under the account's name."""
    noted = {"board": board(), "named": named, "class": class_id, "label": label}
    write_whole(file(), json.dumps(noted))


def _noted():
    try:
        noted = json.loads(file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def leave() -> None:
    """Forget that the learner joined."""
    file().unlink(missing_ok=True)
