"""What becomes of processes: for tests that end some, or that nothing may outlive."""

import subprocess
import time

import psutil


def completed(command, **more):
    """Run a command to its end: its exit status, and what it wrote, as text."""
    return subprocess.run(command, capture_output=True, text=True, **more)


def alive(pid):
    """Whether a process runs. Not so a zombie: in a container nobody may wait for it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition):
    """However long it takes: the test's own time limit ends it."""
    while not condition():
        time.sleep(0.01)
