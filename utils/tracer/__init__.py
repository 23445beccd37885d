"""The tracer: what a Numba kernel did, access by access. README.md states its model.

from utils.tracer import trace

t = trace(kernel, grid, block, *arguments)      # runs once, on copies, on the CPU
t                                               # the report: each source line with what it costs
t.steps()                                       # step by step: which thread touches which element
t.draw_memory(line), t.draw_banks(line), t.draw_divergence(), t.draw_barriers(), t.draw_races()
"""

from .record import TooManyEvents, TraceError
from .result import Trace, trace

__all__ = ["TooManyEvents", "Trace", "TraceError", "trace"]
