"""Run a command so that nothing outlives the cell: process group, time-out, output as it comes.

Not even the notebook's own death leaves anything behind: a guard, a shell that holds the end of a
pipe, kills the group when the other end closes. That is so on every Unix, however the notebook
ends, and for the command's children, too.
"""

import codecs
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


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


def run(
    command: Sequence[str],
    *,
    timeout: float,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    echo: Callable[[str], None] | None = None,
    as_terminal: bool = False,
) -> Completed:
    """Run `command` for at most `timeout` seconds; stdout and stderr come together.

    echo: called with each piece of output as it arrives (e.g. ``print_now``).
    as_terminal: the program writes to a terminal, so that C's printf comes out line by line; into a
        pipe it comes in blocks of some kilobytes, and what a program that hangs or crashes had
        printed before would be lost.
    Raises Timeout after killing the whole process group, FileNotFoundError when the program does
    not exist, and ValueError for a time that is not a positive number of seconds.
    KeyboardInterrupt (Kernel > Interrupt) kills the group too, as does the end of this process.
    """
    if not (timeout > 0 and math.isfinite(timeout)):
        raise ValueError(f"a time-out is a positive number of seconds, not {timeout:g}")
    source, sink = _terminal() if as_terminal else os.pipe()
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=env,
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
    guard = _guard(process.pid)
    pieces: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(source, pieces, echo), daemon=True)
    reader.start()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise Timeout(
            f"stopped after {timeout:g} s: {Path(command[0]).name} had not finished"
        ) from None
    finally:
        _kill_group(process)  # also ends children that the program left behind
        _dismiss(guard)
        reader.join(5)
        os.close(source)
    output = b"".join(pieces).decode(errors="replace")
    return Completed(list(command), process.returncode, output)


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


#: Waits for the pipe to close, then kills the group $0. It has a group of its own.
_GUARD = 'read -r _; kill -9 "-$0"'


def _guard(group: int) -> subprocess.Popen:
    """A process that kills a group as soon as this process is gone."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


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
