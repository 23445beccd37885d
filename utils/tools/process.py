"""Run a command so that nothing outlives the cell: process group, time-out, output as it comes.

Not even the notebook's own death leaves anything behind: a guard, a shell that holds the end of a
pipe, kills the group when the other end closes. That is so on every Unix, however the notebook
ends, and for the command's children, too. On Linux children that have left the group are known by
a variable that all of them inherit, as continuous-integration servers do it.

Limits are set and watched from outside, so that nothing in the program can lift them.
"""

import codecs
import contextlib
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

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
#: Seconds between two looks at the memory, and for an interrupt
LOOK = 0.25
#: Seconds until the last of the output is read, when nobody writes any more
READING = 20
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
    start: Callable | None = None,
) -> Completed:
    """Run `command` for at most `timeout` seconds; stdout and stderr come together.

    echo: called with each piece of output as it arrives (e.g. ``print_now``).
    as_terminal: the program writes to a terminal, so that C's printf comes out line by line; into a
        pipe it comes in blocks of some kilobytes, and what a program that hangs or crashes had
        printed before would be lost.
    memory: bytes that it may use with its children; most of what is free where none is given. One
        that uses more is killed, and the output's last line says so.
    start: what starts it, in place of `start_program`, with the same arguments.
    Raises Timeout after killing the whole process group, FileNotFoundError when the program does
    not exist, and ValueError for a time that is not a positive number of seconds.
    KeyboardInterrupt (Kernel > Interrupt) kills the group too, as does the end of this process.
    """
    if not (timeout > 0 and math.isfinite(timeout)):
        raise ValueError(f"a time-out is a positive number of seconds, not {timeout:g}")
    if memory is None:
        memory = int(SHARE_OF_MEMORY * free_memory())
    mark = f"{os.environ.get(MARK, '')}/{uuid.uuid4().hex}"
    environment = {**(os.environ if env is None else env), MARK: mark}
    with (
        interrupts_noted() as interrupts,
        _reading(echo, as_terminal, interrupts) as (sink, pieces),
        _guarded(mark) as guard,  # before the command: nothing of it is ever without one
    ):
        process = (start or start_program)(list(command), cwd, environment, sink)
        complaint = _see_out(process, command[0], guard, timeout, memory, interrupts)
    if complaint and echo:
        echo(complaint)
    output = b"".join(pieces).decode(errors="replace")
    return Completed(list(command), process.returncode, output + complaint)


#: What `interrupts_noted` notes of the main thread, one list inside the other
_of_main: list[list] = []


def is_interrupted() -> bool:
    """Whether an interrupt has been noted, so that whoever starts something gives up waiting."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and any(_of_main)


@contextlib.contextmanager
def interrupts_noted() -> Iterator[list[int]]:
    """Within it Kernel > Interrupt raises nothing, but is noted in the list that is yielded; the
    end raises it.

    Raised at once, it might come between a program's start and the moment that its number is known,
    or between two steps of ending it: then the program would go on.
    """
    noted: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield noted  # only the main thread is interrupted
        return
    signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    _of_main.append(noted)
    try:
        yield noted
    finally:
        _of_main.pop()
        signal.signal(signal.SIGINT, before)
        if noted:
            before(signal.SIGINT, None)


@contextlib.contextmanager
def _reading(
    echo: Callable[[str], None] | None, as_terminal: bool, interrupts: list
) -> Iterator[tuple[int, list[bytes]]]:
    """Yields (where a program's output goes, the pieces of it that have come so far); the end waits
    for the last one, unless what has left the program's group keeps the output open.
    """
    source, sink = _terminal() if as_terminal else os.pipe()
    pieces: list[bytes] = []
    enough = threading.Event()
    reader = threading.Thread(target=_read_all, args=(source, pieces, echo, enough), daemon=True)
    reader.start()
    try:
        yield sink, pieces
    finally:
        os.close(sink)
        deadline = time.monotonic() + READING
        reader.join(LOOK)
        while reader.is_alive() and not interrupts and time.monotonic() < deadline:
            reader.join(LOOK)
        enough.set()


def start_program(
    command: Sequence[str], cwd: Path | str | None, environment: Mapping[str, str], sink: int
) -> subprocess.Popen[bytes]:
    """Start a command in a group of its own, without input, with its output into `sink`."""
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=sink,
        start_new_session=True,
    )


def free_memory() -> int:
    """Bytes that programs may still use here: of the machine, or of the container's share."""
    import psutil

    free: int = psutil.virtual_memory().available
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


def _see_out(
    process: subprocess.Popen,
    program: str,
    guard: IO[bytes],
    timeout: float,
    memory: int,
    interrupts: list,
) -> str:
    """Watch a program to its end, and end it where it must be; says what `_wait` says."""
    try:
        _watch(guard, process.pid)
        _limit_files(process.pid)
        return _wait(process, timeout, memory, interrupts)
    except subprocess.TimeoutExpired:
        name = Path(program).name
        raise Timeout(f"stopped after {timeout:g} s: {name} had not finished") from None
    finally:
        _kill_group(process)  # also ends children that the program left behind


def _wait(process: subprocess.Popen, timeout: float, memory: int, interrupts: list) -> str:
    """Wait for a program's end, or an interrupt; why it was killed, if for its memory, else "".

    Raises subprocess.TimeoutExpired.
    """
    deadline = time.monotonic() + timeout
    while not interrupts:
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
    return ""


def _limit_files(pid: int) -> None:
    """No file of the program grows without end, and its crash leaves no picture of its memory."""
    import resource  # not on Windows

    if not hasattr(resource, "prlimit"):  # macOS
        return
    try:
        hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
        most = MAX_FILE if hard == resource.RLIM_INFINITY else min(MAX_FILE, hard)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        # AddressSanitizer sets this one as it starts, and ends where it may not: the hard limit,
        # which it has read by then, stays.
        hard = resource.prlimit(pid, resource.RLIMIT_CORE)[1]
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, hard))
    except (OSError, ValueError):
        pass  # it has ended already, or is another user's by now (sudo)


def _read_all(
    source: int,
    pieces: list[bytes],
    echo: Callable[[str], None] | None,
    enough: threading.Event,
) -> None:
    """Read to the end, or until it is `enough`, and close; keep, and echo, up to MAX_OUTPUT."""
    try:
        _keep_all(_incoming(source, enough), pieces, echo)
    finally:
        os.close(source)  # by whom reads it: its number may soon be another's


def _keep_all(
    incoming: Iterable[bytes], pieces: list[bytes], echo: Callable[[str], None] | None
) -> None:
    size = 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end inside a character
    for piece in incoming:
        before = size
        size += len(piece)
        if size <= MAX_OUTPUT:
            pieces.append(piece)
            if echo:
                echo(decoder.decode(piece))
        elif before <= MAX_OUTPUT and echo:
            echo(f"\n[output cut after {MAX_OUTPUT:,} bytes]\n")


def _incoming(source: int, enough: threading.Event) -> Iterator[bytes]:
    """What comes out of a pipe or a terminal, up to its end, or until it is `enough`."""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while not enough.is_set():
            if not selector.select(LOOK):
                continue
            piece = _read(source)
            if not piece:
                return
            yield piece


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


#: Reads a group, waits for the pipe to close, then kills the group and all that bears the mark $0;
#: more than once, since a program that is just being started does not bear it yet. The guard itself
#: has a group of its own, and no mark.
_GUARD = """\
read -r group
read -r _
[ -z "$group" ] || kill -9 "-$group"
for again in 1 2 3; do
    for file in $(grep -ls -- "$0" /proc/[0-9]*/environ); do
        file=${file#/proc/}
        kill -9 "${file%/environ}"
    done
    sleep 1
done
"""


@contextlib.contextmanager
def _guarded(mark: str) -> Iterator[IO[bytes]]:
    """Yields a pipe to a process that kills what bears a mark as soon as this process is gone; the
    end kills it itself, and ends the guard.
    """
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    pipe: IO[bytes] = guard.stdin  # type: ignore[assignment]  # never None: it was asked for
    try:
        yield pipe
    finally:
        _kill_marked(mark)
        guard.kill()  # before its pipe closes: its group is gone, and the number may be another's
        guard.wait()
        pipe.close()


def _watch(guard: IO[bytes], group: int) -> None:
    """Tell a guard the group that it kills, too: all there is to go by where /proc is missing."""
    try:
        guard.write(f"{group}\n".encode())
        guard.flush()
    except OSError:
        pass  # somebody has ended the guard


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
