"""What is still to be sent to the board, kept on disk until the board has it.

SQLite keeps it, so that several notebooks of one learner can write at once and a kernel that is
killed loses nothing. Nothing here raises: a full disk must not break a learner's cell.
"""

import contextlib
import json
import sqlite3
import uuid

from course import progress
from course.classroom import membership

PATIENCE = 0.2  # seconds that a cell may wait for another notebook that writes
MOST = 5000  # events kept while the board is away; the oldest go first
BATCH = 200  # events sent at once


@contextlib.contextmanager
def _opened():
    """The open outbox, in one transaction."""
    path = membership.file().with_name("to_the_board.sqlite")
    path.parent.mkdir(parents=True, exist_ok=True)
    box = sqlite3.connect(path, timeout=PATIENCE)
    try:
        # The kernel's own end loses nothing so, and no cell waits for the disk
        box.execute("PRAGMA synchronous=OFF")
        box.execute(
            "CREATE TABLE IF NOT EXISTS events"
            " (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT, event TEXT)"
        )
        with box:
            yield box
    finally:
        box.close()


def add(kind: str, what: dict) -> bool:
    """Keep an event until it is sent; whether that worked."""
    id = uuid.uuid4().hex
    event = json.dumps({"id": id, "at": progress.moment(), "kind": kind, **what}, default=str)
    try:
        with _opened() as box:
            box.execute("INSERT INTO events (id, event) VALUES (?, ?)", (id, event))
            box.execute(
                "DELETE FROM events WHERE number <= (SELECT MAX(number) FROM events) - ?", (MOST,)
            )
    except (sqlite3.Error, OSError):
        return False
    return True


def waiting() -> list[dict]:
    """The oldest events that wait, BATCH at most."""
    try:
        with _opened() as box:
            rows = box.execute("SELECT event FROM events ORDER BY number LIMIT ?", (BATCH,))
            return [json.loads(event) for (event,) in rows]
    except (sqlite3.Error, OSError):
        return []


def sent(events: list[dict]) -> None:
    """Forget events that the board has; where that fails they are sent again, which harms not."""
    with contextlib.suppress(sqlite3.Error, OSError), _opened() as box:
        box.executemany("DELETE FROM events WHERE id = ?", [(event["id"],) for event in events])


def empty() -> None:
    """Forget everything that waits."""
    with contextlib.suppress(sqlite3.Error, OSError), _opened() as box:
        box.execute("DELETE FROM events")
