"""One program of a grid, run alone: what it asks for stands for the others (`utils.estimate`)."""

import contextlib
import contextvars

from .launches import LAUNCH

_chosen = contextvars.ContextVar("chosen", default=None)


@contextlib.contextmanager
def alone(grid: tuple, place: tuple):
    """In this block a launch of a grid of one runs the program at `place` of `grid`."""
    token = _chosen.set((grid, place))
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen(function, builder):
    """The function in place of a kernel's that the interpreter calls for each program."""
    if _chosen.get() is None:
        return function
    grid, place = _chosen.get()
    LAUNCH.is_alone = True  # nobody to be in order with
    LAUNCH.executor._restore_args_dev = nothing  # large tensors, of which little is really there

    def called(**arguments):
        builder.grid_dim = grid
        builder.set_grid_idx(*place)
        return function(**arguments)

    return called


def nothing(*arguments):
    """In place of copying tensors back."""
