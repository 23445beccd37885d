"""A time limit where no thread can watch and no signal comes: Python in a web page.

What takes for ever loops, or calls itself: CPython tells of each jump back and of each call
(`sys.monitoring`, since 3.12), and there the clock is looked at.
"""

import contextlib
import sys
import time

#: Whether this is Python in a web page, which has no threads and no timers
ALONE = sys.platform == "emscripten"
LOOKS = 128  # jumps and calls between two looks at the clock

_limits = []  # (when it ends, what makes the error), the innermost last
_count = 0


@contextlib.contextmanager
def stop_after(seconds, error):
    """Raise error() in the block once it has taken so many seconds; of nested ones each counts."""
    limit = time.monotonic() + seconds, error
    _limits.append(limit)
    if len(_limits) == 1:
        _watch(True)
    try:
        yield
    finally:
        _limits.remove(limit)
        if not _limits:
            _watch(False)


def _watch(on):
    """Have `_jumped` and `_called` called, or no more."""
    tell = sys.monitoring
    tool = tell.PROFILER_ID
    events = tell.events
    if not on:
        tell.set_events(tool, events.NO_EVENTS)
        tell.free_tool_id(tool)
        return
    tell.use_tool_id(tool, "time limits")
    tell.register_callback(tool, events.JUMP, _jumped)
    tell.register_callback(tool, events.PY_START, _called)
    tell.set_events(tool, events.JUMP | events.PY_START)
    tell.restart_events()


def _jumped(code, start, end):
    """A jump was taken, from one instruction to another."""
    if end > start:
        return sys.monitoring.DISABLE  # it leads on
    return _called(code, start)


def _called(code, start):
    """A function began. Looks at the clock from time to time."""
    global _count
    _count += 1
    if _count % LOOKS:
        return None
    now = time.monotonic()
    for ends, error in _limits:
        if now > ends:
            raise error()
    return None
