"""Places in a queue: one file for each request, in a folder that everybody may write to.

Who is before whom follows from what the kernel says of these files, and of no clock or number that
a learner could set:

owner   the user who made the file. The folder has the sticky bit, as /tmp has: nobody removes or
        renames another's file.
drawn   the file's time of change (ctime), which the kernel sets when the file gets its name. An
        owner can only make it later.
alive   the owner's process holds a lock on the file, which the kernel drops when that process ends,
        however it ends. Others may not write to the file, so they cannot hold such a lock.

seen    the time of change of another file of the owner's, touched at each look at the queue: who is
        stopped (Ctrl-Z), or sleeps, looks no more.

An old file can be locked late, as if its owner had waited all the time. Therefore everybody notes
who is there just before they draw: who is not is behind them, whatever their file says. The kernel
may give two files the same time, so an arrival takes a TICK, in which those count as well who drew
meanwhile: who is not there after it gets a later time. A user's second request draws anew once the
first one has left. Who has not looked for a while, whom others may have passed over, takes a new
ticket. Who has a turn marks it with another file, so that those who come later know since when.
"""

import contextlib
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from filelock import FileLock

TICKET, TURN, SEEN, NEW = ".ticket", ".turn", ".seen", ".new"
#: Nanoseconds within which the kernel may give two files the same time (100 ticks a second)
TICK = 12_000_000
#: Seconds without a look after which others pass over who waits, and after which one goes to the
#: end oneself: sooner, so that nobody starts whom others believe to be stopped
STOPPED, LATE = 4.0, 2.5
#: Seconds to wait for another process of the same user that is drawing
PATIENCE = 5

#: Names of this process's own tickets. Its own locks never stop it, and to open and close such a
#: file would give up the lock (fcntl(2)).
_held: set[str] = set()


class NoQueue(Exception):
    """The folder cannot be used as a queue; says why."""


class Late(Exception):
    """One has not looked for so long that others may have passed one over: draw a new ticket."""


@dataclass(frozen=True)
class Ticket:
    """One request that waits, or that has its turn.

    owner: user id. drawn: nanoseconds, the kernel's. inode: decides between equal times.
    started: since when it has its turn, in seconds since the epoch; None while it waits. seen: when
    its owner looked at the queue last.
    """

    name: str
    owner: int
    drawn: int
    inode: int
    started: float | None = None
    seen: float | None = None


def make_folder(path: str | Path) -> Path:
    """Make the queue's folder, or put its permissions right. For an account that is no learner's:
    who owns the folder may remove all that lies in it.
    """
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o1777)
    return path


def checked(path: str | Path) -> Path:
    """The folder, if several users can queue in it. Raises NoQueue."""
    path = Path(path)
    try:
        facts = path.stat()
    except OSError as error:
        raise NoQueue(f"{path} cannot be read ({error.strerror})") from None
    if not stat.S_ISDIR(facts.st_mode):
        raise NoQueue(f"{path} is not a folder")
    if facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX:
        raise NoQueue(f"{path} lacks the sticky bit, so anybody could remove anybody's place")
    if not os.access(path, os.W_OK | os.X_OK):
        raise NoQueue(f"{path} may not be written to")
    return path


# ---- one's own


class Place:
    """A ticket of one's own: in the queue from its making until `leave`.

    device: the GPU that one queues for.
    """

    def __init__(self, folder: Path, device: str):
        self.folder = folder
        self.device = device
        self.maker = os.getpid()
        self.second = False  # whether one's own earlier request was seen before it
        with _one_of_mine():
            since = f"{_after_mine(folder):020}-{self.maker}-{secrets.token_hex(4)}"
            self.name = f"{_plain(device)}.{since}{TICKET}"
            self.path = folder / self.name
            self._look_round()
            self.handle = self._draw()
            self.drawn = time.monotonic_ns()

    def _look_round(self) -> None:
        """Note who is there before one draws, and when that was."""
        self.before, self.looked = time.time_ns(), time.monotonic()
        self.there = present(self.folder, self.device).keys()

    def _draw(self) -> int:
        """Make the file, locked, and only then give it its name; the open file."""
        new = self.path.with_suffix(NEW)
        handle = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(handle, 0o644)
            _held.add(self.name)
            os.rename(new, self.path)  # in the queue, and the kernel notes when
        except BaseException:
            _held.discard(self.name)
            os.close(handle)
            new.unlink(missing_ok=True)
            raise
        return handle

    def draw_again(self) -> None:
        """Go to the end of the queue."""
        self._look_round()
        os.fchmod(self.handle, 0o644)  # the kernel notes the time
        self.drawn = time.monotonic_ns()
        self.second = False

    def arrive(self) -> None:
        """Wait until whoever draws from now on gets a later time."""
        time.sleep(1e-9 * max(0, self.drawn + TICK - time.monotonic_ns()))

    def beat(self) -> None:
        """Show that the owner looks at the queue."""
        with contextlib.suppress(OSError):
            flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self.path.with_suffix(SEEN), flags, 0o644)
            try:
                os.utime(handle)
            finally:
                os.close(handle)

    def mark(self) -> None:
        """Say that the turn begins."""
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path.with_suffix(TURN), flags, 0o644))

    def leave(self) -> None:
        """Leave the queue. In a copy of the process that drew the ticket nothing happens."""
        if self.maker != os.getpid() or self.name not in _held:
            return
        for path in (self.path, self.path.with_suffix(TURN), self.path.with_suffix(SEEN)):
            with contextlib.suppress(OSError):  # somebody cleared the folder
                path.unlink()
        os.close(self.handle)
        _held.discard(self.name)


@contextlib.contextmanager
def _one_of_mine() -> Iterator[None]:
    """One process of a user at a time: then they agree in which order they came."""
    path = Path(platformdirs.user_cache_dir("cuda-course")) / "gpu_queue.lock"
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # Timeout is one, too. Then the order may be another.
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(path, timeout=PATIENCE))
        yield


def _after_mine(folder: Path) -> int:
    """A number behind those of one's other requests: now, in nanoseconds, if the clock went on."""
    latest = 0
    for entry in os.scandir(folder):
        number = re.match(r"[A-Za-z0-9-]+\.(\d{20})-", entry.name)
        with contextlib.suppress(OSError):
            if number and entry.stat(follow_symlinks=False).st_uid == os.getuid():
                latest = max(latest, int(number[1]))
    return max(time.time_ns(), latest + 1)


# ---- all


def present(folder: Path, device: str) -> dict[str, Ticket]:
    """{name: ticket} of all who are alive; of those who are not, one's own files are removed."""
    found = {}
    for name in _names(folder, device):
        path = folder / name
        ticket, alive = _read(path)
        if ticket is None:
            continue
        if alive:
            found[name] = ticket
        elif ticket.owner == os.getuid():
            for left in (path, path.with_suffix(TURN), path.with_suffix(SEEN)):
                with contextlib.suppress(OSError):
                    left.unlink()
    return found


def _names(folder: Path, device: str) -> list[str]:
    """The names of all tickets for a device."""
    start = _plain(device) + "."
    return [n for n in os.listdir(folder) if n.startswith(start) and n.endswith(TICKET)]


def _plain(device: str) -> str:
    """A device's name as part of a file's."""
    return re.sub(r"[^A-Za-z0-9-]", "-", device)


def _read(path: Path) -> tuple[Ticket | None, bool]:
    """(what a file says, whether its owner is alive); (None, False) for what is no ticket."""
    try:
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            return None, False
        alive = path.name in _held or _is_locked(path)
    except OSError:  # it is gone
        return None, False
    started, seen = (_marked(path.with_suffix(end), facts.st_uid) for end in (TURN, SEEN))
    ticket = Ticket(path.name, facts.st_uid, facts.st_ctime_ns, facts.st_ino, started, seen)
    return ticket, alive


def _is_locked(path: Path) -> bool:
    """Whether another process holds the lock on a file. Raises OSError where it is gone."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.lockf(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the two words for "locked", fcntl(2)
        return True
    finally:
        os.close(handle)
    return False


def _marked(path: Path, owner: int) -> float | None:
    """When a mark was made, in seconds since the epoch; one that is another's does not count."""
    with contextlib.suppress(OSError):
        facts = path.lstat()
        if stat.S_ISREG(facts.st_mode) and facts.st_uid == owner:
            return facts.st_ctime
    return None


# ---- their order


def in_order(tickets: Collection[Ticket]) -> list[Ticket]:
    """Tickets in the order of their turns: all users' first ones before anybody's second."""
    ranked = []
    for owner in {ticket.owner for ticket in tickets}:
        own = sorted((t for t in tickets if t.owner == owner), key=_since)
        ranked += [(rank, ticket.drawn, ticket.inode, ticket) for rank, ticket in enumerate(own)]
    return [ticket for *_, ticket in sorted(ranked, key=lambda entry: entry[:3])]


class View:
    """The queue as one who waits sees it, from their arrival on.

    place: one's own. limit: seconds after which who is in front is passed over.
    """

    def __init__(self, place: Place, limit: float):
        self.place = place
        self.limit = limit
        #: names of those who were there at the arrival, and so go first
        self.early: set[str] | None = None
        self.passed: set[str] = set()  # names of those who had their time
        self.in_front_since: dict[str, float] = {}  # name -> since when, by our own clock
        self.looked = place.looked  # when one looked last, by our own clock, too

    def look(self) -> list[Ticket]:
        """Who goes before, in order, then oneself. Raises Late; NoQueue where one's own file is
        gone.
        """
        self.be_in_time()
        self.looked = time.monotonic()
        self.place.beat()
        mine, others = self._present()
        if any(t.owner == mine.owner and _since(t) < _since(mine) for t in others):
            self.early = None  # one's own earlier request goes first, and others' meanwhile
            self.place.second = True
            ordered = in_order([*others, mine])
            return self._without_the_late(ordered[: ordered.index(mine)]) + [mine]
        if self.place.second:  # one's own earlier request has just had its turn
            self.place.draw_again()
            self.early = None
            self.be_in_time()
        early = self.early
        if early is None:
            mine, others, early = self._arrive()
        ahead = [t for t in others if t.name in early and _key(t) < _key(mine)]
        return self._without_the_late(in_order(ahead)) + [mine]

    def _arrive(self) -> tuple[Ticket, list[Ticket], set[str]]:
        """Note who was there before one drew, and who has drawn since: (mine, others, early)."""
        self.place.arrive()
        mine, others = self._present()
        there = [
            ticket
            for ticket in others
            if ticket.owner != mine.owner
            and (ticket.name in self.place.there or ticket.drawn >= self.place.before - TICK)
        ]
        self.early = early = {ticket.name for ticket in _first_of_each(there)}
        return mine, others, early

    def be_in_time(self) -> None:
        """Raise Late where one has not looked for too long."""
        if time.monotonic() - self.looked > LATE:
            raise Late

    def _present(self) -> tuple[Ticket, list[Ticket]]:
        """One's own ticket, and all others but those who had their time."""
        others = present(self.place.folder, self.place.device)
        mine = others.pop(self.place.name, None)
        if mine is None:
            raise NoQueue(f"somebody cleared {self.place.folder}")
        return mine, [t for t in others.values() if t.name not in self.passed]

    def _without_the_late(self, ahead: list[Ticket]) -> list[Ticket]:
        """Those ahead, without who is in front for longer than anybody may be."""
        while ahead and self._had_its_time(ahead[0]):
            self.passed.add(ahead[0].name)
            ahead = ahead[1:]
        return ahead

    def _had_its_time(self, first: Ticket) -> bool:
        last = max(first.seen or 0.0, 1e-9 * first.drawn)
        if first.started is None and time.time() - last > STOPPED:
            return True
        now = time.monotonic()
        waited = now - self.in_front_since.setdefault(first.name, now)
        if first.started is not None:
            waited = max(waited, time.time() - first.started)
        return waited > self.limit


def _key(ticket: Ticket) -> tuple[int, int]:
    """By which tickets of different users are compared: the kernel's word."""
    return ticket.drawn, ticket.inode


def _since(ticket: Ticket) -> str:
    """By which tickets of one user are compared: that user's word."""
    return ticket.name.partition(".")[2]


def _first_of_each(tickets: Iterable[Ticket]) -> Iterable[Ticket]:
    """Of each user the ticket that comes first."""
    firsts = {}
    for ticket in sorted(tickets, key=_since, reverse=True):
        firsts[ticket.owner] = ticket
    return firsts.values()
