"""Programs that crash, hang or print without end must not take the notebook with them."""

import os
import shutil
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from tests.processes import alive, wait_until
from utils.files import ROOT
from utils.tools import process


def test_output_and_status():
    done = process.run(
        [
            sys.executable,
            "-c",
            "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)",
        ],
        timeout=600,
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
    done = process.run([sys.executable, "-c", program], timeout=600, echo=lambda _: seen.touch())
    assert done.output.split() == ["a", "b"]


def test_timeout_ends_the_whole_group(tmp_path):
    """A busy machine may need longer than a second to start anything: then it gets more."""
    marker = tmp_path / "pid"
    program = f"sleep 600 & echo $! > '{marker}.part'; mv '{marker}.part' '{marker}'; wait"
    seconds = 1
    while not marker.exists():
        with pytest.raises(process.Timeout, match=f"stopped after {seconds} s"):
            process.run(["sh", "-c", program], timeout=seconds)
        seconds *= 2
    wait_until(lambda: not alive(int(marker.read_text())))


def interrupt():
    """Kernel > Interrupt."""
    os.kill(os.getpid(), signal.SIGINT)


def test_interrupt_ends_the_program():
    pids = []

    def seen(pid):
        pids.append(int(pid))
        interrupt()

    with pytest.raises(KeyboardInterrupt):
        process.run(["sh", "-c", "echo $$; exec sleep 600"], timeout=600, echo=seen)
    assert not alive(pids[0])


def test_an_interrupt_while_it_is_started_ends_it():
    """Its number is not known yet, and as on a busy machine it does not bear the mark yet."""
    pids = []

    def start(command, cwd, environment, sink):
        started = process.start_program(command, cwd, {}, sink)
        pids.append(started.pid)
        interrupt()
        return started

    with pytest.raises(KeyboardInterrupt):
        process.run(["/bin/sleep", "600"], timeout=600, start=start)
    assert not alive(pids[0])


def test_an_interrupt_while_it_is_ended_leaves_nothing(monkeypatch):
    kill = process._kill_marked

    def interrupted(mark):
        interrupt()
        kill(mark)

    monkeypatch.setattr(process, "_kill_marked", interrupted)
    before = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt):
        process.run(["true"], timeout=600)
    assert psutil.Process().children() == before


#: Leaves the group, and the mark behind, and keeps the output open
ESCAPES = """
env -i setsid sh -c 'echo $$ > pid; exec sleep 600' &
while [ ! -s pid ]; do sleep 0.01; done
cat pid
"""


@pytest.fixture
def escaped():
    """Where to note numbers of processes that are ended after the test."""
    pids = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(shutil.which("setsid") is None, reason="there is no setsid")
def test_an_interrupt_does_not_wait_for_who_keeps_the_output_open(monkeypatch, tmp_path, escaped):
    kill = process._kill_marked

    def interrupted_soon(mark):
        kill(mark)
        threading.Timer(2 * process.LOOK, interrupt).start()

    monkeypatch.setattr(process, "_kill_marked", interrupted_soon)
    monkeypatch.setattr(process, "READING", 3600)  # longer than a test may take
    with pytest.raises(KeyboardInterrupt):
        process.run(["sh", "-c", ESCAPES], timeout=600, cwd=tmp_path)
    escaped.append(int((tmp_path / "pid").read_text()))
    assert alive(escaped[0])


@pytest.mark.skipif(shutil.which("setsid") is None, reason="there is no setsid")
def test_who_keeps_the_output_open_is_not_read_for_ever(monkeypatch, tmp_path, escaped):
    monkeypatch.setattr(process, "READING", 2 * process.LOOK)
    threads = threading.active_count()
    done = process.run(["sh", "-c", ESCAPES], timeout=600, cwd=tmp_path)
    escaped.append(int(done.output))
    assert alive(escaped[0])
    wait_until(lambda: threading.active_count() == threads)


def test_a_failure_ends_a_program_that_has_just_started(monkeypatch):
    pids = []

    def fails(pid):
        pids.append(pid)
        raise OverflowError

    monkeypatch.setattr(process, "_limit_files", fails)
    with pytest.raises(OverflowError):
        process.run(["sleep", "600"], timeout=600)
    assert not alive(pids[0])


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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("notebook_dies", [False, True])
def test_a_child_that_leaves_the_group_is_found(tmp_path, notebook_dies):
    """A daemon: a session of its own, and no parent any more."""
    marker = tmp_path / "pid"
    daemon = f"setsid sh -c \"echo \\$\\$ > '{marker}'; exec sleep 600\" &"
    wait = "sleep 600" if notebook_dies else f"while [ ! -s '{marker}' ]; do sleep 0.01; done"
    words = ["sh", "-c", f"{daemon} {wait}"]
    cell = f"from utils.tools import process\nprocess.run({words!r}, timeout=600)"
    notebook = subprocess.Popen([sys.executable, "-c", cell], cwd=ROOT)
    wait_until(lambda: marker.exists() and marker.read_text())
    if notebook_dies:
        notebook.kill()
    notebook.wait()
    wait_until(lambda: not alive(int(marker.read_text())))


HOG = "import time\nx = [bytearray(1 << 20) for _ in range(300)]\ntime.sleep(600)"


@pytest.mark.parametrize("below", [False, True], ids=["itself", "its child"])
def test_a_program_that_takes_too_much_memory_is_stopped(below):
    words = [sys.executable, "-c", HOG]
    if below:
        words = ["sh", "-c", '"$@"; true', "sh", *words]
    pieces = []
    done = process.run(words, timeout=600, memory=200 << 20, echo=pieces.append)
    assert done.returncode == -signal.SIGKILL
    assert "GB of memory" in done.output and pieces[-1] in done.output


def test_a_program_may_use_less_than_what_is_free():
    assert 0 < process.free_memory()
    done = process.run([sys.executable, "-c", "x = bytearray(50 << 20)"], timeout=600)
    assert (done.returncode, done.output) == (0, "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="macOS cannot limit another")
def test_one_file_does_not_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "MAX_FILE", 1 << 20)
    code = (
        "import resource, time\n"
        "while resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1 << 20: time.sleep(0.01)\n"
        "open('big', 'wb').write(bytes(4 << 20))"
    )
    done = process.run([sys.executable, "-c", code], timeout=600, cwd=tmp_path)
    assert done.returncode and (tmp_path / "big").stat().st_size <= 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_a_crash_leaves_no_picture_of_memory_and_the_hard_limit_stays(tmp_path):
    """A sanitizer reads both limits as it starts, and writes the hard one back."""
    import resource

    program = tmp_path / "limits.py"
    program.write_text(
        "import resource, time\n"
        "while resource.getrlimit(resource.RLIMIT_CORE)[0]:\n"
        "    time.sleep(0.01)\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE))\n"
    )
    done = process.run([sys.executable, str(program)], timeout=60)
    assert done.output.strip() == str((0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_time_out_is_a_time(timeout):
    with pytest.raises(ValueError, match="positive number of seconds"):
        process.run(["true"], timeout=timeout)


def test_endless_output_is_cut(tmp_path):
    """It prints on until it has been seen that no more is shown."""
    cut = tmp_path / "cut"
    pieces = []

    def echo(text):
        pieces.append(text)
        if "output cut" in text:
            cut.touch()

    program = f"while [ ! -e '{cut}' ]; do yes | head -c 100000; done"
    done = process.run(["sh", "-c", program], timeout=600, echo=echo)
    assert sum(map(len, pieces)) < process.MAX_OUTPUT + 1000
    assert len(done.output) <= process.MAX_OUTPUT
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
        timeout=600,
        echo=pieces.append,
    )
    assert done.output == "".join(pieces) == "µ✓"


def test_a_terminal_shows_lines_at_once_and_unchanged(tmp_path):
    """What a program printed before it hung or crashed is there: its line is seen while it runs."""
    seen = tmp_path / "seen"
    code = (
        "import os, pathlib, time\n"
        "print('first', 'line')\n"
        f"while not pathlib.Path({str(seen)!r}).exists(): time.sleep(0.01)\n"
        "os._exit(0)"
    )
    words = [sys.executable, "-c", code]
    done = process.run(words, timeout=600, echo=lambda _: seen.touch(), as_terminal=True)
    assert done.output == "first line\n"


def test_a_program_that_does_not_exist():
    with pytest.raises(FileNotFoundError):
        process.run(["no-such-program"], timeout=5)


def test_why_it_ended():
    assert process.exit_reason(3) == "exit status 3"
    assert process.exit_reason(-signal.SIGSEGV) == "crashed with SIGSEGV (invalid memory access)"


def test_another_python_finds_the_course_and_what_is_on_the_path(tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # -S: without the packages of this Python, where the course is installed, too
    program = "import only_here; from importlib.util import find_spec; print(find_spec('course'))"
    command = [sys.executable, "-S", "-P", "-c", program]
    done = process.run(command, timeout=600, env=process.python_environment(HOME=str(tmp_path)))
    assert done.returncode == 0, done.output
    assert str(ROOT) in done.output
