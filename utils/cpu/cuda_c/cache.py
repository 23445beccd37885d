"""Where builds are kept, and when one still holds."""

import contextlib
import errno
import functools
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import platformdirs

from ...files import keep_within, remove
from .compiler import BuildError

#: Of all builds that are kept; what was used longest ago goes first
MOST_BYTES = 1_000_000_000
#: Seconds between two looks through all of them
BETWEEN_LOOKS = 600
HERE = Path(__file__).parent
INCLUDE = HERE / "include"
RUNTIME = HERE / "runtime"
#: How a folder's name begins in which something is being made
MAKING = ".making-"


@functools.cache
def cache_folder() -> Path:
    """Where builds are kept: CUDA_COURSE_CACHE, the user's cache folder, or a temporary one.

    Several users may name the same folder: each has one of their own in it.
    """
    candidates = [os.environ.get("CUDA_COURSE_CACHE"), platformdirs.user_cache_dir("cuda-course")]
    for folder in [c for c in candidates if c]:
        for name in ("cuda_c", f"cuda_c-{os.getuid()}"):
            if _is_ours(Path(folder) / name):
                return Path(folder) / name
    path = Path(tempfile.gettempdir()) / f"cuda-course-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_uid != os.getuid():
        path = Path(tempfile.mkdtemp(prefix="cuda-course-"))
    return path


def _is_ours(folder: Path) -> bool:
    """Whether it can be written, and is this user's: what another puts there would be run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder.stat().st_uid == os.getuid()
    except OSError:
        return False


@contextlib.contextmanager
def trouble():
    """Say of a cache that cannot be written any more what is wrong, and the cure: a BuildError."""
    unwritable = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
    try:
        yield
    except OSError as error:
        where = error.filename or cache_folder()  # a full disk names no file
        if error.errno not in unwritable or not Path(where).is_relative_to(cache_folder()):
            raise
        raise BuildError(
            f"builds are kept in {cache_folder()}, and nothing can be written there now "
            f"({error.strerror}): make room, or name another folder in CUDA_COURSE_CACHE"
        ) from None


@contextlib.contextmanager
def in_use():
    """Nothing is taken away meanwhile by `empty`."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder, alone=False):
        yield


def empty(folder: Path) -> None:
    """Remove all that lies in a folder of builds, as soon as no build is under way there."""
    with _locked(folder, alone=True):
        for path in folder.iterdir():
            remove(path)


@contextlib.contextmanager
def _locked(folder: Path, alone: bool):
    """Hold a folder's lock, where the file system has any; it ends with the process, too."""
    import fcntl  # Python in a web page has none

    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed process had begun here; only for who holds the folder's lock."""
    for path in folder.glob(f"{MAKING}*"):
        remove(path)


def hash_of(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def _hash_of_files(paths: Iterable[Path]) -> str:
    parts = []
    for path in sorted(path for path in paths if path.is_file()):
        parts += [str(path.relative_to(HERE)), path.read_bytes()]
    return hash_of(*parts)


@functools.cache
def runtime_hash() -> str:
    """Of the runtime's sources and its headers."""
    return _hash_of_files([*INCLUDE.rglob("*"), *RUNTIME.rglob("*")])


def runtime_changed() -> bool:
    """Whether the runtime's files are others than when this process asked for `runtime_hash`."""
    return runtime_hash.__wrapped__() != runtime_hash()


@functools.cache
def own_hash() -> str:
    """Of all that makes a program: the runtime and the rewrite."""
    return hash_of(runtime_hash(), _hash_of_files(HERE.glob("*.py")))


def atomically(target: Path, make: Callable[[Path], object]) -> Path:
    """Lets `make(path)` write a file next to `target`, then gives it its name in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=MAKING) as folder:
        fresh = Path(folder) / target.name
        make(fresh)
        os.replace(fresh, target)
    return target


def forget_old(folder: Path) -> None:
    """Keep all that is built within MOST_BYTES: what was used longest ago goes.

    To look at thousands of files takes as long as a small build: a file says when it was done last.
    """
    done = folder / "looked-through"
    with contextlib.suppress(OSError):  # it was never done
        if 0 <= time.time() - done.stat().st_mtime < BETWEEN_LOOKS:
            return
    done.touch()
    beside = [path for path in folder.iterdir() if path.name != "builds"]
    keep_within([*folder.glob("builds/*"), *beside], MOST_BYTES)


# ---- what a source includes
def fingerprint(path: str) -> list:
    stat = os.stat(path)
    return [path, stat.st_mtime_ns, stat.st_size, hash_of(Path(path).read_bytes())]


def unchanged(files: list) -> bool:
    for path, modified, size, digest in files:
        try:
            stat = os.stat(path)
            if stat.st_size != size:
                return False
            if stat.st_mtime_ns != modified and hash_of(Path(path).read_bytes()) != digest:
                return False
        except OSError:
            return False
    return True
