"""How to start on each kind of machine: course/setup.md and the website's tabs say the same.

Python must be 3.11 to 3.13 (`utils/setup/install.py`), so a system that brings another is told how
to get one of these.
"""

from dataclasses import dataclass

from utils.setup.colab import notebook_address, repository

#: Named, because a newer Ubuntu's Python may be newer than the course's packages
UBUNTU = "Ubuntu-24.04"
PACKAGES = "sudo apt install git make g++ python3-venv"
CLONE = f"git clone {repository()} cuda-course\ncd cuda-course"


@dataclass(frozen=True)
class Platform:
    """A kind of machine. once: commands to give before, the first time; then: those to start with.

    note: what commands do not say. key: how a browser's name for its system begins, in lower case.
    """

    name: str
    once: tuple[str, ...]
    then: str = "make lab"
    note: str = ""
    key: str = ""


PLATFORMS = (
    Platform(
        "Linux",
        (PACKAGES,),
        note="Debian 12 or 13, Ubuntu 24.04; elsewhere the same from your package manager",
        key="linux",
    ),
    Platform(
        "Windows",
        (f"wsl --install -d {UBUNTU}", PACKAGES),
        note="the first in PowerShell, all others in Ubuntu's window; NVIDIA's driver goes into "
        "Windows alone",
        key="win",
    ),
    Platform(
        "macOS",
        ("xcode-select --install", "brew install python@3.13"),
        then="make lab PYTHON=python3.13",
        note="without NVIDIA's GPUs, so all kernels run on the CPU; `brew` is "
        "[Homebrew](https://brew.sh)",
        key="mac",
    ),
)


def rows():
    """The rows of course/setup.md's table: the machine, what to install once, how to start."""
    for each in PLATFORMS:
        once = ", ".join(f"`{command}`" for command in each.once)
        yield f"| **{each.name}** | {once}<br>{each.note} | `{each.then}` |"


def commands(platform):
    """All that is typed, a command a line."""
    return "\n".join((*platform.once, CLONE, platform.then))


def colab():
    """The address that opens the start page in Colab."""
    return notebook_address("course/index.ipynb")
