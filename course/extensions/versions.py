"""One wheel, several PyTorch: each version in an environment of its own, fetched from the registry.

    python -m course.extensions.versions 2.10.0 2.12.1 --keep ~/environments

The wheel is the package's, built here with the PyTorch of this Python. In each environment it is
installed and passes its own tests, or does not; what came of it is kept for the chapter. A version
of PyTorch takes gigabytes and minutes: `--keep` names a folder where they stay.
"""

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

import torch

from course.extensions import packaging
from utils import results
from utils.files import ASSETS, write_whole

REPORT = ASSETS / "wheels" / "polynomial_op.json"
NEEDED = ("numpy", "pytest", "expecttest", "setuptools")  # what the tests and opcheck import


def environment(version: str, folder: Path) -> Path:
    """An environment with this version of PyTorch, made unless it is there; its Python."""
    home = folder / f"torch-{version}"
    python = home / "bin" / "python"
    ready = home / "ready"
    if not ready.exists():
        packaging.run([sys.executable, "-m", "venv", "--clear", home])
        packaging.run([python, "-m", "pip", "install", "-q", f"torch=={version}", *NEEDED])
        ready.touch()
    return python


def tried(wheel: Path, python: Path) -> dict[str, str]:
    """What this Python's PyTorch says of the wheel: its version, and pytest's last line."""
    packaging.install(wheel, python)
    version = packaging.run([python, "-c", "import torch; print(torch.__version__)"])
    return {
        "torch": version.strip(),
        "said": packaging.test(python).partition(" in ")[0],
    }


def report(versions: list[str], folder: Path) -> dict:
    """All versions tried in turn, with what the wheel was built with, and when."""
    wheel = packaging.wheel()
    return {
        "wheel": wheel.name,
        "built_with": torch.__version__,
        "python": platform.python_version(),
        "date": results.now(),
        "tried": [tried(wheel, environment(version, folder)) for version in versions],
    }


def text() -> str:
    """The kept report: a line on the wheel, one for each version of PyTorch."""
    kept = json.loads(REPORT.read_text(encoding="utf-8"))
    first = f"built with PyTorch {kept['built_with']} ({kept['date'][:10]}), tested with"
    tried_with = [f"  PyTorch {one['torch']:14} {one['said']}" for one in kept["tried"]]
    return "\n".join([first, *tried_with])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("versions", nargs="+", help="of PyTorch, such as 2.10.0")
    parser.add_argument("--keep", type=Path, help="a folder for the environments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        made = report(options.versions, options.keep or Path(passing))
    write_whole(REPORT, json.dumps(made, indent=1) + "\n")
    print(text())


if __name__ == "__main__":
    main()
