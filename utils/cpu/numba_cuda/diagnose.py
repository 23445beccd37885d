"""Turns an exception inside a kernel into one that names thread, block and the user's line."""

import linecache

from .errors import KernelError
from .namespace import is_users


def explain(error, run, kernel):
    """`error` as a KernelError that names thread, block and the user's line."""
    if isinstance(error, TypeError) and "must have void return type" in str(error):
        return TypeError(
            f"CUDA kernel must have void return type: {kernel.__name__} returns a value. "
            "Write results into an array argument."
        )
    if not isinstance(error, KernelError):
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        kind = type("KernelError", (KernelError, type(error)), {}) if _mixes(error) else KernelError
        found = kind(text)
    else:
        found = error
    found.kernel = kernel.__name__
    if hasattr(found, "site"):
        code, found.lineno = found.site
        found.filename = code.co_filename
    else:
        found.thread, found.block = run.failed_thread, run.failed
        frame = error.__traceback__
        while frame is not None:
            code = frame.tb_frame.f_code
            if is_users(code):
                found.filename, found.lineno = code.co_filename, frame.tb_lineno
            frame = frame.tb_next
    if found.lineno is not None:
        found.code = linecache.getline(found.filename, found.lineno).strip()
        if "ipykernel" in found.filename or found.filename.startswith("<ipython"):
            found.filename = "this notebook's cell"
    return found


def _mixes(error):
    """Whether a class can be both KernelError and `error`'s (so that `except ValueError` still works)."""
    return type(error).__module__ == "builtins" and type(error) in (
        ValueError,
        TypeError,
        NameError,
        ZeroDivisionError,
        AttributeError,
        IndexError,
        AssertionError,
        RuntimeError,
        OverflowError,
        NotImplementedError,
        KeyError,
    )
