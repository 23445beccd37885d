"""Run a command so that nothing outlives the cell: process group, time-out, output as it comes.

Not even the notebook's own death leaves anything behind: a guard, a shell that holds the end of a
pipe, kills the group when the other end closes. That is so on every Unix, however the notebook
ends, and for the command's children, too. On Linux children that have left the group are known by
a variable that all of them inherit, as continuous-integration servers do it.

Limits are set and watched from outside, so that nothing in the program can lift them.
"""

import codecs
import math
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.files import ROOT


class Timeout(RuntimeError):
    """The command ran longer than it was given and was stopped with all its children."""


@dataclass(frozen=True)
class Completed:
    """A finished command: exit status (negative: the signal that ended it) and its output."""

    command: list[str]
    returncode: int
    output: str


#: A program that prints without end must not fill the notebook (or the disk behind it).
MAX_OUTPUT = 200_000
#: A single file of a program, in bytes: no loop fills the disk with one.
MAX_FILE = 8 << 30
#: Of the memory that is free a program may use so much; the rest is the notebook's.
SHARE_OF_MEMORY = 0.8
#: Seconds between two looks at the memory
LOOK = 0.25
#: All that a command starts inherits this, with a name of its own in it
MARK = "CUDA_COURSE_RUN"


def run(
    command: Sequence[str],
    *,
    timeout: float,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    echo: Callable[[str], None] | None = None,
    as_terminal: bool = False,
    memory: int | None = None,
) -> Completed:
    """Run `command` for at most `timeout` seconds; stdout and stderr come together.

    echo: called with each piece of output as it arrives (e.g. ``print_now``).
    as_terminal: the program writes to a terminal, so that C's printf comes out line by line; into a
        pipe it comes in blocks of some kilobytes, and what a program that hangs or crashes had
        printed before would be lost.
    memory: bytes that it may use with its children; most of what is free where none is given. One
        that uses more is killed, and the output's last line says so.
    Raises Timeout after killing the whole process group, FileNotFoundError when the program does
    not exist, and ValueError for a time that is not a positive number of seconds.
    KeyboardInterrupt (Kernel > Interrupt) kills the group too, as does the end of this process.
    """
    if not (timeout > 0 and math.isfinite(timeout)):
        raise ValueError(f"a time-out is a positive number of seconds, not {timeout:g}")
    if memory is None:
        memory = int(SHARE_OF_MEMORY * free_memory())
    environment = dict(os.environ if env is None else env)
    mark = f"{os.environ.get(MARK, '')}/{uuid.uuid4().hex}"
    environment[MARK] = mark
    process, source = _started(command, cwd, environment, as_terminal)
    guard = _guard(process.pid, mark)
    _limit_files(process.pid)
    complaint = ""
    pieces: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(source, pieces, echo), daemon=True)
    reader.start()
    try:
        complaint = _wait(process, timeout, memory)
    except subprocess.TimeoutExpired:
        raise Timeout(
            f"stopped after {timeout:g} s: {Path(command[0]).name} had not finished"
        ) from None
    finally:
        _kill_group(process)  # also ends children that the program left behind
        _kill_marked(mark)
        _dismiss(guard)
        reader.join(5)
        os.close(source)
    output = b"".join(pieces).decode(errors="replace")
    if complaint and echo:
        echo(complaint)
    return Completed(list(command), process.returncode, output + complaint)


def _started(command, cwd, environment, as_terminal: bool) -> tuple[subprocess.Popen, int]:
    """(the process, in a group of its own; the end from which its output is read)."""
    source, sink = _terminal() if as_terminal else os.pipe()
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    except BaseException:
        os.close(source)
        raise
    finally:
        os.close(sink)
    return process, source


def free_memory() -> int:
    """Bytes that programs may still use here: of the machine, or of the container's share."""
    import psutil

    free = psutil.virtual_memory().available
    try:
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):  # no container, or "max": no limit
        return free
    return min(free, max(most - used, 0))


def memory_of(pid: int) -> int:
    """Bytes of memory that a process and its children have for themselves."""
    import psutil

    try:
        parent = psutil.Process(pid)
        family = [parent, *parent.children(recursive=True)]
    except psutil.Error:
        return 0
    used = 0
    for process in family:
        try:
            facts = process.memory_info()
        except psutil.Error:
            continue
        used += facts.rss - getattr(facts, "shared", 0)
    return used


def _wait(process: subprocess.Popen, timeout: float, memory: int) -> str:
    """Wait for a program's end; why it was killed, if it was for its memory, else "".

    Raises subprocess.TimeoutExpired.
    """
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        try:
            process.wait(max(0, min(left, LOOK)))
            return ""
        except subprocess.TimeoutExpired:
            if left <= LOOK:
                raise
        used = memory_of(process.pid)
        if used > memory:
            _kill_group(process)
            return (
                f"\n[stopped: it used {used / 1e9:.1f} GB of memory, {memory / 1e9:.1f} may be]\n"
            )


def _limit_files(pid: int) -> None:
    """No file of the program grows without end, and its crash leaves no picture of its memory."""
    import resource  # not on Windows

    if not hasattr(resource, "prlimit"):  # macOS
        return
    for what, most in ((resource.RLIMIT_FSIZE, MAX_FILE), (resource.RLIMIT_CORE, 0)):
        try:
            hard = resource.prlimit(pid, what)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.prlimit(pid, what, (most, most))
        except (OSError, ValueError):
            pass  # it has ended already, or is another user's by now (sudo)


def _read_all(source: int, pieces: list[bytes], echo: Callable[[str], None] | None) -> None:
    """Read to the end; keep, and echo, up to MAX_OUTPUT bytes."""
    size = 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end inside a character
    while piece := _read(source):
        before = size
        size += len(piece)
        if size <= MAX_OUTPUT:
            pieces.append(piece)
            if echo:
                echo(decoder.decode(piece))
        elif before <= MAX_OUTPUT and echo:
            echo(f"\n[output cut after {MAX_OUTPUT:,} bytes]\n")


def _terminal() -> tuple[int, int]:
    """Both ends of a pseudo-terminal that passes text on as it is (no carriage returns added)."""
    import termios  # not on Windows

    source, sink = os.openpty()
    settings = termios.tcgetattr(sink)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(sink, termios.TCSANOW, settings)
    return source, sink


def _read(source: int) -> bytes:
    try:
        return os.read(source, 65536)
    except OSError:  # how a terminal on Linux says that its other end is closed
        return b""


#: Waits for the pipe to close, then kills the group $0 and all that bears the mark $1. It has a
#: group of its own, and no mark.
_GUARD = """\
read -r _
kill -9 "-$0"
for file in $(grep -ls -- "$1" /proc/[0-9]*/environ); do
    file=${file#/proc/}
    kill -9 "${file%/environ}"
done
"""


def _guard(group: int, mark: str) -> subprocess.Popen:
    """A process that kills a group, and what left it, as soon as this process is gone."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, str(group), mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _kill_marked(mark: str) -> None:
    """Kill what the command started and what has left its group (Linux; elsewhere nothing)."""
    while pids := _marked(mark):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass


def _marked(mark: str) -> list[int]:
    """The processes that inherited a mark."""
    sought = f"{MARK}={mark}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if sought in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass  # another user's, or gone
    return found


def _dismiss(guard: subprocess.Popen) -> None:
    """End a guard before its pipe closes: its group is gone, and the number may be another's."""
    guard.kill()
    guard.wait()
    guard.stdin.close()


def _kill_group(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def python_environment(**more: str) -> dict[str, str]:
    """The environment for a Python program that imports the course's modules, in any folder.

    What PYTHONPATH names already stays there: on some machines packages lie in such a place.
    """
    places = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), **more}


def print_now(text: str) -> None:
    """Write without buffering, so that a program's output appears while it runs."""
    sys.stdout.write(text)
    sys.stdout.flush()


def exit_reason(returncode: int) -> str:
    """Why a program ended: ``exit status 3``, ``crashed with SIGSEGV (invalid memory access)``."""
    if returncode >= 0:
        return f"exit status {returncode}"
    meaning = {
        "SIGSEGV": "invalid memory access",
        "SIGABRT": "abort, often a failed assert",
        "SIGFPE": "integer division by zero",
        "SIGBUS": "misaligned or invalid memory access",
        "SIGKILL": "killed, often for using too much memory",
    }
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"crashed with {name}" + (f" ({meaning[name]})" if name in meaning else "")
