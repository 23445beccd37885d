"""Start JupyterLab for the course: what `make lab` does once everything is installed.

The server replaces this process, so that whatever ends `make` ends it, too. It listens to this
machine alone. Inside a container it listens to every address, because from outside nothing else
could reach it, and only what the container publishes is open then. Its URL carries a token always.
"""

import ctypes
import os
import signal
import sys
import tempfile
from pathlib import Path

from utils.files import ROOT

CONTAINER_MARKS = "/.dockerenv", "/run/.containerenv"
PR_SET_PDEATHSIG = 1  # as <sys/prctl.h> numbers it
AS_ROOT = (
    "JupyterLab should not run as root: whoever gets in could do everything. Use `make lab` as "
    "yourself, without sudo. If root is what you mean: `make lab FLAGS=--allow-root`"
)


def in_container() -> bool:
    """Whether this is a container, as Docker, Podman and Kubernetes mark theirs."""
    marked = any(Path(mark).exists() for mark in CONTAINER_MARKS)
    return marked or "KUBERNETES_SERVICE_HOST" in os.environ


def flags(*, root: bool, container: bool) -> list[str]:
    """What JupyterLab is told. ValueError for root outside a container."""
    if root and not container:
        raise ValueError(AS_ROOT)
    told = ["--log-level=WARN", f"--LabApp.default_url=/lab/tree/{start_page()}"]
    # The search for language servers starts npm, which nobody here needs and which can hang: then
    # the server never ends
    told.append("--LanguageServerManager.autodetect=False")
    if root:
        told.append("--allow-root")
    if container:
        told.append("--ip=0.0.0.0")
    return told


def start_page(folder: Path = ROOT) -> str:
    """The learner's own start page, or the course's where there are no copies."""
    own = "my/course/index.ipynb"
    return own if (folder / own).is_file() else "course/index.ipynb"


def jupyters_folders() -> dict[str, str]:
    """Variables that give Jupyter folders of ours where it cannot write its own; else none.

    On some shared machines a user's home is read-only or missing.
    """
    from jupyter_core import paths

    own = paths.jupyter_config_dir(), paths.jupyter_data_dir(), paths.jupyter_runtime_dir()
    try:
        for folder in map(Path, own):  # the token lies there: no other user may look in
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        ours = ROOT / "my" / ".jupyter"
        print(f"Note: {error.filename} cannot be written; Jupyter uses {ours}", file=sys.stderr)
        names = {f"JUPYTER_{kind}_DIR": kind.lower() for kind in ("CONFIG", "DATA", "RUNTIME")}
        return {name: str(ours / sub) for name, sub in {**names, "IPYTHONDIR": "ipython"}.items()}
    return {}


def end_with_parent() -> None:
    """Have the kernel end this process as soon as `make` is gone, however it went (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def main(arguments: list[str]) -> None:
    """Become JupyterLab. More arguments are passed on to it."""
    allowed = "--allow-root" in arguments
    try:
        told = flags(root=os.geteuid() == 0 and not allowed, container=in_container())
    except ValueError as error:
        sys.exit(f"error: {error}")
    os.environ.update(jupyters_folders())
    # `!python` in a cell and `python` in JupyterLab's terminal mean the course's Python
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    end_with_parent()
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *told, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
