"""The table of CPU seconds: whatever works for a test counts with it, also what does not end."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

from tests import spent
from tests.processes import completed
from utils.files import ROOT

#: Uses so much CPU time, says so, and stays until its input ends
BUSY = """
import time
while time.process_time() < 0.5: pass
print("done", flush=True)
input()
"""
LINE = re.compile(r" +(\d+\.\d) +(\d)  (\S+)")
TESTS = f"""
import subprocess, sys
import pytest

@pytest.fixture(scope="module")
def child():
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with subprocess.Popen([sys.executable, "-c", {BUSY!r}], **pipes) as child:
        yield child
        print(file=child.stdin, flush=True)

def test_a(child): assert child.stdout.readline() == "done\\n"
"""


def test_a_child_counts_while_it_lives_and_afterwards():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    before = spent.cpu_seconds()
    with subprocess.Popen([sys.executable, "-c", BUSY], **pipes) as child:
        assert child.stdout.readline() == "done\n"
        assert str(child.pid) in spent.living(os.getpid())
        assert spent.cpu_seconds() - before > 0.45
        print(file=child.stdin, flush=True)
    assert str(child.pid) not in spent.living(os.getpid())
    assert spent.cpu_seconds() - before > 0.45


def test_files_are_listed_with_their_seconds(tmp_path):
    (tmp_path / "test_busy.py").write_text(TESTS)
    (tmp_path / "test_idle.py").write_text("def test_b(): pass\ndef test_c(): pass\n")
    (tmp_path / "test_waits.py").write_text("import time\ndef test_d(): time.sleep(0.7)\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.spent", "-q", "."]
    environment = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    said = completed(command, cwd=tmp_path, env=environment).stdout
    assert re.search(r"CPU seconds: \d+ for 4 tests, \d+ to find them", said)
    _, dearest, waited = re.split("the dearest files:\n|files that waited longest:\n", said)
    busy, idle, waits = map(LINE.fullmatch, dearest.splitlines()[:3])
    assert busy.groups()[1:] == ("1", "test_busy.py") and float(busy[1]) > 0.4
    assert {idle[3], waits[3]} == {"test_idle.py", "test_waits.py"}
    longest = next(line for line in map(LINE.fullmatch, waited.splitlines()) if line[3] != busy[3])
    assert longest[3] == "test_waits.py" and float(longest[1]) > 0.6
    assert re.search(r"^without work: \d+ s of a core, in tenths of the run( \d+){10}$", said, re.M)


def test_idle_seconds_stand_in_their_tenth_and_beside_who_ran(monkeypatch):
    clock = SimpleNamespace(now=0.0, idle=0.0)
    monkeypatch.setattr(spent.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(spent, "idle_seconds", lambda: clock.idle)
    cores = spent.Cores()
    for now, idle, worker, file in [
        (1, 0, "gw0", "a"),
        (50, 4, "gw1", "b"),  # so far only a reported
        (100, 10, "gw0", "b"),
    ]:
        clock.now, clock.idle = now, idle
        cores.look(worker, file)
    assert cores.tenths() == [0, 0, 0, 0, 0, 4, 0, 0, 0, 6]
    assert cores.beside == {"a": 7, "b": 3}
    said = list(cores.lines())
    assert "10 s of a core, in tenths of the run 0 0 0 0 0 4 0 0 0 6" in said[1]
    assert said[2].startswith("workers were done 50 0 s before the last")
