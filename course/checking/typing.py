"""Only what a GPU could run: numba-cuda's compiler, asked in a process of its own.

The CPU engine takes the place of `numba.cuda` in this process, and it runs much that no GPU does:
NumPy's functions, arrays as a whole, objects of the notebook. numba-cuda's compiler says so without
a GPU.
"""

import ast
import base64
import enum
import json
import pickle
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numba import cuda

from course.checking.asked import Asked, CannotAsk, describe
from course.checking.model import InOut, Out

#: (kind, value) of a global, as the other process builds it
Described = tuple[str, Any]
PLAIN = (int, float, bool, str)
DATA = (complex, bytes, slice, type(None), type(...), np.generic, np.dtype, np.ndarray)
MOST_BYTES = 1 << 20  # of a global array that the other process is told
ENGINE = "utils.cpu.numba_cuda"
PLACES = ("", "atomic", "shared", "local", "const", "libdevice", "random", "fp16")
KNOWN = sys.stdlib_module_names | {"numpy", "numba"}  # libraries whose functions have one name
TYPED = {"module", "device", "type"}  # kinds of `described` that Numba has a type for
BUILTINS = {"range", "len", "min", "max", "abs", "int", "float", "bool", "print", "round"}
UNTYPED = "Untyped global name"  # how numba-cuda begins, where it knows no type of what is outside

compiler = Asked(Path(__file__).with_name("typing_child.py"))


def refused(
    kernel: Any, arguments: Mapping[str, Any], whole: bool = True
) -> tuple[str, int | None] | None:
    """(message, line or None) of what numba-cuda cannot compile for such arguments, or None.

    whole: up to LLVM's code, else the types alone, which takes a fifth of the time; and it is not
    asked at all where what is outside has a type for certain.
    None also where it cannot be asked: it is not installed or gives no answer, or the kernel uses
    what cannot be told to another process.
    """
    functions: dict[str, tuple] = {}
    try:
        key = describe(kernel.py_func, functions, described)
        if not whole and all(
            uses_typed(source, names) for _, source, _, names in functions.values()
        ):
            return None
        kinds = [kind_of(value) for value in arguments.values()]
        request = {"key": key, "functions": functions, "types": kinds, "whole": whole}
        answer: tuple[str, int | None] | None = compiler.ask(json.dumps(request))
        return answer
    except Exception:  # what cannot be described or is not answered is not asked
        return None


def uses_typed(source: str, names: Mapping[str, Described]) -> bool:
    """Whether all that a function uses from outside has a type for certain."""
    nodes = list(ast.walk(ast.parse(source)))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    typed = {
        name for name, (kind, value) in names.items() if kind in TYPED or is_number(kind, value)
    }
    return used - own <= typed | BUILTINS - names.keys()


def is_number(kind: str, value: object) -> bool:
    """Whether a global is a number of 64 bits at most, as `described` tells it."""
    return kind == "plain" and isinstance(value, int | float) and abs(value) < 1 << 63


def described(value: Any, functions: dict) -> Described:
    """(kind, value) of a global, as the other process builds it."""
    if isinstance(value, enum.Enum):
        return "member", [enumeration(type(value), functions), value.name]
    if isinstance(value, tuple):
        parts = [described(part, functions) for part in value]
        fields = getattr(value, "_fields", None)
        return "tuple", [parts, fields and [type(value).__name__, fields]]
    if isinstance(value, np.ndarray) and value.nbytes > MOST_BYTES:
        raise CannotAsk
    if isinstance(value, DATA) and not getattr(getattr(value, "dtype", None), "hasobject", False):
        return "data", base64.b64encode(pickle.dumps(value)).decode()
    if isinstance(value, PLAIN):
        return "plain", value
    if hasattr(value, "copy_to_host"):
        return "on_device", [np.dtype(value.dtype).str, value.shape]
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return "enum", enumeration(value, functions)
    return named(value) or function_or_unknown(value, functions)


def enumeration(kind: type[enum.Enum], functions: dict) -> list:
    """An Enum as the other process makes it: base, name, members."""
    base = next(one.__name__ for one in kind.__mro__ if one.__module__ == "enum")
    members = [[one.name, described(one.value, functions)] for one in kind]
    return [base, kind.__name__, members]


def named(value: Any) -> Described | None:
    """(kind, name) of a module, of a part of `numba.cuda`, or of what a known library has."""
    if isinstance(value, types.ModuleType):
        inner = value.__name__.removeprefix(f"{ENGINE}.").removeprefix("cuda")
        is_ours = value.__name__.startswith(ENGINE)
        module = f"numba.cuda.{inner}" if is_ours else value.__name__
        return "module", module.rstrip(".")
    home = getattr(value, "__module__", None) or ""
    if f"{home}.".startswith(f"{ENGINE}.") and not hasattr(value, "py_func"):
        return "named", ["numba.cuda", name_in_cuda(value)]
    if home.startswith("numba.core.types"):
        return "type", value.name
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if isinstance(value, np.ufunc):
        home = "numpy"
    if home.partition(".")[0] in KNOWN and getattr(sys.modules.get(home), name or "", 0) is value:
        return "named", [home, name]
    return None


def name_in_cuda(value: object) -> str:
    """By which name the CPU engine's `numba.cuda` has an object, such as "atomic.add"."""
    for place in PLACES:
        there = getattr(cuda, place, None) if place else cuda
        for name in vars(there) if there else ():
            if getattr(there, name) is value:
                return f"{place}.{name}" if place else name
    raise CannotAsk


def function_or_unknown(value: Any, functions: dict) -> Described:
    """(kind, value) of a function, or of an object of which Numba is told its class alone."""
    inner = getattr(value, "py_func", value)
    if isinstance(inner, types.FunctionType):
        return ("function" if inner is value else "device"), describe(inner, functions, described)
    told_by_itself = ("__cuda_array_interface__", "_numba_type_")
    if any(hasattr(value, one) for one in told_by_itself):
        raise CannotAsk
    if hasattr(value, "_fields"):  # a namedtuple's class, which Numba knows
        return "fields", [value.__name__, value._fields]
    if isinstance(value, type):
        return "class", value.__name__
    return "object", [type(value).__module__, type(value).__qualname__]


def kind_of(argument: Any) -> list:
    """The type of an argument, as the other process reads it: its name, and an array's ndim."""
    if isinstance(argument, Out):
        return [np.dtype(argument.dtype).name, len(argument.shape)]
    if isinstance(argument, InOut):
        argument = argument.array
    array = np.asarray(argument)
    return (
        [array.dtype.name, array.ndim] if isinstance(argument, np.ndarray) else [array.dtype.name]
    )
