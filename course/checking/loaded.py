"""CUDA C launched in copies of a child process that has imported everything already.

To start Python and to import NumPy and the CPU runtime takes longer than most launches. So a
process is started once (`cuda_c_child.py` without arguments) that imports, and then waits; each
answer runs in a copy of it (`fork`), which ends with the answer. Whatever the answer does, it does
to its copy. Time-out, limits, and the guard and the mark by which all that it leaves is found, are
those of `utils.tools.process`, as for a program of its own.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

from utils import has_gpu
from utils.engine import FORCE_CPU
from utils.files import ROOT
from utils.tools import process

CHILD = Path(__file__).with_name("cuda_c_child.py")
#: Variables that are read while Python starts, imports, or looks for a compiler
READ_AT_START = ("CUDA_", "LD_", "NUMBA_", "OMP_", "OPENBLAS_", "PYTHON")
ALSO_READ = ("CXX", "PATH")
#: but not these: the CPU runtime reads its own at a launch, and a copy never uses a GPU
READ_LATER = ("CUDA_CPU_", FORCE_CPU, process.MARK)
PATIENCE = 60  # seconds until a copy is there, on a busy machine
LOOK_UP = 0.1  # seconds between two looks for an interrupt meanwhile
ENDING = 20  # seconds until it is known how a copy ended that was killed
MOST_BYTES = 64  # of an answer: a number
#: The status of a copy that had not ended when the loaded process did: no signal has this number
GONE = -signal.NSIG


class Lost(Exception):
    """The loaded process is gone, or says nothing."""


class Loaded(NamedTuple):
    """The process, our end of its socket, and whom it serves.

    serves: (our process id, bytes of a mark, its variables, the sources that it has imported).
    """

    child: subprocess.Popen
    socket: socket.socket
    serves: tuple


_loaded: Loaded | None = None
#: Held from a copy's start to its end: the loaded process waits for one at a time
_turn = threading.Lock()


def possible(environment: Mapping[str, str]) -> bool:
    """Whether copies serve: on Linux, and of a process that does not use a GPU."""
    on_cpu = not has_gpu() or environment.get(FORCE_CPU, "0") not in ("", "0")
    return sys.platform == "linux" and on_cpu


def start(
    command: list[str],
    cwd: Path | str | None,
    environment: dict[str, str],
    sink: int,
    *,
    once_more: bool = False,
) -> "Copy | Popen[bytes]":
    """Start what `command`, cuda_c_child.py with arguments, would do, for `process.run`: a `Copy`.

    sink: where its output goes. Where nothing can be copied, or another Python thread's copy runs,
    `command` itself is started. Not so with once_more, where a loaded process has ended: it may be
    this answer that ends the process it comes from. Then Lost is raised.
    """
    arguments = command[command.index(str(CHILD)) + 1 :]
    message = json.dumps((arguments, str(cwd or os.getcwd()), environment)).encode()
    if not _turn.acquire(blocking=once_more):
        return process.start_program(command, cwd, environment, sink)
    try:
        return Copy(_for(environment), message, sink)
    except Lost:
        forget()
        _turn.release()
        if once_more:
            raise
        return process.start_program(command, cwd, environment, sink)
    except BaseException:
        # An error of the system's, or an interrupt while the copy is waited for, which
        # `process.run` raises again at its end: whose number comes next is not known any more.
        forget()
        _turn.release()
        raise


def _for(environment: dict[str, str]) -> Loaded:
    """The loaded process for these variables; another one is ended."""
    global _loaded
    at_start = {
        name: value
        for name, value in environment.items()
        if (name.startswith(READ_AT_START) or name in ALSO_READ) and not name.startswith(READ_LATER)
    }
    room = len(environment[process.MARK])
    serves = os.getpid(), room, tuple(sorted(at_start.items())), _sources()
    if _loaded is None or _loaded.serves != serves:
        forget()
        # each copy writes its own mark where this one's is
        own = {FORCE_CPU: "1", process.MARK: "-" * room}
        _loaded = _start_loading({**environment, **own}, serves)
    return _loaded


def _sources() -> tuple[int, int]:
    """What tells sources that an update has brought: how many there are, the time of the newest."""
    times = [CHILD.stat().st_mtime_ns]
    for folder, inner, files in os.walk(ROOT / "utils"):
        if "__pycache__" in inner:
            inner.remove("__pycache__")
        for file in files:
            with contextlib.suppress(FileNotFoundError):  # an update is at it
                times.append(os.stat(os.path.join(folder, file)).st_mtime_ns)
    return len(times), max(times)


def _start_loading(environment: dict[str, str], serves: tuple) -> Loaded:
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        child = subprocess.Popen(
            [sys.executable, "-P", str(CHILD)],
            env=environment,
            stdin=its.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return Loaded(child, ours, serves)


@atexit.register
def forget() -> None:
    """End the loaded process, unless it is that of the process that this one is a copy of."""
    global _loaded
    if _loaded is None:
        return
    _loaded.socket.close()
    if _loaded.serves[0] == os.getpid():
        _loaded.child.kill()  # its copies die with it
        _loaded.child.wait()
    _loaded = None


class Copy:
    """One copy, used as a `subprocess.Popen` is: `pid`, `wait`, `returncode`.

    returncode is GONE where the loaded process ended first, and took the copy along.
    """

    def __init__(self, loaded: Loaded, message: bytes, sink: int) -> None:
        self._socket = loaded.socket
        self.returncode: int | None = None
        try:
            socket.send_fds(self._socket, [message], [sink])
        except OSError:
            raise Lost from None
        pid = self._first_number()
        if pid is None:
            raise Lost
        self.pid = pid

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, or minus the signal; raises subprocess.TimeoutExpired."""
        if self.returncode is not None:
            return self.returncode
        try:
            self.returncode = self._number(ENDING if timeout is None else timeout)
        except Lost:  # the loaded process is gone, killed by the copy or by someone else
            self._give_up(GONE)
        except BaseException:  # an error of the system's, or who calls this outside `process.run`
            self._give_up(-signal.SIGTERM)
            _turn.release()
            raise
        if self.returncode is None and timeout is not None:
            raise subprocess.TimeoutExpired(str(CHILD), timeout)
        status = self.returncode
        if status is None:  # the copy has stopped the loaded process
            status = self._give_up(-signal.SIGTERM)
        _turn.release()
        return status

    def _give_up(self, status: int) -> int:
        """End the loaded process, and the copy with it; its status from now on."""
        forget()
        self.returncode = status
        return status

    def _first_number(self) -> int | None:
        """The copy's process id, or None; an interrupt that `process.run` noted ends the wait."""
        until = time.monotonic() + PATIENCE
        while (left := until - time.monotonic()) > 0:
            number = self._number(min(left, LOOK_UP))
            if number is not None:
                return number
            if process.is_interrupted():
                raise KeyboardInterrupt
        return None

    def _number(self, timeout: float) -> int | None:
        """The next number that the loaded process says; None where it says nothing in time."""
        ready, _, _ = select.select([self._socket], [], [], timeout)
        if not ready:
            return None
        try:
            said = self._socket.recv(MOST_BYTES)
        except OSError:
            said = b""
        if not said:
            raise Lost
        return int(said)
