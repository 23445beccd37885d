"""Install what a Hub needs beyond the course: packages and the proxy, each file by its hash.

They go into the course's own environment, which learners' servers use, too: what is there already
stays as it is. Node.js comes as a Python package, so that a fresh machine needs nothing else.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from course.hub.config import PROXY_FOLDER
from utils.files import ROOT, write_whole

PACKAGES = ROOT / "locks" / "hub.txt"
PROXY_LOCK = ROOT / "locks" / "proxy"
STAMP = Path(sys.prefix) / "hub.txt"


class NotInstalled(RuntimeError):
    """Something that the Hub needs could not be installed."""


def provide() -> bool:
    """Install what is missing; whether anything was. NotInstalled where it cannot be."""
    wanted = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == wanted:
        return False
    print("Installing JupyterHub and its proxy; the first time takes a minute", flush=True)
    pip = [sys.executable, "-I", "-m", "pip", "install", "--disable-pip-version-check"]
    _run([*pip, "-q", "--no-deps", "--require-hashes", "-r", str(PACKAGES)], "the Hub's packages")
    _install_proxy()
    write_whole(STAMP, wanted)
    return True


def fingerprint() -> str:
    """Text that changes when something else is to be installed."""
    digest = hashlib.sha256()
    for path in (PACKAGES, PROXY_LOCK / "package.json", PROXY_LOCK / "package-lock.json"):
        digest.update(path.read_bytes())
    return digest.hexdigest() + "\n"


def _install_proxy():
    """configurable-http-proxy, as its lock file has it; no package may run anything."""
    shutil.rmtree(PROXY_FOLDER, ignore_errors=True)
    shutil.copytree(PROXY_LOCK, PROXY_FOLDER)
    npm = Path(sys.prefix) / "bin" / "npm"
    words = ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run([str(npm), *words], "the Hub's proxy", cwd=PROXY_FOLDER)


def _run(command, what, **options):
    """Run a command. NotInstalled with its last words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise NotInstalled(f"{what} could not be installed: {said[-1]}")
