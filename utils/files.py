"""Where the project's files are, and the one way to write a file whole."""

import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ROOT / "assets"


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Write a file whole or not at all: under another name first, then renamed in one step.

    Text is written as UTF-8. The folder is made where it is missing. A new file gets the
    permissions that any new file gets, an old one keeps its own.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
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


def _permissions(path: Path) -> int:
    """The mode of the file that is there, or the one that a new file gets here."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
