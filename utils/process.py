"""Run a command so that nothing of it outlives the cell: its own process group, a time-out, output as it comes."""

import codecs
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
    """A finished command: its exit status (negative: the signal that ended it) and all it printed."""

    command: list[str]
    returncode: int
    output: str


#: A program that prints without end must not fill the notebook (or the disk behind it).
MAX_OUTPUT = 200_000


def run(command: Sequence[str], *, timeout: float, cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None, echo: Callable[[str], None] | None = None) -> Completed:
    """Run `command` for at most `timeout` seconds; stdout and stderr come together, as a terminal shows them.

    echo: called with each piece of output as it arrives (e.g. ``print_now``).
    Raises Timeout after killing the whole process group, and FileNotFoundError when the program does not exist.
    KeyboardInterrupt (Kernel > Interrupt) kills the group too.
    """
    process = subprocess.Popen(list(command), cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    pieces: list[bytes] = []

    def read():
        size = 0
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode  # a read may end inside a character
        while piece := os.read(process.stdout.fileno(), 65536):
            size += len(piece)
            if size <= MAX_OUTPUT:
                pieces.append(piece)
                if echo:
                    echo(decode(piece))
            elif size - len(piece) <= MAX_OUTPUT and echo:
                echo(f"\n[output cut after {MAX_OUTPUT:,} bytes]\n")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise Timeout(f"stopped after {timeout:g} s: {Path(command[0]).name} had not finished") from None
    finally:
        _kill_group(process)  # also ends children that the program left behind
        reader.join(5)
        process.stdout.close()
    return Completed(list(command), process.returncode, b"".join(pieces).decode(errors="replace"))


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
    """In words why a program ended: ``exit status 3`` or ``crashed with SIGSEGV (invalid memory access)``."""
    if returncode >= 0:
        return f"exit status {returncode}"
    meaning = {"SIGSEGV": "invalid memory access", "SIGABRT": "abort, often a failed assert",
               "SIGFPE": "integer division by zero", "SIGBUS": "misaligned or invalid memory access",
               "SIGKILL": "killed, often for using too much memory"}
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"crashed with {name}" + (f" ({meaning[name]})" if name in meaning else "")
