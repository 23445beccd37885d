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


def main(path, kernel_name, folder, seconds, check=""):
    from utils import cuda_c, has_gpu

    folder = Path(folder)

    def fail(reason, message):
        (folder / "failure.json").write_text(json.dumps([reason, message]))

    jobs = pickle.loads((folder / "jobs.pickle").read_bytes())
    if not has_gpu():
        from utils.cpu.cuda_c.build import BuildError, compiler

        try:
            compiler()
        except BuildError as error:
            return fail("not_checked", str(error))
    try:
        module = cuda_c.load(path, check=bool(check))
    except cuda_c.CompileError as error:
        return fail("does_not_compile", str(error))
    except Exception as error:
        return fail("not_checked", f"{type(error).__name__}: {error}")
    try:
        kernel = getattr(module, kernel_name)
    except (AttributeError, KeyError) as error:
        return fail("missing_kernel", str(error))
    signal.alarm(int(seconds))  # has no handler: not even an endless kernel can hold it up
    for number, (grid, block, zone, buffers, arguments) in enumerate(jobs):
        flats = {name: to_device(flat) if has_gpu() else flat for name, flat in buffers.items()}
        values = [
            flats[n][zone : len(buffers[n]) - zone] if n in flats else v
            for n, v in arguments.items()
        ]
        try:
            kernel[grid, block](*values)
            after = {n: f.copy_to_host() if has_gpu() else f for n, f in flats.items()}
        except TypeError as error:
            as_many = len(kernel.signature.parameters) == len(values)
            return fail("wrong_dtype" if as_many else "wrong_arity", str(error))
        except Exception as error:
            return fail("crashed", str(error))
        part = folder / f"{number}.part"
        part.write_bytes(pickle.dumps(after))
        os.replace(part, folder / f"{number}.pickle")
    return None


def to_device(array):
    from numba import cuda

    return cuda.to_device(array)


if __name__ == "__main__":
    main(*sys.argv[1:])
