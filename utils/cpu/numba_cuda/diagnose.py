"""Turns an exception inside a kernel into one that names thread, block and the user's line."""

import linecache
from types import TracebackType

from .errors import KernelError
from .namespace import is_users


def explain(error, run, kernel):
    """`error` as a KernelError that names thread, block and line; only the user's frames stay."""
    if isinstance(error, TypeError) and "must have void return type" in str(error):
        return TypeError(
            f"CUDA kernel must have void return type: {kernel.__name__} returns a value. "
            "Write results into an array argument."
        ).with_traceback(None)
    places = user_places(error.__traceback__)
    problem = error if isinstance(error, KernelError) else wrapped(error)
    problem.kernel = kernel.__name__
    if hasattr(problem, "place"):  # of a thread that waits, not of the one that ran last
        places = [problem.place]
        del problem.place
    else:
        problem.thread = run.failed_thread
        problem.block = run.failed
    chain = None
    for place in reversed(places):
        chain = TracebackType(chain, *place)
    if places:
        frame, _, problem.lineno = places[-1]
        problem.filename = frame.f_code.co_filename
        problem.code = linecache.getline(problem.filename, problem.lineno).strip()
        if "ipykernel" in problem.filename or problem.filename.startswith("<ipython"):
            problem.filename = "this notebook's cell"
    return problem.with_traceback(chain)


def user_places(entry):
    """(frame, instruction, line) of the user's own code in a traceback, outermost first."""
    places = []
    while entry is not None:
        if is_users(entry.tb_frame.f_code):
            places.append((entry.tb_frame, entry.tb_lasti, entry.tb_lineno))
        entry = entry.tb_next
    return places


def wrapped(error):
    """A KernelError that is also of the exception's class, so that `except ValueError` works."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    try:
        return type("KernelError", (KernelError, type(error)), {})(text)
    except TypeError:  # the two classes cannot be one
        return KernelError(text)
