"""Programs that crash, hang or print without end must not take the notebook with them."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from utils.files import ROOT
from utils.tools import process


def test_output_and_status():
    done = process.run(
        [
            sys.executable,
            "-c",
            "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)",
        ],
        timeout=30,
    )
    assert done.returncode == 3
    assert "out" in done.output and "err" in done.output


def test_output_comes_while_it_runs(tmp_path):
    """The program goes on only when its first line has been seen."""
    seen = tmp_path / "seen"
    program = (
        "import pathlib, time\n"
        "print('a', flush=True)\n"
        f"while not pathlib.Path({str(seen)!r}).exists(): time.sleep(0.01)\n"
        "print('b')"
    )
    done = process.run([sys.executable, "-c", program], timeout=60, echo=lambda _: seen.touch())
    assert done.output.split() == ["a", "b"]


def test_timeout_ends_the_whole_group(tmp_path):
    marker = tmp_path / "pid"
    with pytest.raises(process.Timeout, match="stopped after 1 s"):
        process.run(["sh", "-c", f"sleep 60 & echo $! > '{marker}'; wait"], timeout=1)
    assert not alive(int(marker.read_text()))


def test_interrupt_ends_the_program():
    """Kernel > Interrupt raises KeyboardInterrupt in the main thread."""
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        process.run(["sleep", "60"], timeout=60)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_notebook(tmp_path, end):
    """Kernel > Restart, and a server that is told to end: the kernel dies in the middle of a cell,
    and with it the program and the program's children.
    """
    marker = tmp_path / "pids"
    command = f"sleep 600 & echo $! $$ > '{marker}.part'; mv '{marker}.part' '{marker}'; wait"
    cell = f"from utils.tools import process\nprocess.run(['sh', '-c', {command!r}], timeout=600)"
    notebook = subprocess.Popen([sys.executable, "-c", cell], cwd=ROOT)
    try:
        wait_until(marker.exists)
    finally:
        notebook.send_signal(end)
        notebook.wait()
    for pid in marker.read_text().split():
        wait_until(lambda pid=pid: not alive(int(pid)))


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_time_out_is_a_time(timeout):
    with pytest.raises(ValueError, match="positive number of seconds"):
        process.run(["true"], timeout=timeout)


def wait_until(condition):
    """However long it takes: the test's own time limit ends it."""
    while not condition():
        time.sleep(0.01)


def test_endless_output_is_cut():
    pieces = []
    with pytest.raises(process.Timeout):
        process.run(["yes"], timeout=1, echo=pieces.append)
    assert sum(map(len, pieces)) < process.MAX_OUTPUT + 1000
    assert "output cut" in pieces[-1]


def test_special_characters_split_over_reads():
    pieces = []
    done = process.run(
        [
            sys.executable,
            "-c",
            "import os, time\nb = 'µ✓'.encode()\nfor i in range(len(b)):\n"
            "    os.write(1, b[i:i+1]); time.sleep(0.05)",
        ],
        timeout=30,
        echo=pieces.append,
    )
    assert done.output == "".join(pieces) == "µ✓"


def test_a_terminal_shows_lines_at_once_and_unchanged():
    code = "import sys, time; print('first', 'line'); time.sleep(30)"
    pieces = []
    with pytest.raises(process.Timeout):
        process.run([sys.executable, "-c", code], timeout=2, echo=pieces.append, as_terminal=True)
    assert "".join(pieces) == "first line\n"


def test_a_program_that_does_not_exist():
    with pytest.raises(FileNotFoundError):
        process.run(["no-such-program"], timeout=5)


def test_why_it_ended():
    assert process.exit_reason(3) == "exit status 3"
    assert process.exit_reason(-signal.SIGSEGV) == "crashed with SIGSEGV (invalid memory access)"


def alive(pid):
    for _ in range(20):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        # A killed child of init may be a zombie for a moment.
        try:
            if open(f"/proc/{pid}/stat").read().split()[2] == "Z":
                return False
        except OSError:
            return False
        time.sleep(0.1)
    return True
