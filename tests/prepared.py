"""Commands `python -m MODULE` in copies of one Python that has imported what all of them need.

What the course's commands import takes longer than their work: a test file that runs dozens of
them starts one process, Prepared, which imports it once. Each command is a copy of that process
(a fork), with its own folder, arguments, output and end.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path


class Prepared:
    """A process that has imported `modules` in a folder, and runs commands there."""

    def __init__(self, modules, folder, env):
        self.folder = folder
        command = [sys.executable, __file__, *modules]
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(self, module, *arguments):
        """What `python -m module` does: a subprocess.CompletedProcess."""
        with tempfile.TemporaryDirectory() as notes:
            out, err = (Path(notes) / name for name in ("out", "err"))
            print(json.dumps([str(out), str(err), module, *arguments]), file=self.process.stdin)
            self.process.stdin.flush()
            status = int(self.process.stdout.readline())
            command = ["python", "-m", module, *arguments]
            return subprocess.CompletedProcess(command, status, out.read_text(), err.read_text())

    def end(self):
        """End the process; what it has used counts with this one's children."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def become(out, err, module, *arguments):
    """In a copy: what Python does with `-m module`; the process's exit status."""
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()


def serve(modules):
    """Import the modules, then run a command for each line of the input, one after another."""
    sys.path[0] = os.getcwd()
    gc.disable()
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # what is copied is no garbage: a collection would look at it, and copy its pages
    gc.enable()
    for line in sys.stdin:
        copy = os.fork()
        if copy == 0:
            os._exit(become(*json.loads(line)) & 0xFF)
        _, status = os.waitpid(copy, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1:])
