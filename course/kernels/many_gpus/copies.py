"""Without a GPU ranks are copies of one process that has imported what they need.

A rank is a fresh Python process, which imports PyTorch in seconds. CUDA does not survive a copy
(fork), and there is none here: so `launch` starts one process, which imports once what ranks have
been seen to import, and each rank is a copy of it with its own variables, folder, input and output.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys

from course.kernels.many_gpus import rank
from utils.engine import forced_cpu, gpu

#: Variables that are read when a process or a package starts: for other ones, another process
READ_AT_START = ("CUDA", "GLOO", "KMP", "LD_", "MKL", "NCCL", "NUMBA", "OMP", "OPENBLAS", "PYTHON")
READ_AT_START += ("PYTORCH", "TORCH", "TRITON")
MOST_BYTES = 1 << 20  # of a message
READING = 4096

_prepared = None
_wanted = {"numba.cloudpickle"}  # those of rank.HEAVY that the next ranks will import


def possible() -> bool:
    """Whether ranks may be copies: on Linux, where none uses a GPU."""
    return sys.platform == "linux" and (forced_cpu() or not gpu())


def start(environment: dict[str, str]) -> "Copy":
    """A rank with this environment."""
    global _prepared
    serves = os.getpid(), {n: v for n, v in environment.items() if n.startswith(READ_AT_START)}
    if _prepared is None or _prepared.serves != serves or _prepared.process.poll() is not None:
        forget()
        _prepared = Prepared(environment, serves)
    _wanted.update(sys.modules.keys() & {"torch"})  # what this process has, ranks will want
    return _prepared.copy(environment)


def remember(names: list[str]) -> None:
    """A rank has imported these of rank.HEAVY: the next ones will find them."""
    _wanted.update(names)


@atexit.register
def forget() -> None:
    """End the process that is copied, unless this one is a copy that has it from its original."""
    global _prepared
    if _prepared is not None:
        _prepared.socket.close()
        if _prepared.serves[0] == os.getpid():
            _prepared.process.wait()
    _prepared = None


class Prepared:
    """The process that is copied, our end of its socket, and whom it serves."""

    def __init__(self, environment, serves):
        self.serves = serves
        self.socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            command = [sys.executable, "-m", __name__]
            self.process = subprocess.Popen(command, env=environment, stdin=its)

    def copy(self, environment):
        """A Copy of the process."""
        theirs, ours = zip(os.pipe(), reversed(os.pipe()), reversed(os.pipe()), strict=True)
        message = json.dumps([environment, os.getcwd(), sorted(_wanted)]).encode()
        try:
            socket.send_fds(self.socket, [message], theirs)
        finally:
            for end in theirs:
                os.close(end)
        return Copy(*ours)


class Copy:
    """A rank, used as a `subprocess.Popen` is: `stdin`, `stdout`, `poll`, `wait`, `terminate`."""

    def __init__(self, stdin, stdout, status):
        self.stdin = open(stdin, "wb", buffering=0)
        self.stdout = open(stdout, errors="replace")
        self._status, self._said = open(status, "rb", buffering=0), b""
        self.returncode = None
        self.pid = self._number(None)

    def poll(self):
        """The exit status, or minus the signal; None while it runs."""
        return self._ended(0)

    def wait(self, timeout=None):
        """The same at its end; raises subprocess.TimeoutExpired."""
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired("a rank", timeout)
        return self.returncode

    def terminate(self):
        self._send(signal.SIGTERM)

    def kill(self):
        self._send(signal.SIGKILL)

    def _send(self, number):
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _ended(self, timeout):
        if self.returncode is None:
            self.returncode = self._number(timeout)
            if self.returncode is not None:
                self._status.close()
        return self.returncode

    def _number(self, timeout):
        """The next number that is said of it, a line each; None where none comes in time."""
        while b"\n" not in self._said:
            ready, _, _ = select.select([self._status], [], [], timeout)
            if not ready:
                return None
            said = self._status.read(READING)
            if not said:  # whoever waits for the rank was killed
                return -signal.SIGKILL
            self._said += said
        line, _, self._said = self._said.partition(b"\n")
        return int(line)


# ---- the process that is copied


def serve():
    """Make a copy for each message on standard input, a socket. Returns in a copy: True."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Kernel > Interrupt is for the ranks
    line = socket.socket(fileno=os.dup(0))
    while True:
        message, ends, _, _ = socket.recv_fds(line, MOST_BYTES, 3)
        reap(os.WNOHANG)
        if not message:
            reap(0)
            return False
        environment, folder, modules = json.loads(message)
        for name in modules:
            importlib.import_module(name)
        gc.freeze()  # what is copied is no garbage: a collection would copy its pages
        if os.fork() == 0:
            line.close()
            return attended(ends, environment, folder)
        for end in ends:
            os.close(end)


def reap(options):
    """Wait for copies' attendants that have ended, or with 0 for all."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def attended(ends, environment, folder):
    """In a copy: be the one that starts the rank, and says its number and how it ended; or the
    rank. Then True.
    """
    *own, status = ends
    pid = os.fork()
    if pid == 0:
        os.close(status)
        become(*own, environment, folder)
        return True
    for end in own:
        os.close(end)
    for number in (lambda: pid, lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])):
        with contextlib.suppress(BrokenPipeError):  # the notebook has gone
            os.write(status, b"%d\n" % number())
    os._exit(0)


def become(stdin, stdout, environment, folder):
    """Be as a process with this input, output, environment and folder would be."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for end, number in ((stdin, 0), (stdout, 1), (stdout, 2)):
        os.dup2(end, number)
    os.close(stdin)
    os.close(stdout)
    os.chdir(folder)
    sys.path[0] = folder
    os.environ.clear()
    os.environ.update(environment)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # or all ranks would draw the same


if __name__ == "__main__":
    if serve():
        rank.work()
