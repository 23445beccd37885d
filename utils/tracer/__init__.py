"""The tracer: what a kernel did, access by access. README.md states its model.

from utils.tracer import trace

t = trace(kernel, grid, block, *arguments)      # runs once, on copies, on the CPU
t                                               # the report: each source line with what it costs
t.play()                                        # a film of it, to watch in the browser
t.steps()                                       # step by step: which thread touches which element
t.draw_memory(line), t.draw_banks(line), t.draw_divergence(), t.draw_barriers(), t.draw_races()
"""

from .cuda_c import is_cuda_c
from .record import (
    ACCESSES,
    ATOMIC,
    BARRIER,
    FENCE,
    GRID_BARRIER,
    LINE,
    MEETING,
    NOT_TAKEN,
    READ,
    TAKEN,
    WRITE,
    TooManyEvents,
    TraceError,
)
from .result import Trace, trace
from .triton import is_triton


def play(before, after, names=("before", "after")):
    """Two Traces as films side by side, on one clock (see player.play)."""
    from . import player

    return player.play(before, after, names)


__all__ = [
    "ACCESSES",  # these in capitals are kinds of events, as `Trace.events.kind` has them
    "ATOMIC",
    "BARRIER",
    "FENCE",
    "GRID_BARRIER",
    "LINE",
    "MEETING",
    "NOT_TAKEN",
    "READ",
    "TAKEN",
    "TooManyEvents",
    "Trace",
    "TraceError",
    "WRITE",
    "is_cuda_c",
    "is_triton",
    "play",
    "trace",
]
