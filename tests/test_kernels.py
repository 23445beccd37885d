"""Kernels that are copies of one process: each is as one that JupyterLab starts."""

import json
import os
import signal
import subprocess
import sys

import pytest
from jupyter_client import launcher
from jupyter_client.manager import start_new_kernel

from tests import kernels

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is copied")
TELLS = """
import json, os, sys
left_out = "JPY_PARENT_PID", "PYTEST_CURRENT_TEST"
variables = {name: value for name, value in os.environ.items() if name not in left_out}
course = sorted(name for name in sys.modules if name.split(".")[0] in ("course", "utils", "tests"))
engines = [name for name in ("numba.cuda", "triton") if name in sys.modules]
of_processes = os.getppid(), os.getsid(0) == os.getpid()
print(json.dumps([sys.path, os.getcwd(), variables, course, engines, of_processes]))
"""


@pytest.fixture(autouse=True)
def prepared_for_this(monkeypatch):
    """A process to copy, also where a test before has set what packages read at their start."""
    prepared = kernels.prepared
    if prepared and prepared.at_start != kernels.read_at_start(os.environ):
        monkeypatch.setattr(kernels, "prepared", None)


@pytest.fixture
def kernel(monkeypatch):
    """start(popen, folder): (manager, client) of a kernel that is ended with the test."""
    started = []

    def start(popen, folder):
        monkeypatch.setattr(launcher, "Popen", popen)
        manager, client = start_new_kernel(kernel_name="python3", cwd=folder)
        started.append((manager, client))
        return manager, client

    yield start
    for manager, client in started:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def said(client, code):
    """What a cell prints, and the name of the error that it raises, if any."""
    heard = []

    def hear(message):
        content = message["content"]
        heard.append(content.get("text") or content.get("ename") or "")

    client.execute_interactive(code, output_hook=hear, timeout=120)
    return "".join(heard)


def test_a_copy_is_as_a_kernel_that_is_started(kernel, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    (manager, copy), (_, other) = (
        kernel(popen, tmp_path) for popen in (kernels.start, subprocess.Popen)
    )
    assert isinstance(manager.provisioner.process, kernels.Copy)
    assert json.loads(said(copy, TELLS)) == json.loads(said(other, TELLS))
    assert said(copy, "'torch' in __import__('sys').modules or 1 / 0") == ""


def test_a_copy_is_interrupted_and_ends(kernel, tmp_path):
    manager, client = kernel(kernels.start, tmp_path)
    process = manager.provisioner.process
    assert "KeyboardInterrupt" in said(
        client, f"import os, time; os.kill(os.getpid(), {signal.SIGINT:d}); time.sleep(60)"
    )
    assert process.poll() is None
    manager.shutdown_kernel(now=True)
    assert process.returncode == -signal.SIGKILL


def test_variables_that_are_read_at_the_start_ask_for_a_process(tmp_path):
    command = [sys.executable, *kernels.KERNEL, "--version"]
    different = dict(os.environ, OMP_NUM_THREADS="7")
    process = kernels.start(command, env=different, stdout=subprocess.DEVNULL)
    assert isinstance(process, subprocess.Popen) and process.wait() == 0


def test_a_copy_leads_its_own_process_group_before_anybody_knows_of_it():
    """jupyter_client interrupts a kernel's group when it ends it: that must not be the tests'."""
    with open(os.devnull, "w") as nowhere:
        for _ in range(20):
            command = [sys.executable, *kernels.KERNEL, "--version"]
            process = kernels.start(command, stdout=nowhere, stderr=nowhere)
            try:
                assert os.getpgid(process.pid) == process.pid
            finally:
                process.kill()
                process.wait()
