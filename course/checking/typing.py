"""Only what a GPU could run: numba-cuda's typing, asked in a process of its own.

The CPU engine takes the place of `numba.cuda` in this process, and it runs much that no GPU does:
NumPy's functions, arrays as a whole. numba-cuda's compiler says so without a GPU.
"""

import atexit
import functools
import inspect
import json
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import numpy as np

from course.checking.model import InOut, Out
from utils.tools.process import python_environment

PLAIN = (int, float, bool, str)
CHILD = Path(__file__).with_name("typing_child.py")


class CannotAsk(Exception):
    """The kernel uses something that cannot be told to another process."""


def refused(kernel, arguments):
    """(message, line or None) of what numba-cuda cannot compile for such arguments, or None.

    None also where it cannot be asked: it is not installed, or the kernel uses the notebook's own
    objects.
    """
    function = kernel.py_func
    functions = {}
    try:
        describe(function, functions)
        kinds = [kind_of(value) for value in arguments.values()]
    except (CannotAsk, OSError, TypeError):
        return None
    request = {"name": function.__name__, "functions": functions, "types": kinds}
    return ask(json.dumps(request))


def describe(function, functions):
    """Add a function, and those that it calls, to `functions`: source, file name, globals."""
    if function.__name__ in functions:
        return
    lines, first = inspect.getsourcelines(function)
    start = next(n for n, line in enumerate(lines) if line.lstrip().startswith("def "))
    source = "\n" * (first + start - 1) + textwrap.dedent("".join(lines[start:]))
    names = {}
    functions[function.__name__] = source, function.__code__.co_filename, names
    for name, value in used_by(function).items():
        names[name] = described(value, functions)


def used_by(function):
    """The globals and the variables of enclosing functions that a function uses, by name."""
    found = inspect.getclosurevars(function)
    return {**found.globals, **found.nonlocals}


def described(value, functions):
    """(kind, value) of a global, as the other process builds it."""
    if isinstance(value, types.ModuleType):
        name = value.__name__
        return "module", "numba.cuda" if name.startswith("utils.cpu.numba_cuda") else name
    if isinstance(value, PLAIN):
        return "plain", value
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return "plain", value.item()
    if isinstance(value, tuple) and all(isinstance(part, PLAIN) for part in value):
        return "tuple", value
    if isinstance(value, type) and issubclass(value, np.generic):
        return "numpy", value.__name__
    inner = getattr(value, "py_func", value)
    if isinstance(inner, types.FunctionType):
        describe(inner, functions)
        return ("function" if inner is value else "device"), inner.__name__
    raise CannotAsk


def kind_of(argument):
    """The type of an argument, as the other process reads it: its name, and an array's ndim."""
    if isinstance(argument, Out):
        return [np.dtype(argument.dtype).name, len(argument.shape)]
    if isinstance(argument, InOut):
        argument = argument.array
    array = np.asarray(argument)
    return (
        [array.dtype.name, array.ndim] if isinstance(argument, np.ndarray) else [array.dtype.name]
    )


@functools.cache
def compiler():
    """The process, started once; None where numba-cuda is not there."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=python_environment(),
        start_new_session=True,
        text=True,
    )
    atexit.register(process.kill)
    return process


def forget():
    """End the process: whoever asked it last may have left before its answer came."""
    if compiler.cache_info().currsize:
        compiler().kill()
        compiler.cache_clear()


def ask(request):
    """What the process answers, or None where it has none."""
    process = compiler()
    try:
        process.stdin.write(request + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except (BrokenPipeError, OSError):
        return None
    return json.loads(answer) if answer else None
