"""One process a GPU: start a function on every rank, from a script or from a notebook's cell.

    def work(group, n):
        print("I am", group.rank, "of", group.size)     # appears in the cell, after its rank
        return group.all_gather(n * group.rank)         # every rank gets every rank's object

    results = launch(work, ranks=2, arguments=[10])     # [[0, 10], [0, 10]]

Each rank is a fresh Python process (CUDA does not survive a fork) whose device 0 is GPU number
`rank`; without a GPU it is a copy of one that has imported what ranks need (copies.py). The
function may be a notebook's own: it travels by value. What a rank raises is raised here as
RankError with the rank and its traceback, and the other ranks are ended.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Listener, wait
from pathlib import Path

from course.kernels.many_gpus import copies
from course.kernels.many_gpus.rank import ADDRESS, KEY, RANKS, by_value
from utils.engine import forced_cpu, gpu
from utils.tools.diagnostics import LearnerError
from utils.tools.process import python_environment

VISIBLE = "CUDA_VISIBLE_DEVICES"
#: Seconds that ranks may stand at one `all_gather` while another rank does something else.
PATIENCE = 300.0
#: Seconds in which a rank that must end may put its things in order.
KINDLY = 5.0
#: Seconds until a rank that says no more has ended, and until the last of what it printed is read.
READING = 20.0


class RankError(LearnerError):
    """A rank failed: the message has its number and what it raised."""


def launch(
    function,
    ranks: int,
    arguments=(),
    *,
    timeout: float = 600,
    echo=print,
    patience: float = PATIENCE,
) -> list:
    """Call function(group, *arguments) in one process a rank; the results by rank.

    echo: called with each line that a rank prints. timeout: seconds for everything.
    Raises RankError for the first rank that fails, ends early, or does not come where others wait.
    """
    payload = by_value((function, tuple(arguments)))
    key = os.urandom(16)
    with tempfile.TemporaryDirectory() as folder:
        with Listener(str(Path(folder) / "ranks"), authkey=key) as listener:
            processes = [_start(rank, ranks, listener.address, key, echo) for rank in range(ranks)]
            try:
                connections = _connect(listener, processes)
                for connection in connections:
                    connection.send((payload, folder))
                return _serve(connections, processes, time.monotonic() + timeout, patience)
            finally:
                _end(processes)


def _devices(rank) -> dict[str, str]:
    """Every rank sees all GPUs, its own first: a library that takes device 0 is right."""
    if forced_cpu() or not gpu():
        return {}
    import torch

    devices = [str(device) for device in range(torch.cuda.device_count())]
    if os.environ.get(VISIBLE):
        devices = os.environ[VISIBLE].split(",")
    own = rank % len(devices)  # more ranks than GPUs share them: right, but no use for speed
    return {VISIBLE: ",".join(devices[own:] + devices[:own])}


def _start(rank, ranks, address, key, echo):
    own = {RANKS: f"{rank}/{ranks}", ADDRESS: address, KEY: key.hex(), **_devices(rank)}
    environment = python_environment(PYTHONUNBUFFERED="1", **own)
    process = copies.start(environment) if copies.possible() else _started(environment)
    _echo(rank, process, echo)
    return process


def _started(environment):
    return subprocess.Popen(
        [sys.executable, "-m", "course.kernels.many_gpus.rank"],
        env=environment,
        stdin=subprocess.PIPE,  # it closes with this process, however that ends
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def _echo(rank, process, echo):
    """Start to hand on what a rank prints, with the rank in front; keeps the last lines."""
    process.lines = []

    def read():
        for line in process.stdout:
            process.lines = [*process.lines[-40:], line.rstrip("\n")]
            echo(f"[rank {rank}] {line.rstrip()}")

    process.reader = threading.Thread(target=read, daemon=True)
    process.reader.start()


def _connect(listener, processes):
    """The connections by rank; RankError for a process that ends before it has connected."""
    connections = [None] * len(processes)
    listener._listener._socket.settimeout(1.0)
    while None in connections:
        try:
            connection = listener.accept()
        except TimeoutError:
            for rank, process in enumerate(processes):
                if process.poll() is not None:
                    raise RankError(_ended(rank, process)) from None
            continue
        connections[connection.recv()] = connection
    return connections


def _serve(connections, processes, end, patience):
    """Answer the ranks' all_gathers until all are done."""
    results, waiting, since = {}, {}, None
    while len(results) < len(connections):
        open_ranks = [rank for rank in range(len(connections)) if rank not in results]
        ready = wait([connections[rank] for rank in open_ranks], timeout=1.0)
        for connection in ready:
            rank = connections.index(connection)
            kind, *message = _receive(rank, connection, processes[rank])
            if kind == "error":
                raise RankError(f"rank {rank} of {len(connections)} failed:\n{message[0]}")
            if kind == "done":
                results[rank] = pickle.loads(message[0])
                copies.remember(message[1])
            else:
                waiting[rank] = message
                since = since or time.monotonic()
        if len(waiting) == len(connections):
            if len({call for call, _, _ in waiting.values()}) > 1:
                raise RankError(_differ(waiting))
            values = [waiting[rank][2] for rank in range(len(connections))]
            waiting, since = {}, None
            for connection in connections:
                connection.send(values)
        if waiting and any(rank in results for rank in range(len(connections))):
            raise RankError(_missed(waiting, sorted(results), "has ended"))
        if since and time.monotonic() - since > patience:
            late = [rank for rank in range(len(connections)) if rank not in waiting]
            raise RankError(_missed(waiting, late, f"did not come in {patience:g} s"))
        if time.monotonic() > end:
            raise RankError(
                f"the time-out is over; waiting: {sorted(waiting)}, done: {sorted(results)}"
            )
    return [results[rank] for rank in range(len(connections))]


def _receive(rank, connection, process):
    try:
        return connection.recv()
    except EOFError:
        raise RankError(_ended(rank, process)) from None


def _differ(waiting):
    calls = "; ".join(
        f"rank {rank} calls {call} at {place}" for rank, (call, place, _) in sorted(waiting.items())
    )
    return f"the ranks' calls differ: {calls}. All ranks must make the same calls in the same order"


def _missed(waiting, others, what):
    places = "; ".join(f"rank {r} waits at {place}" for r, (_, place, _) in sorted(waiting.items()))
    missing = ", ".join(map(str, others))
    return f"not all ranks came: {places}; rank {missing} {what}"


def _ended(rank, process):
    try:
        process.wait(READING)
    except subprocess.TimeoutExpired:  # it has closed what leads to us, and goes on
        process.kill()
        process.wait()
    process.reader.join(READING)
    last = ""
    if process.lines:
        last = "\n".join([":", *process.lines[-15:]])
    return f"rank {rank} ended with exit status {process.returncode} and no result{last}"


def _end(processes):
    """End ranks that still run: kindly, so that CUDA gives its memory back, then at once. What all
    have printed is handed on then.
    """
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    end = time.monotonic() + KINDLY
    for process in running:
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for process in processes:
        process.reader.join(READING)
        process.stdin.close()
