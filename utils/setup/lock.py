"""List the files of all pinned packages with their SHA-256, in locks/: ``make lock``.

Run it after each change of the pins (constraints.txt) or of what pyproject.toml asks for. What is
not built for CUDA has one version everywhere: constraints-cuda12.txt takes it over first. The
lists hold for every Python and machine that the course supports; the installer takes nothing else.
`uv`, which makes them, is needed here alone: `pip install uv`.

locks/hub.txt lists what `make hub` needs beyond all that, from locks/hub.in: versions that it names
already stay. The Hub's proxy has a list of npm's own, locks/proxy (`npm update` there renews it).
"""

import re
import shutil
import subprocess
import sys

from utils.files import ROOT, write_whole
from utils.setup import install

HEADER = """\
# Files that the installer accepts, by their SHA-256. Written by `make lock` from pyproject.toml and
# {constraints}: change those, not this.
"""

HUB = "locks/hub.txt"
HUB_HEADER = """\
# Files that `make hub` accepts beyond the course's own, by their SHA-256. Written by `make lock`
# from locks/hub.in: change that, not this.
"""
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
BUILT_FOR_CUDA = ("nvidia-", "cuda-", "torch", "triton")  # how the names of such packages begin


def with_versions_of(default: str, other: str) -> str:
    """The text of other constraints with the default ones' versions, but of what CUDA builds."""
    versions = dict(PIN.findall(default))

    def pin(match: re.Match) -> str:
        name, own = match.groups()
        version = own if name.startswith(BUILT_FOR_CUDA) else versions.get(name, own)
        return f"{name}=={version}"

    return PIN.sub(pin, other)


def command(kind: str) -> list[str]:
    """The uv line for one kind of machine ("cpu", "cuda12", "cuda13"); it prints the list."""
    uv = shutil.which("uv")
    if uv is None:
        raise FileNotFoundError("uv is not on the PATH: `pip install uv`, then again")
    extras = ["test", "site"] if kind == "cpu" else ["test", "site", kind]
    words = [uv, "pip", "compile", "pyproject.toml", "--universal", "--generate-hashes", "--quiet"]
    words += ["--python-version", ".".join(map(str, install.OLDEST)), "--no-cache"]
    words += ["--constraints", install.CONSTRAINTS[kind], "--no-header", "--no-annotate"]
    return words + [word for extra in extras for word in ("--extra", extra)]


def hub_command() -> list[str]:
    """The uv line for what `make hub` adds: nothing that the course has itself."""
    words = [shutil.which("uv") or "uv", "pip", "compile", "locks/hub.in", "--universal", "--quiet"]
    words += ["--generate-hashes", "--python-version", ".".join(map(str, install.OLDEST))]
    words += ["--constraints", install.CONSTRAINTS["cpu"], "--output-file", HUB]
    words += ["--no-header", "--no-annotate"]
    pins = PIN.findall((ROOT / install.CONSTRAINTS["cpu"]).read_text())
    return words + [f"--no-emit-package={name}" for name, _ in pins]


def main() -> int:
    """Write all lists; returns the exit status."""
    default, cuda12 = (ROOT / install.CONSTRAINTS[kind] for kind in ("cpu", "cuda12"))
    write_whole(cuda12, with_versions_of(default.read_text(), cuda12.read_text()))
    for kind, name in install.LOCKS.items():
        try:
            done = subprocess.run(command(kind), cwd=ROOT, capture_output=True, text=True)
        except FileNotFoundError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        if done.returncode:
            print(f"error: {done.stderr.strip()}", file=sys.stderr)
            return 1
        write_whole(ROOT / name, HEADER.format(constraints=install.CONSTRAINTS[kind]) + done.stdout)
        packages = re.findall(r"^[\w.-]+==", done.stdout, re.MULTILINE)
        print(f"{name}: {len(packages)} packages, {done.stdout.count('sha256:')} files")
    status = subprocess.run(hub_command(), cwd=ROOT, stdout=subprocess.DEVNULL).returncode
    if status == 0:
        write_whole(ROOT / HUB, HUB_HEADER + (ROOT / HUB).read_text())
    return status


if __name__ == "__main__":
    sys.exit(main())
