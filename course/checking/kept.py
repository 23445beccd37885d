"""What a function has outside that lasts, written down: does each run change it?

A result then depends on how often something ran, and right ones tell nothing of the next. A thing
that is kept once for all, such as a table of what was computed, is the same after the same run.
"""

import dis
import io
import operator
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from course.checking.rejected import Rejected

HOLDER = types.SimpleNamespace  # stands for what pickle has no way to write


def reject_if_each_run_changes(
    function: types.FunctionType, before: dict[str, bytes], again: Callable[[], object]
) -> None:
    """Reject a function of which the same run, again(), leaves something else each time.

    before: `outside` of it before it ran at all.
    """
    if outside(function) == before:
        return
    again()  # what is kept once for all is there now
    once = outside(function)
    again()
    now = outside(function)
    changed = sorted(name for name in once | now if once.get(name) != now.get(name))
    if changed:
        says = f"`{changed[0]}` is another after each run, with the same arguments, too."
        raise Rejected("remembers", f"{says} What it computes must come of its arguments alone.")


def outside(function: types.FunctionType) -> dict[str, bytes]:
    """Name -> contents, as bytes, of all that a function reaches without its arguments."""
    return {name: written(value) for name, value in _reached(function).items()}


def written(value: object) -> bytes:
    """What a value holds, as bytes; what nobody can write is left out of it."""
    text = io.BytesIO()
    try:
        _Writer(text).dump(value)
    except Exception:
        return b""
    return text.getvalue()


def _reached(function: types.FunctionType) -> dict[str, Any]:
    """By name what a function has from outside: globals, variables around it, defaults, its own."""
    code = function.__code__
    names = set(_names(code)) & function.__globals__.keys()
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    return {
        **{name: function.__globals__[name] for name in names},
        **cells,
        function.__name__: (function.__defaults__, function.__kwdefaults__, vars(function)),
    }


def _names(code: types.CodeType) -> Iterator[str]:
    """Names of globals in a function's code, and in functions and classes inside it."""
    for one in dis.get_instructions(code):
        if one.opname.endswith(("_GLOBAL", "_NAME")):
            yield one.argval
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _names(part)


class _Writer(pickle.Pickler):
    """Writes functions and classes of the learner's with all that they hold."""

    def reducer_override(self, value: Any) -> Any:
        function = getattr(value, "py_func", value)
        if isinstance(function, types.FunctionType):
            return HOLDER, (), _reached(function) if _is_theirs(function) else {}
        if isinstance(value, types.ModuleType):
            return HOLDER, ()
        if isinstance(value, type):
            return (HOLDER, (), dict(vars(value))) if _is_theirs(value) else NotImplemented
        if isinstance(value, types.CellType):
            return HOLDER, (), {"cell_contents": _contents(value)}
        if hasattr(value, "copy_to_host"):  # an array in device memory
            return bytes, (value.copy_to_host().tobytes(),)
        if isinstance(value, memoryview):
            return bytes, (value.tobytes(),)
        if isinstance(value, types.GeneratorType):
            frame = value.gi_frame
            return HOLDER, (), {"at": frame.f_lasti, **frame.f_locals} if frame else {}
        try:
            value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        except Exception:
            return HOLDER, (), dict(getattr(value, "__dict__", {}))
        return NotImplemented


def _is_theirs(value: Any) -> bool:
    """Whether a function or class is the notebook's, or has no name that a module knows."""
    module = sys.modules.get(value.__module__ or "")
    try:
        named = operator.attrgetter(value.__qualname__)(module)
    except AttributeError:
        return True
    return value.__module__ == "__main__" or named is not value


def _contents(cell: types.CellType) -> object:
    return getattr(cell, "cell_contents", None)
