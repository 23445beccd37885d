"""Only what a GPU could run: Triton's own front end, asked in a process of its own.

The CPU engine runs a kernel as Python: lists, breaks, numbers that become blocks. Triton's compiler
refuses them when it makes its first representation, TTIR, for which it needs no GPU. In this
process kernels are the interpreter's, which that compiler does not take.
"""

import functools
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from course.checking.asked import Asked, CannotAsk, NoAnswer, describe
from course.checking.model import InOut, Out

NO_ANSWER = ["It came to no end, or broke down itself.", None]

#: Of classes that Triton takes: a namedtuple's, an aggregate
KNOWN = {"_fields", "__triton_aggregate__"}

compiler = Asked(Path(__file__).with_name("triton_front_child.py"), TRITON_INTERPRET="0")


def refused(function: types.FunctionType, arguments: Mapping[str, Any]) -> list | None:
    """(message, line or None) of what Triton cannot compile for these arguments, or None.

    function: the kernel's Python function. arguments: of a launch, by name. None also where it
    cannot be asked: the process does not start, or the kernel uses namedtuples or aggregates.
    """
    functions: dict[str, tuple] = {}
    try:
        key = describe(function, functions, described)
        kinds = [kind_of(value) for value in arguments.values()]
    except (CannotAsk, OSError, TypeError, ValueError, SyntaxError):
        return None
    return ask(json.dumps({"kernel": key, "functions": functions, "arguments": kinds}))


@functools.lru_cache(maxsize=256)
def ask(request: str) -> list | None:
    """What the compiler says. Asked once for each request."""
    try:
        answer: list | None = compiler.ask(request)
        return answer
    except NoAnswer:
        return NO_ANSWER


# ---- a kernel in words


def described(value: Any, functions: dict) -> tuple[str, Any]:
    """(kind, what it is) of a global, as the other process builds it."""
    if isinstance(value, types.ModuleType):
        return "module", value.__name__
    if isinstance(value, bool | int | float | str):
        return "plain", value
    if type(value).__name__ == "constexpr":
        return "constexpr", described(value.value, functions)
    if type(value).__module__ == "triton.language.core" and hasattr(value, "primitive_bitwidth"):
        return "dtype", value.name
    inner = getattr(value, "fn", value)
    home = getattr(inner, "__module__", None) or ""
    if home.partition(".")[0] == "triton":
        return "theirs", [home, inner.__name__]
    if inner is not value and isinstance(inner, types.FunctionType):
        return "kernel", describe(inner, functions, described)
    if isinstance(value, type) and KNOWN & set(dir(value)):
        raise CannotAsk
    return "other", None  # an array, a list, a class, a plain function: Triton knows none


def kind_of(argument: Any) -> tuple[str, Any]:
    """(kind, dtype's name or value) of an argument."""
    argument = getattr(argument, "array", argument) if isinstance(argument, InOut) else argument
    if isinstance(argument, np.ndarray | Out):
        return "tensor", np.dtype(argument.dtype).name
    return "plain", argument.item() if isinstance(argument, np.generic) else argument
