"""Only what a GPU could run: numba-cuda's typing, asked in a process of its own.

The CPU engine takes the place of `numba.cuda` in this process, and it runs much that no GPU does:
NumPy's functions, arrays as a whole. numba-cuda's compiler says so without a GPU.
"""

import inspect
import json
import types
from pathlib import Path

import numpy as np

from course.checking.asked import Asked, CannotAsk, NoAnswer, source_of
from course.checking.model import InOut, Out

PLAIN = (int, float, bool, str)

compiler = Asked(Path(__file__).with_name("typing_child.py"))


def refused(kernel, arguments):
    """(message, line or None) of what numba-cuda cannot compile for such arguments, or None.

    None also where it cannot be asked: it is not installed or gives no answer, or the kernel uses
    the notebook's own objects.
    """
    function = kernel.py_func
    functions = {}
    try:
        describe(function, functions)
        kinds = [kind_of(value) for value in arguments.values()]
        request = {"name": function.__name__, "functions": functions, "types": kinds}
        return compiler.ask(json.dumps(request))
    except (CannotAsk, NoAnswer, OSError, TypeError):
        return None


def describe(function, functions):
    """Add a function, and those that it calls, to `functions`: source, file name, globals."""
    if function.__name__ in functions:
        return
    _, source = source_of(function)
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
