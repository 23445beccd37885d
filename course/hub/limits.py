"""What one learner can use up, by what the machine lets us set, and what stays without a limit.

With systemd each learner's server is a unit with limits of its own. Without it there are the
kernel's limits of a process and an account (setrlimit).
"""

import os
import resource
from pathlib import Path

from course.hub.settings import Settings

SYSTEMD = Path("/run/systemd/system")  # is there where systemd runs the machine
FIRST_TO_GO = 500  # of 1000: out of memory, the kernel ends learners' processes before the Hub's
NICE = 5


def has_systemd() -> bool:
    """Whether systemd runs this machine, so that it can hold limits."""
    return SYSTEMD.is_dir()


def in_words(settings: Settings, systemd: bool) -> tuple[list[str], list[str]]:
    """(what is limited, what is not), a line each."""
    memory, file = (f"{n / (1 << 30):g} GB" for n in (settings.memory, settings.file))
    limited = [f"one file of a learner: {file}"]
    open_to_all = [
        "the disk as a whole, unless its file system has quotas: "
        f"`setquota` for the accounts below {settings.homes}",
        "a GPU's time for what is not timed, and its memory for Numba and CUDA C",
    ]
    if systemd:
        limited = [
            f"memory of a learner, all their notebooks together: {memory}",
            f"CPU of a learner: {settings.cpus:g} cores",
            f"processes and threads of a learner: {settings.processes}",
            *limited,
        ]
        return limited, open_to_all
    limited = [f"memory of each process of a learner: {memory}", *limited]
    open_to_all = [
        "CPU: learners share it, after the Hub and the board, which go first",
        "memory of all of a learner's processes together (systemd could, and does not run here); "
        "where the machine has none left, the kernel ends a learner's process first",
        *open_to_all,
    ]
    if settings.trusting:
        open_to_all.insert(0, "what learners do to each other: they are one Unix account")
    else:
        limited.insert(1, f"processes and threads of a learner: {settings.processes}")
    return limited, open_to_all


def limit_this_process(settings: Settings) -> None:
    """Put the limits on this process and all that it starts; before it gives up root.

    An address space has no limit: CUDA reserves far more of it than it uses. What counts is
    memory that is written to (RLIMIT_DATA).
    """
    _lower(resource.RLIMIT_DATA, settings.memory)
    _lower(resource.RLIMIT_FSIZE, settings.file)
    _lower(resource.RLIMIT_CORE, 0)
    if not settings.trusting:  # it counts all processes of an account
        _lower(resource.RLIMIT_NPROC, settings.processes)
    os.nice(NICE)
    Path("/proc/self/oom_score_adj").write_text(str(FIRST_TO_GO))


def _lower(which: int, limit: int) -> None:
    """Set a limit, soft and hard, unless a lower one is there."""
    _, hard = resource.getrlimit(which)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(which, (limit, limit))
