"""The child process that launches a learner's CUDA C kernel (see engines.run_cuda_c).

Arguments: the .cu file, the kernel's name, a folder that holds jobs.pickle (a list of engines.Job),
after how many seconds of launching to give up, which ends the process with SIGALRM, and perhaps
"check", to watch every access. For each job it writes N.pickle (the buffers after the launch), or
failure.json ([reason, message]) and stops.
"""

import json
import os
import pickle
import signal
import sys
from pathlib import Path


class Failure(Exception):
    """What stopped the launches: (reason, message)."""


def main(path, kernel_name, folder, seconds, check=""):
    folder = Path(folder)
    jobs = pickle.loads((folder / "jobs.pickle").read_bytes())
    try:
        kernel = load(path, kernel_name, check=bool(check))
        signal.alarm(int(seconds))  # has no handler: not even an endless kernel can hold it up
        for number, job in enumerate(jobs):
            part = folder / f"{number}.part"
            part.write_bytes(pickle.dumps(launch(kernel, *job)))
            os.replace(part, folder / f"{number}.pickle")
    except Failure as failure:
        (folder / "failure.json").write_text(json.dumps(failure.args))


def load(path, kernel_name, check):
    """The compiled kernel; Failure says why there is none."""
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
        return getattr(module, kernel_name)
    except (AttributeError, KeyError) as error:
        raise Failure("missing_kernel", str(error)) from None


def launch(kernel, grid, block, zone, buffers, arguments):
    """The buffers after a launch of one job's arguments; Failure says what went wrong."""
    from utils import has_gpu

    flats = {name: to_device(flat) if has_gpu() else flat for name, flat in buffers.items()}
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


def to_device(array):
    from numba import cuda

    return cuda.to_device(array)


if __name__ == "__main__":
    main(*sys.argv[1:])
