"""Notebooks' kernels as copies of one Python that has imported what most of them import.

A plugin of pytest. PyTorch, Numba and matplotlib take longer to import than many a chapter's cells
to run. With it the first kernel of a test run starts a process, which imports these packages once;
each kernel is a copy of that process (a fork) with its own folder, variables, output and end.
Nothing of the course is imported before: a chapter's first cell finds it as it always does. At
night kernels start as JupyterLab starts them (tests/tiers.py).
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys

#: What most chapters import, besides the course
PACKAGES = """
    numpy numba matplotlib.pyplot matplotlib_inline.backend_inline ipywidgets nbformat hypothesis
    ipykernel.kernelapp ipykernel.ipkernel ipykernel.zmqshell torch
""".split()
#: Variables that these packages, Python or the C library read when they start: not the same ones,
#: not a copy
READ_AT_START = ("IPYTHON", "JUPYTER", "KMP", "LD_", "MALLOC", "MKL", "MPL", "NUMBA", "OMP")
READ_AT_START += ("OPENBLAS", "PYTORCH", "TORCH", "TRITON", "XDG", "HOME", "LANG", "LC_")
#: How many new objects make a collection, and how many of these an older generation's
SELDOM = 20_000, 20, 20
KERNEL = ["-m", "ipykernel_launcher"]
MOST_BYTES = 1 << 20  # of a message
_CHILD_SUBREAPER = 36  # of prctl


class Prepared:
    """The process that has imported PACKAGES, and our end of its socket."""

    def __init__(self, env):
        self.at_start = read_at_start(env)
        self.socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            env = {name: value for name, value in env.items() if name != "PYTHONPATH"}  # a copy's
            self.process = subprocess.Popen([sys.executable, __file__], env=env, stdin=its)
        atexit.register(self.end)

    def end(self):
        self.socket.close()
        self.process.wait()

    def copy(self, command, cwd, env, sinks):
        """The process id of a copy that does what `command` does; it is this process's child."""
        message = json.dumps([command, str(cwd or os.getcwd()), env]).encode()
        with adopting():
            socket.send_fds(self.socket, [message], sinks)
            return int(self.socket.recv(MOST_BYTES))


@contextlib.contextmanager
def adopting():
    """Here orphans below this process become its children, as if it had started them."""
    libc = ctypes.CDLL(None)
    libc.prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_CHILD_SUBREAPER, 0, 0, 0, 0)


def read_at_start(env):
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START)}


class Copy:
    """A kernel, used as jupyter_client uses a `subprocess.Popen`."""

    stdout = stderr = None

    def __init__(self, pid):
        self.pid, self.returncode = pid, None
        self.stdin = io.BytesIO()

    def poll(self):
        return self._ended(os.WNOHANG)

    def wait(self):
        return self._ended(0)

    def _ended(self, options):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


prepared = None


def start(command, *, cwd=None, env=None, stdin=None, stdout=None, stderr=None, **others):
    """What `subprocess.Popen` does for jupyter_client: a Copy, where that is the same."""
    global prepared
    sinks = [sink_of(stdout, 1), sink_of(stderr, 2)]
    env = dict(os.environ if env is None else env)
    if command[1:3] == KERNEL and None not in sinks:
        prepared = prepared or Prepared(env)
        if prepared.at_start == read_at_start(env):
            return Copy(prepared.copy(command[2:], cwd, env, sinks))
    return subprocess.Popen(
        command, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, **others
    )


def sink_of(given, number):
    """The descriptor that an argument of Popen stands for, or None where it has to be made."""
    if given is None:
        return number
    if isinstance(given, int):
        return given if given >= 0 else None  # PIPE and the like
    return given.fileno()


def pytest_configure(config):
    """Called by pytest before it looks for tests."""
    from utils import has_gpu

    on_linux = sys.platform == "linux"
    if config.getoption("--tier", "nightly") == "test" and on_linux and not has_gpu():
        from jupyter_client import launcher

        launcher.Popen = start


# ---- the process that is copied, which imports nothing of the course


def serve():
    """For each message on standard input, a socket, say the process id of a new copy."""
    del sys.path[0]  # this folder, which no kernel has
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    gc.disable()
    for name in PACKAGES:
        importlib.import_module(name)
    gc.freeze()  # what is copied is no garbage: a collection would look at it, and copy its pages
    gc.set_threshold(*SELDOM)
    gc.enable()
    line = socket.socket(fileno=os.dup(0))
    while True:
        message, sinks, _, _ = socket.recv_fds(line, MOST_BYTES, 2)
        if not message:
            return None
        told, tell = os.pipe()
        between = os.fork()  # it ends at once, and whoever asks adopts the kernel
        if between == 0:
            if os.fork():
                os._exit(0)
            os.setsid()  # before anybody knows of it: jupyter_client signals its process group
            os.write(tell, b"%d" % os.getpid())
            line.close()
            os.close(told)
            os.close(tell)
            return become(sinks, *json.loads(message))
        os.waitpid(between, 0)
        line.send(os.read(told, MOST_BYTES))
        for done in (told, tell, *sinks):
            os.close(done)


def become(sinks, command, cwd, env):
    """In a copy: what Python does with `-m ipykernel_launcher` in this folder."""
    for number, sink in enumerate([os.open(os.devnull, os.O_RDONLY), *sinks]):
        os.dup2(sink, number)
        os.close(sink)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = command
    given = env.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = ["", *filter(None, given)]
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve()
