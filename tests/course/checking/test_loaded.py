"""CUDA C answers run in copies of a loaded process: as apart from the notebook as in a process
each.
"""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from course.checking import engines, loaded
from course.checking.checker import check_answer
from course.exercises import EXERCISES
from tests.needs import cpp_compiler
from utils import has_gpu
from utils.tools import process

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or has_gpu(), reason="copies are made on Linux, without a GPU"
)


@pytest.fixture(autouse=True)
def more_patient(monkeypatch):
    """However busy the machine is: who was killed is waited for."""
    monkeypatch.setattr(loaded, "ENDING", 900)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Runs Python in a copy in place of a launch: a function of its text and of variables."""
    child = tmp_path / "child.py"
    text = loaded.CHILD.read_text()
    for of_a_launch, here in (("main(*arguments)", "exec(arguments[0])"), ("import_all()", "pass")):
        assert f"    {of_a_launch}\n" in text
        text = text.replace(f"    {of_a_launch}\n", f"    {here}\n")
    child.write_text(text)
    monkeypatch.setattr(loaded, "CHILD", child)
    loaded.forget()
    yield lambda text, **variables: engines.run_child([text], variables)
    loaded.forget()


def test_each_copy_has_its_own_variables_and_memory(script):
    text = (
        "print(os.environ.get('CUDA_CPU_SEED'), sys.modules.get('mine')); sys.modules['mine'] = 1"
    )
    assert script(text, CUDA_CPU_SEED="3") == (0, "3 None\n")
    first = loaded._loaded
    assert script(text) == (0, "None None\n")
    assert loaded._loaded is first, "one process serves both"


def test_its_output_status_and_folder_are_those_of_a_process(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert script("os.system('pwd'); print('last'); sys.exit(3)") == (3, f"{tmp_path}\nlast\n")
    status, output = script("raise ValueError('of an answer')")
    assert status == 1 and output.endswith("ValueError: of an answer\n")
    assert script("os.kill(os.getpid(), 11)")[0] == -signal.SIGSEGV


def test_limits_end_with_the_copy(script):
    assert script("limit(0); exec('while 1: pass')")[0] == -signal.SIGXCPU
    assert script("import resource; print(resource.getrlimit(resource.RLIMIT_CPU)[0])") == (
        0,
        "-1\n",
    )


def test_what_an_answer_leaves_behind_is_killed(script, tmp_path):
    note = tmp_path / "pid"
    text = f"""
if os.fork() == 0:
    os.setsid()
    open({str(note)!r}, "w").write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists({str(note)!r}) or not open({str(note)!r}).read():
    time.sleep(0.01)
"""
    assert script(text)[0] == 0
    left = int(note.read_text())
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == "zombie"


def test_a_time_out_ends_the_copy_and_the_next_one_answers(script, monkeypatch):
    script("pass")  # it is loaded
    monkeypatch.setattr(engines, "CHILD_SECONDS", 1)
    assert script("time.sleep(600)") == (None, "")
    monkeypatch.setattr(engines, "CHILD_SECONDS", 900)
    assert script("print('next')") == (0, "next\n")


def test_an_interrupt_ends_the_copy_and_the_next_one_answers(script, tmp_path):
    note = tmp_path / "runs"

    def interrupt():
        while not note.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    script("pass")  # it is loaded
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        script(f"open({str(note)!r}, 'x'); time.sleep(600)")
    assert script("print('next')") == (0, "next\n")


def test_an_interrupt_ends_the_wait_for_a_copy_that_does_not_come(script, monkeypatch, tmp_path):
    note = tmp_path / "loads"
    loaded.CHILD.write_text(f"import time; open({str(note)!r}, 'x'); time.sleep(600)")

    def interrupt():
        while not note.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    started = []

    def start_program(*given):
        started.append(given)
        raise OSError

    monkeypatch.setattr(process, "start_program", start_program)
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        script("pass")
    assert not started, "the answer is not started in another way"
    assert loaded._loaded is None and not loaded._turn.locked()


def test_an_answer_that_stops_the_loaded_process_ends_too(script, monkeypatch):
    monkeypatch.setattr(engines, "CHILD_SECONDS", 1)
    monkeypatch.setattr(loaded, "ENDING", 1)
    script("pass")
    assert script(f"os.kill({loaded._loaded.child.pid}, 19); time.sleep(600)") == (None, "")
    monkeypatch.setattr(engines, "CHILD_SECONDS", 900)
    monkeypatch.setattr(loaded, "ENDING", 900)
    assert script("sys.exit(7)") == (7, "")


def test_threads_that_check_at_once_get_their_own_answers(script):
    with ThreadPoolExecutor(4) as pool:
        texts = [f"print({n}); time.sleep(0.2); sys.exit({n})" for n in range(4)]
        assert list(pool.map(script, texts)) == [(n, f"{n}\n") for n in range(4)]
    assert script("sys.exit(7)") == (7, ""), "and then the copies' turn comes again"
    assert not loaded._turn.locked()


def test_without_the_process_there_is_one_for_each_answer(script):
    script("pass")
    loaded._loaded.child.kill()
    assert script("print('alone')") == (0, "alone\n")
    assert script("print('again')") == (0, "again\n")


#: In an answer: end the process that it is a copy of; never this one, should it run without a copy
END_PARENT = f"parent = os.getppid(); parent in (1, {os.getpid()}) or os.kill(parent, 9)"


def test_a_copy_lost_with_the_loaded_process_is_started_once_more(script, tmp_path):
    script("pass")
    note = tmp_path / "lost"
    text = f"""
if not os.path.exists({str(note)!r}):
    open({str(note)!r}, "x")
    {END_PARENT}
    time.sleep(600)
print("whole")
"""
    assert script(text) == (0, "whole\n")


def test_an_answer_that_ends_loaded_processes_reaches_no_other(script, tmp_path):
    says = 'line.send(b"%d" % pid)'
    text = loaded.CHILD.read_text()
    assert says in text
    loaded.CHILD.write_text(text.replace(says, f"time.sleep(0.3); {says}"))
    note = tmp_path / "ran"
    ends = f"print(file=open({str(note)!r}, 'a')); {END_PARENT}; time.sleep(600)"
    status, output = script(ends)
    assert status == loaded.GONE
    assert note.read_text() == "\n\n", "it ran twice"
    assert engines.failure_of(status, output) == ("not_checked", engines.LOST_TWICE)
    assert script("print('next')") == (0, "next\n")


def test_what_the_system_kills_is_not_said_to_loop(script):
    reason, message = engines.failure_of(*script("os.kill(os.getpid(), 9)"))
    assert reason == "crashed" and "memory" in message


def test_an_update_is_loaded(script, tmp_path, monkeypatch):
    source = tmp_path / "utils" / "cpu" / "engine.py"
    source.parent.mkdir(parents=True)
    source.touch()
    monkeypatch.setattr(loaded, "ROOT", tmp_path)
    script("pass")
    first = loaded._loaded
    script("pass")
    assert loaded._loaded is first
    later = source.stat().st_mtime_ns + 1
    os.utime(source, ns=(later, later))
    script("pass")
    assert loaded._loaded is not first


def test_it_ends_with_the_notebook(script):
    script("pass")
    served = loaded._loaded
    served.socket.close()  # as when the notebook is killed
    assert served.child.wait(600) == 0


def test_an_answer_cannot_reach_the_loaded_process(script):
    ends = "[os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if n != '3']"
    status, output = script(f"print([end for end in {ends} if 'socket' in end])")
    assert (status, output) == (0, "[]\n")


def test_checks_use_it(tmp_path):
    cpp_compiler()
    exercise = EXERCISES["synchronization.warp_sum"]
    path = tmp_path / Path(exercise.path).name
    path.write_text(exercise.solution)
    loaded.forget()
    assert check_answer(exercise, path).solved
    assert loaded._loaded.serves[0] == os.getpid()
