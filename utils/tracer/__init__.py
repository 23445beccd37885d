"""The tracer: what a kernel did, access by access. README.md states its model.

from utils.tracer import trace

t = trace(kernel, grid, block, *arguments)      # runs once, on copies, on the CPU
t                                               # the report: each source line with what it costs
t.play()                                        # a film of it, to watch in the browser
t.steps()                                       # step by step: which thread touches which element
t.draw_memory(line), t.draw_banks(line), t.draw_divergence(), t.draw_barriers(), t.draw_races()
"""

from typing import TYPE_CHECKING

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
from .record import prepare as copied
from .result import Trace, trace
from .triton import is_triton

if TYPE_CHECKING:
    from . import player


def play(
    before: Trace, after: Trace, names: tuple[str, str] = ("before", "after")
) -> "player.Player":
    """Two Traces as films side by side, on one clock (see player.play)."""
    from .player import play as played

    return played(before, after, names)


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
    "copied",  # an argument of a launch, in memory of its own
    "is_cuda_c",
    "is_triton",
    "play",
    "trace",
]
