"""Wrong answers that say only what differs from the right one."""

import functools
import inspect
import itertools
import linecache
import textwrap
from collections.abc import Callable
from typing import Any

_numbers = itertools.count(1)


def replace(source: str, *changes: Any) -> str:
    """A text with a few words changed: CUDA C, C++ or Python.

    changes: old and new; or pairs of them, one after the other. Each old stands in exactly one
        place of what the pairs before it have left; ValueError where it does not.
    """
    pairs = [changes] if isinstance(changes[0], str) else changes
    for old, new in pairs:
        places = source.count(old)
        if places != 1:
            raise ValueError(f"{old!r} stands in {places} places, not in one, of\n{source}")
        source = source.replace(old, new)
    return source


def but(answer: Any, *changes: Any) -> Any:
    """A kernel or a function with a few words of its source changed, as `replace` changes them.

    It sees the names of the module that the answer was written in. linecache holds its source, so
    that tracebacks, inspect and the tracer show the changed lines. Decorators are applied again:
    a kernel gives a kernel.
    """
    function = getattr(answer, "py_func", answer)
    source = replace(source_of(function), *changes)
    filename = f"<{function.__module__}.{function.__name__}, change {next(_numbers)}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    namespace: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), function.__globals__, namespace)
    return namespace[function.__name__]


def with_mistakes(reference: Callable) -> Callable:
    """f(**mistake): the reference with a mistake, which it takes as arguments by name."""
    return lambda **mistake: functools.partial(reference, **mistake)


@functools.cache
def source_of(function: Callable) -> str:
    """Its source from the margin on; an exercise changes its solution again and again."""
    return textwrap.dedent(inspect.getsource(function))


def changed(solution: Any, *changes: Any) -> Any:
    """The solution with a few words changed: `replace` in a file's text, `but` in what runs."""
    return (replace if isinstance(solution, str) else but)(solution, *changes)
