"""The table of CPU seconds: whatever works for a test counts with it, also what does not end."""

import os
import re
import subprocess
import sys

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
    command = [sys.executable, "-m", "pytest", "-p", "tests.spent", "-q", "."]
    environment = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    said = completed(command, cwd=tmp_path, env=environment).stdout
    assert re.search(r"CPU seconds: \d+ for 3 tests, \d+ to find them", said)
    dearest = said.partition("the dearest files:\n")[2].splitlines()
    busy, idle = (re.fullmatch(r" +(\d+\.\d) +(\d)  (\S+)", line) for line in dearest[:2])
    assert busy.groups()[1:] == ("1", "test_busy.py") and float(busy[1]) > 0.4
    assert idle.groups()[1:] == ("2", "test_idle.py")
