"""The operator as a package: assembled, built in place or into a wheel, installed."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import torch

from course.extensions.sources import BUILD, CSRC, HERE, PACKAGE
from utils import has_gpu
from utils.engine import gpu
from utils.files import ROOT

SITE = ROOT / "build" / "site"  # where a learner's package is installed


def assemble(folder: Path) -> Path:
    """Copy all that the package is made of into a folder, and return it."""
    shutil.copytree(
        PACKAGE,
        folder,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pyc*"),
    )
    shutil.copy(HERE / "rules.py", folder / "polynomial_op" / "rules.py")
    return folder


def wheel() -> Path:
    """The package's wheel: built, without a network, unless it already was from this source."""
    folder = home()
    if not list(folder.glob("*.whl")):
        source = assemble(folder / "source")
        offline = ["--no-build-isolation", "--no-deps", "--no-index"]
        run([sys.executable, "-m", "pip", "wheel", "-q", *offline, "-w", folder, "."], source)
    (path,) = folder.glob("polynomial_op-*.whl")
    return path


def unpacked() -> Path:
    """A folder to import the package from without installing it."""
    folder = home() / "unpacked"
    if not folder.exists():
        with zipfile.ZipFile(wheel()) as file:
            file.extractall(folder)
    return folder


def home() -> Path:
    """Where what is built from this source is kept."""
    return BUILD / f"package-{fingerprint()}"


def fresh_environment(folder: Path) -> Path:
    """A new virtual environment that sees this one's packages; its Python."""
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder.parent)
    (site,) = folder.glob("lib/python*/site-packages")
    paths = [path for path in sys.path if path.endswith("-packages")]
    (site / "borrowed.pth").write_text("\n".join(paths) + "\n")
    return folder / "bin" / "python"


def install(wheel_path: Path, python: Path) -> None:
    """Install a wheel into another environment, by its Python, in place of any that it has."""
    offline = ["--no-deps", "--no-index", "--force-reinstall"]
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "-q",
            *offline,
            wheel_path,
        ]
    )


def install_here(folder: str) -> Path:
    """Install a learner's package from its folder into build/site alone, and return that.

    It prints the command and needs no network. RuntimeError with what pip said if it fails.
    """
    shutil.rmtree(SITE, ignore_errors=True)
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--target"]
    command = ["pip", "install", "-q", *options]
    print("$", *command, SITE.relative_to(ROOT), folder)
    # a notebook's own folder is that of its file, or the course's: pip is given whole paths
    run([sys.executable, "-m", *command, SITE, Path(folder).resolve()], ROOT)
    return SITE


def try_in(site: Path, program: str) -> None:
    """Run a program with a new Python that knows the packages in `site`; print what it says.

    An exception of the program is told by its last line and raises nothing here.
    """
    python = [sys.executable, "-W", "ignore", "-c", program]
    known = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(python, cwd=site, env=known, capture_output=True, text=True)
    print(done.stdout, end="")
    if done.returncode:
        print("✗", last_error(done.stderr))


def last_error(text: str) -> str:
    """The first sentence of the exception that ended a program. text: what it wrote to stderr."""
    begun = [line for line in text.splitlines() if line and not line[0].isspace()]
    raised = [line for line in begun if ": " in line and "Error" in line.partition(":")[0]]
    return (raised or begun or [""])[0].partition(". ")[0]


def test(python: Path, only: str = "") -> str:
    """Run the package's own tests with an environment's Python; pytest's last line.

    only: those whose names hold this word. pytest is no dependency of the course: where it is
    missing, that is said.
    """
    if importlib.util.find_spec("pytest") is None:
        return "not tested: pip install pytest"
    tests = home() / "source" / "tests"
    options = ["-q", "-p", "no:cacheprovider", "--color=no", "-k", only]
    output = run([python, "-m", "pytest", *options, tests], tests)
    return output.strip().splitlines()[-1]


def run(command: list, folder: Path | None = None) -> str:
    """What a command prints. RuntimeError with what it said of errors if it fails."""
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment(), capture_output=True, text=True
    )
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        wrong = [line for line in lines if "error" in line.lower()]
        raise RuntimeError("\n".join([*wrong[:20], *lines[-20:]]))
    return done.stdout


def environment() -> dict[str, str]:
    """This process's, and for which GPU to compile."""
    variables = {**os.environ}
    if has_gpu():
        variables.setdefault("TORCH_CUDA_ARCH_LIST", gpu().torch_arch)
    return variables


def fingerprint() -> str:
    """Changes with the sources, the version of PyTorch and the GPU."""
    digest = hashlib.sha256(f"{torch.__version__} {gpu() and gpu().arch}".encode())
    build = [PACKAGE / "setup.py", PACKAGE / "pyproject.toml"]
    python = [HERE / "rules.py", *PACKAGE.glob("*_op/*.py")]
    for path in sorted([*CSRC.iterdir(), *build, *python]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
