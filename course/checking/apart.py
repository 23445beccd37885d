"""An answer tried in a copy of the notebook's process, so that it cannot take the notebook along.

The copy (`fork`) has all that the notebook has, so nothing need be written down or sent to it. An
answer may exit, crash, loop, close what is open or fill the memory: the notebook gets a result, or
learns how the copy ended. Where a process cannot be copied safely (macOS, Windows), `POSSIBLE` is
False.
"""

import ctypes
import gc
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import NoReturn, TypeVar

POSSIBLE = sys.platform == "linux"
#: Of CPU time; then the system ends the copy, whatever the answer has done with its signals.
CPU_SECONDS = 60
#: By the clock, for an answer that sleeps.
PATIENCE = 240
#: Of memory, besides what the notebook has; and of a file.
MOST_BYTES = 2 << 30

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_HEAD = 8  # bytes in front of a result, which say how long it is


R = TypeVar("R")


class Ended(Exception):
    """The copy ended without a result. status: its exit status, or minus the signal."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def result_of(work: Callable[[], R]) -> R:
    """What work() returns, tried in a copy of this process; both must agree on how to pickle it.

    Raises what work raises, or Ended.
    """
    source, sink = os.pipe()
    notebook = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the copy lacks
        pid = os.fork()
    if pid == 0:
        _try_and_leave(work, sink, notebook)
    os.close(sink)
    data = b""
    try:
        data = _received(source)
    finally:
        os.close(source)
        status = _end(pid)
    if not data:
        raise Ended(status)
    returned: R
    returned, raised = pickle.loads(data)
    if raised is not None:
        raise raised
    return returned


def _received(source: int) -> bytes:
    """The bytes of a result; none where the other end closed, or time was up, before its end."""
    last = time.monotonic() + PATIENCE
    data = b""
    while len(data) < _HEAD or len(data) < _HEAD + int.from_bytes(data[:_HEAD], "little"):
        ready, _, _ = select.select([source], [], [], max(0, last - time.monotonic()))
        piece = os.read(source, 1 << 20) if ready else b""
        if not piece:
            return b""
        data += piece
    return data[_HEAD:]


def _end(pid: int) -> int:
    """End the copy with all that it started; its exit status, or minus the signal."""
    for kill, number in ((os.killpg, pid), (os.kill, pid)):
        try:
            kill(number, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# ---- in the copy


def _try_and_leave(work: Callable[[], object], sink: int, notebook: int) -> NoReturn:
    """Send what work() returns or raises, and end without any of the notebook's own last words."""
    try:
        # What is copied is no garbage: one collection would write to each object, so copy each page
        gc.freeze()
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != notebook:  # it was gone before
            os._exit(1)
        _limit()
        result: tuple[object, BaseException | None]
        try:
            result = work(), None
        except BaseException as error:
            result = None, error
        _send(sink, _pickled(result))
    finally:
        os._exit(0)


def _limit() -> None:
    """Limit CPU time, memory and files; the system sees to it, and no answer can lift them."""
    import resource  # not on Windows

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + CPU_SECONDS
    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_DATA: memory() + MOST_BYTES,
        resource.RLIMIT_FSIZE: MOST_BYTES,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in limits.items():
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def memory() -> int:
    """Bytes of memory of its own that this process has, as Linux counts them for the limit."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmData:"))
    return 1024 * int(line.split()[1])


def _pickled(result: tuple[object, BaseException | None]) -> bytes:
    try:
        return pickle.dumps(result)
    except Exception:
        error = result[1] or TypeError(f"no copy can be made of {result[0]!r}")
        return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))


def _send(sink: int, data: bytes) -> None:
    data = len(data).to_bytes(_HEAD, "little") + data
    while data:
        data = data[os.write(sink, data) :]
