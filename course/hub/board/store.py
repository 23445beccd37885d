"""What the board keeps, in one SQLite file that nobody else can read.

Learners are kept as numbers; an account's name is kept only of those who agreed to show it. By a
key of the class's own the board finds the number again when somebody comes back, and without
that key, which goes with the class, nobody can tell whose number it was.
"""

import contextlib
import hmac
import os
import secrets
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from course.hub.board.events import Event

TABLES = """
CREATE TABLE IF NOT EXISTS class (key TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS learners (
    number INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT UNIQUE NOT NULL, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    id TEXT PRIMARY KEY, learner INTEGER NOT NULL REFERENCES learners ON DELETE CASCADE,
    at TEXT NOT NULL, kind TEXT NOT NULL, chapter TEXT NOT NULL, cell TEXT NOT NULL,
    subject TEXT NOT NULL, answer, detail);
CREATE TABLE IF NOT EXISTS wall (
    one INTEGER PRIMARY KEY CHECK (one = 1), chapter TEXT, subject TEXT, shown INTEGER);
CREATE INDEX IF NOT EXISTS of_learner ON events (learner, kind);
"""
MOST_EVENTS = 20_000  # of one learner: who sends more, by hand, fills nobody's disk


class Store:
    """The board's file. All methods answer at once: a class writes some events each second."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self.db = sqlite3.connect(path)
        self.db.executescript("PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON;" + TABLES)
        self.db.execute("PRAGMA secure_delete=ON")
        with self.db:
            if self.db.execute("SELECT COUNT(*) FROM class").fetchone() == (0,):
                self.db.execute("INSERT INTO class VALUES (?)", (secrets.token_hex(32),))

    def close(self) -> None:
        self.db.close()

    def class_id(self) -> str:
        """What this class is called: another once the board has forgotten it. No secret."""
        return self._person("")[:16]

    def cookie_secret(self) -> str:
        """What pages' cookies are signed with: they outlive the board's process, and no class."""
        return self._person("\n")  # which is in no account's name

    def join(self, account: str, named: bool) -> int:
        """Take a learner in, or change whether their name is shown; their number."""
        name = account if named else ""
        with self.db:
            self.db.execute(
                "INSERT INTO learners (person, name) VALUES (?, ?)"
                " ON CONFLICT (person) DO UPDATE SET name = excluded.name",
                (self._person(account), name),
            )
        return self.number(account)

    def number(self, account: str) -> int | None:
        """A learner's number; None for who has not joined."""
        row = self.db.execute(
            "SELECT number FROM learners WHERE person = ?", (self._person(account),)
        ).fetchone()
        return row[0] if row else None

    def leave(self, account: str) -> None:
        """Delete everything that is kept of a learner."""
        with self.db:
            self.db.execute("DELETE FROM learners WHERE person = ?", (self._person(account),))
        self._forget_deleted()

    def add(self, number: int, events: list[Event]) -> None:
        """Keep a learner's events; one that is kept already is not kept twice."""
        with self.db:
            (kept,) = self.db.execute(
                "SELECT COUNT(*) FROM events WHERE learner = ?", (number,)
            ).fetchone()
            for each in events[: max(0, MOST_EVENTS - kept)]:
                if each.kind == "place":  # only where somebody is now
                    self.db.execute(
                        "DELETE FROM events WHERE learner = ? AND kind = 'place' AND at <= ?",
                        (number, each.at),
                    )
                self.db.execute(
                    "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        each.id,
                        number,
                        each.at,
                        each.kind,
                        each.chapter,
                        each.cell,
                        each.subject,
                        each.answer,
                        each.detail,
                    ),
                )

    def learners(self) -> dict[int, str]:
        """{number: name, "" of who shows none}."""
        return dict(self.db.execute("SELECT number, name FROM learners ORDER BY number"))

    def events(self, kind: str = "%", subject: str = "%") -> list[tuple[int, Event]]:
        """(learner's number, event), from the oldest on; of one kind, and on one subject."""
        rows = self.db.execute(
            "SELECT learner, id, at, kind, chapter, cell, subject, answer, detail FROM events"
            " WHERE kind LIKE ? AND (? = '%' OR subject = ?) ORDER BY at, rowid",
            (kind, subject, subject),
        )
        return [(learner, Event(*row)) for learner, *row in rows]

    def heard(self, number: int) -> None:
        """The instructor has been with a learner who asked for help."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        event = Event(secrets.token_hex(16), now, "help", "", answer="no")
        self.add(number, [event])

    def show(self, chapter: str, subject: str) -> None:
        """Put a question on the wall; "" takes it away. Its answer is hidden at first."""
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO wall VALUES (1, ?, ?, 0)", (chapter, subject))

    def reveal(self, shown: bool) -> None:
        """Show, or hide, the answer to what is on the wall."""
        with self.db:
            self.db.execute("UPDATE wall SET shown = ?", (int(shown),))

    def wall(self) -> tuple[str, str, bool]:
        """(chapter, cell or quiz, whether its answer is shown) of what is on the wall."""
        row = self.db.execute("SELECT chapter, subject, shown FROM wall").fetchone()
        chapter, subject, shown = row or ("", "", 0)
        return chapter, subject, bool(shown)

    def forget(self) -> None:
        """Delete the class: learners, events, and the key by which accounts became numbers."""
        with self.db:
            for table in ("events", "learners", "class", "wall"):
                self.db.execute(f"DELETE FROM {table}")
            self.db.execute("DELETE FROM sqlite_sequence")
            self.db.execute("INSERT INTO class VALUES (?)", (secrets.token_hex(32),))
        self._forget_deleted()

    def _person(self, account: str) -> str:
        """What stands for an account."""
        (key,) = self.db.execute("SELECT key FROM class").fetchone()
        return hmac.digest(bytes.fromhex(key), account.encode(), "sha256").hex()

    def _forget_deleted(self) -> None:
        """Have nothing of what was deleted left in the files, as far as SQLite can say."""
        with contextlib.suppress(sqlite3.OperationalError):  # another connection reads
            self.db.execute("VACUUM")
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
