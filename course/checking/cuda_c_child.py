"""The child process that launches a learner's CUDA C kernel (see engines.run_cuda_c).

Arguments: the .cu file, the kernel's name, a folder that holds jobs.pickle (a list of engines.Job),
after how many seconds of CPU time to give up launching, which ends the process with SIGXCPU, and
perhaps "check", to watch every access. For each job it writes N.pickle (the buffers after the
launch; with "check" what was counted, else None), or failure.json ([reason, message]) and stops.
"""

import json
import os
import pickle
import resource
import sys
from pathlib import Path

#: CPU time until the kernel is there; bytes that a file may have
COMPILE_SECONDS = 120
MOST_BYTES = 1 << 30


class Failure(Exception):
    """What stopped the launches: (reason, message)."""


def main(path, kernel_name, folder, seconds, check=""):
    folder = Path(folder)
    jobs = pickle.loads((folder / "jobs.pickle").read_bytes())
    try:
        limit(COMPILE_SECONDS)
        module, kernel = load(path, kernel_name, check=bool(check))
        limit(int(seconds))
        for number, job in enumerate(jobs):
            part = folder / f"{number}.part"
            after = launch(kernel, *job)
            counts = module.counts() if check else None
            part.write_bytes(pickle.dumps((after, counts)))
            os.replace(part, folder / f"{number}.pickle")
    except Failure as failure:
        (folder / "failure.json").write_text(json.dumps(failure.args))


def limit(seconds):
    """End the process after so many more seconds of CPU time, and files that grow without end.

    These limits are the system's: nothing in the learner's code can lift them.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    last = int(used.ru_utime + used.ru_stime) + seconds + 1
    for what, most in ((resource.RLIMIT_CPU, last), (resource.RLIMIT_FSIZE, MOST_BYTES)):
        hard = resource.getrlimit(what)[1]
        if hard == resource.RLIM_INFINITY:
            hard = most + COMPILE_SECONDS
        resource.setrlimit(what, (min(most, hard), hard))


def load(path, kernel_name, check):
    """(module, compiled kernel); Failure says why there is none."""
    from utils import cuda_c, has_gpu

    if not has_gpu():
        from utils.cpu.cuda_c.build import BuildError, compiler

        try:
            compiler()
        except BuildError as error:
            raise Failure("not_checked", str(error)) from None
    try:
        module = cuda_c.load(path, check=check)
    except cuda_c.CompileError as error:
        raise Failure("does_not_compile", str(error)) from None
    except Exception as error:
        raise Failure("not_checked", f"{type(error).__name__}: {error}") from None
    try:
        return module, getattr(module, kernel_name)
    except (AttributeError, KeyError) as error:
        raise Failure("missing_kernel", str(error)) from None


def launch(kernel, grid, block, zone, buffers, arguments):
    """The buffers after a launch of one job's arguments; Failure says what went wrong."""
    from utils import has_gpu

    to_memory = to_device if has_gpu() else aligned
    flats = {name: to_memory(flat) for name, flat in buffers.items()}
    values = []
    for name, value in arguments.items():
        if name in flats:
            value = flats[name][zone : len(buffers[name]) - zone]
        values.append(value)
    try:
        kernel[grid, block](*values)
        return {name: f.copy_to_host() if has_gpu() else f for name, f in flats.items()}
    except TypeError as error:
        as_many = len(kernel.signature.parameters) == len(values)
        raise Failure("wrong_dtype" if as_many else "wrong_arity", str(error)) from None
    except Exception as error:
        raise Failure("crashed", str(error)) from None


def aligned(array):
    """A copy that begins where an allocation of cudaMalloc could: at a multiple of 256 bytes."""
    import numpy as np

    room = np.empty(array.nbytes + 256, np.uint8)
    start = -room.ctypes.data % 256
    copy = room[start : start + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


def to_device(array):
    from numba import cuda

    return cuda.to_device(array)


if __name__ == "__main__":
    main(*sys.argv[1:])
