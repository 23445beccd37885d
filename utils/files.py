"""Where the project's files are, the one way to write a file whole, and a bound for caches."""

import contextlib
import os
import platform
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ROOT / "assets"
PART = ".part"  # how a file ends that is being written
SCRATCH = "cuda-course-scratch-"  # how a folder begins that somebody works in for a while
HOUR = 3600
DAY = 24 * HOUR


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Write a file whole or not at all: under another name first, then renamed in one step.

    Text is written as UTF-8. The folder is made where it is missing. A new file gets the
    permissions that any new file gets, an old one keeps its own. What a process left that was
    killed while it wrote is removed by the next one.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    remove_torn(path)
    prefix = f"{path.name}.{platform.node()}.{os.getpid()}."
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=PART)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _permissions(path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def outdated(texts: dict[Path, str]) -> dict[Path, str]:
    """Of {path: text as it should be} those whose file is missing or has another text."""
    return {
        path: text
        for path, text in texts.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }


def _permissions(path: Path) -> int:
    """The mode of the file that is there, or the one that a new file gets here."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def remove_torn(path: Path) -> None:
    """Remove what is left of writing `path` by processes of this machine that are gone."""
    start = f"{path.name}.{platform.node()}."
    for entry in os.scandir(path.parent):
        if entry.name.startswith(start) and entry.name.endswith(PART):
            pid = entry.name[len(start) :].partition(".")[0]
            if not (pid.isdigit() and _is_running(int(pid))):
                Path(entry.path).unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    """Whether a process of this number is there; another user's counts."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


@contextlib.contextmanager
def scratch_folder(place: Path | None = None) -> Iterator[Path]:
    """A folder to work in, in `place` or else the temporary folder; gone at the end.

    Who is killed cannot remove theirs, so each one first removes what the dead have left. A lock
    on the folder says that its owner lives: it ends with the process, however that ends.
    """
    place = Path(tempfile.gettempdir() if place is None else place)
    for entry in place.glob(f"{SCRATCH}*"):
        _remove_abandoned(entry)
    folder, lock = _locked_folder(place)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(place: Path) -> tuple[Path, int]:
    """(a new folder, its lock). Another process may have taken it for abandoned before the lock."""
    import fcntl  # Python in a web page has none

    while True:
        folder = Path(tempfile.mkdtemp(dir=place, prefix=SCRATCH))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(OSError):  # a file system that knows no locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():
                return folder, lock
            os.close(lock)


def _remove_abandoned(folder: Path) -> None:
    """Remove a scratch folder whose lock nobody holds; other users' and living ones stay."""
    import fcntl

    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # held, or no locks here
        pass
    finally:
        os.close(lock)


def size(folder: Path) -> int:
    """Bytes of a file, or of all files in a folder and below; 0 where it is not there."""
    return sum(facts.st_size for facts in _facts(folder) if not stat.S_ISDIR(facts.st_mode))


def _facts(path: Path) -> Iterator[os.stat_result]:
    """What the file system says of a path and of all below it, but of what goes meanwhile.

    Not Path.rglob: Python's 3.11 stops with an error where a folder goes while it looks.
    """
    parts = [path]
    for where, folders, files in os.walk(path):
        parts += [Path(where, name) for name in folders + files]
    for part in parts:
        try:
            yield part.lstat()
        except OSError:
            continue


def keep_within(entries: Iterable[Path], most: int, days: int = 30) -> None:
    """Remove cached files and folders until those that stay have at most `most` bytes.

    What was not used for `days` days goes, then what was used longest ago. What was used within the
    last hour stays in any case: somebody may be at it.
    """
    now = time.time()
    known = sorted(filter(None, map(_cached, entries)), reverse=True)
    kept = 0
    for used, bytes_, path in known:
        kept += bytes_
        young = now - used < HOUR
        if not young and (kept > most or now - used > days * DAY):
            kept -= bytes_
            if _cached(path) == (used, bytes_, path):  # else another process has just taken it
                remove(path)


def _cached(path: Path) -> tuple[float, int, Path] | None:
    """(when it was used last, its bytes, where it is) of an entry of a cache."""
    used = 0.0
    bytes_ = 0
    for facts in _facts(path):
        is_folder = stat.S_ISDIR(facts.st_mode)
        used = max(used, facts.st_mtime, 0 if is_folder else facts.st_atime)
        bytes_ += 0 if is_folder else facts.st_size
    return (used, bytes_, path) if used else None


def remove(path: Path) -> None:
    """Remove a file or a folder, or leave it where that is not possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass
