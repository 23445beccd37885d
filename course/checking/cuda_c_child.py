"""The child process that launches a learner's CUDA C kernel (see engines.run_cuda_c).

Arguments: the .cu file, the kernel's name, a folder that holds jobs.pickle (a list of engines.Job)
and their arrays (the file `arrays`, which both processes map), after how many seconds of CPU time a
launch is given up, which ends the process with SIGXCPU, how many seconds all may take together, and
perhaps "check", to watch every access, and after how many by the clock a launch is given up, which
ends the process with SIGALRM. For each job that is done it writes N.json (with "check"
what was counted, else null), or failure.json ([reason, message]) and stops.

Without arguments it imports what that takes, and waits: for each message in its standard input, a
socket, a copy of it does what the arguments in the message say (see loaded.py).
"""

import contextlib
import ctypes
import gc
import json
import math
import mmap
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: The file in the folder that holds all arrays
ARRAYS = "arrays"
#: CPU time until the kernel is there; bytes that a file may have, and new memory
COMPILE_SECONDS = 120
MOST_BYTES = 1 << 30
MOST_MEMORY = 3 << 30
#: Bytes of a message, more than the system lets through
MOST_MESSAGE = 1 << 20
#: As in utils.tools.process, which is not imported here
MARK = b"CUDA_COURSE_RUN"
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Failure(Exception):
    """What stopped the launches: (reason, message)."""


def main(
    path: str,
    kernel_name: str,
    folder: str,
    each: str,
    total: str,
    check: str = "",
    clock: str = "0",
) -> None:
    here = Path(folder)
    jobs = pickle.loads((here / "jobs.pickle").read_bytes())
    try:
        limit(COMPILE_SECONDS)
        limit_memory()  # before the learner's file is loaded: its variables may be initialized
        module, kernel = load(path, kernel_name, check=bool(check))
        begin = time.process_time()
        for number, (grid, block, zone, place, arguments) in enumerate(jobs):
            part = here / f"{number}.part"
            limit(int(each))
            signal.setitimer(signal.ITIMER_REAL, int(clock))  # 0: no limit
            launch(kernel, grid, block, zone, mapped(here, place, writable=True), arguments)
            used = time.process_time() - begin
            if used > int(total):
                says = f"{number + 1} launches took {used:.0f} seconds together."
                raise Failure("too_slow", says)
            counts = module.counts() if check else None
            part.write_text(json.dumps(counts))
            os.replace(part, here / f"{number}.json")
    except Failure as failure:
        (here / "failure.json").write_text(json.dumps(failure.args))


def limit(seconds: float) -> None:
    """End the process after so many more seconds of CPU time, and files that grow without end.

    These limits are the system's: nothing in the learner's code can lift them.
    """
    import resource  # not where a web page imports this file for its names

    used = resource.getrusage(resource.RUSAGE_SELF)
    last = math.ceil(used.ru_utime + used.ru_stime + seconds)
    for what, most in ((resource.RLIMIT_CPU, last), (resource.RLIMIT_FSIZE, MOST_BYTES)):
        hard = resource.getrlimit(what)[1]
        if hard == resource.RLIM_INFINITY:
            hard = most + COMPILE_SECONDS
        resource.setrlimit(what, (min(most, hard), hard))


def limit_memory() -> None:
    """Limit what more this process may allocate; not with a GPU, whose driver maps memory, too."""
    import resource

    from utils import has_gpu

    if has_gpu() or sys.platform != "linux":
        return
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmData:"))
    most = 1024 * int(line.split()[1]) + MOST_MEMORY
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def load(path: str, kernel_name: str, check: bool) -> tuple[Any, Any]:
    """(module, compiled kernel); Failure says why there is none."""
    from utils import cuda_c, has_gpu
    from utils.cuda_c.device_code import CompileError

    if not has_gpu():
        from utils.cpu.cuda_c.build import BuildError, compiler

        try:
            compiler()
        except BuildError as error:
            raise Failure("not_checked", str(error)) from None
    try:
        module = cuda_c.load(path, check=check)
    except CompileError as error:
        raise Failure("does_not_compile", str(error)) from None
    except Exception as error:
        raise Failure("not_checked", f"{type(error).__name__}: {error}") from None
    try:
        return module, getattr(module, kernel_name)
    except (AttributeError, KeyError) as error:
        raise Failure("missing_kernel", str(error)) from None


def mapped(folder: Path, place: tuple, writable: bool = False) -> dict[str, Any]:
    """The flat arrays of one job as they lie in the file: no job sees those of another.

    place: an engines.Place.
    """
    import numpy as np

    start, size, flats = place
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    with open(folder / ARRAYS, "r+b" if writable else "rb") as file:
        room = mmap.mmap(file.fileno(), size, access=access, offset=start)
    return {name: np.frombuffer(room, *at) for name, at in flats.items()}


def launch(
    kernel: Any,
    grid: tuple,
    block: tuple,
    zone: int,
    buffers: Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> None:
    """Launch one job's arguments, on the buffers themselves; Failure says what went wrong."""
    from utils import has_gpu

    flats = {name: to_device(flat) for name, flat in buffers.items()} if has_gpu() else buffers
    values = []
    for name, value in arguments.items():
        if name in flats:
            value = flats[name][zone : len(buffers[name]) - zone]
        values.append(value)
    try:
        kernel[grid, block](*values)
        if has_gpu():
            for name, flat in flats.items():
                flat.copy_to_host(buffers[name])
    except TypeError as error:
        as_many = len(kernel.signature.parameters) == len(values)
        raise Failure("wrong_dtype" if as_many else "wrong_arity", str(error)) from None
    except Exception as error:
        raise Failure("crashed", str(error)) from None


def to_device(array: Any) -> Any:
    from numba import cuda

    return cuda.to_device(array)


# ---- the process that is copied


def serve() -> list[str] | None:
    """For each message say a copy's process id and, when it has ended, its exit status.

    Returns in a copy the arguments that its message has; in the process itself, when nobody sends
    messages any more, None.
    """
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    place = libc.getenv(MARK)  # among what the system shows as this process's environment
    import_all()
    gc.freeze()  # what is copied is no garbage: a collection would write to each object
    line = socket.socket(fileno=0)
    while True:
        message, sinks, _, _ = socket.recv_fds(line, MOST_MESSAGE, 1)
        if not message:
            return None
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
            os.close(tell)
            if not os.read(told, 1):  # its number was never said: another one takes its place
                os._exit(1)
            os.close(told)
            arguments: list[str]
            arguments, folder, environment = json.loads(message)
            mark = environment[MARK.decode()].encode()
            ctypes.memmove(place, mark, len(mark))
            line.detach()
            take_on(sinks[0], folder, environment)
            return arguments
        os.close(sinks[0])
        os.setpgid(pid, pid)
        line.send(b"%d" % pid)
        os.write(tell, b"!")  # not before: an answer may end this process as soon as it runs
        os.close(tell)
        os.close(told)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        line.send(b"%d" % status)


def import_all() -> None:
    """Import what a launch takes, and find the compiler."""
    from utils import cuda_c  # noqa: F401
    from utils.cpu.cuda_c.build import BuildError
    from utils.cpu.cuda_c.cache import own_hash
    from utils.cpu.cuda_c.compiler import compiler, compiler_version

    own_hash()
    with contextlib.suppress(BuildError):
        compiler_version(tuple(compiler()))


def take_on(sink: int, folder: str, environment: dict[str, str]) -> None:
    """Be, in a copy, as a process with this output, folder and environment would be."""
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for end, number in ((nothing, 0), (sink, 1), (sink, 2)):
        os.dup2(end, number)
        os.set_inheritable(number, True)
    os.close(nothing)
    os.close(sink)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)


if __name__ == "__main__":
    arguments = sys.argv[1:] or serve()
    if arguments:
        main(*arguments)
