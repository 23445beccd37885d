"""What runs now: the CUDA thread, its block, its launch, and what the launch was asked to do.

It is the process's, since kernels read it as attributes, so launches from several Python threads
take turns. What a `with` asks for belongs to the Python thread that is inside it (`settings.py`).
"""

import threading
from contextlib import contextmanager

from ..turns import turn
from . import settings

#: What a kernel gives back, in place of None, where a thread ends at a `return`
LEFT = object()
HOST_CALLED = "this part of numba.cuda works inside kernels only; the host called it"


class Dim3:
    """x, y and z of an index or a size."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x=1, y=1, z=1):
        self.x = x
        self.y = y
        self.z = z

    def __iter__(self):
        yield self.x
        yield self.y
        yield self.z

    def __repr__(self):
        return f"({self.x}, {self.y}, {self.z})"


# What cuda.threadIdx and its kin are. The scheduler sets them at every switch; kernels read
# attributes.
thread_idx = Dim3(0, 0, 0)
block_idx = Dim3(0, 0, 0)
block_dim = Dim3()
grid_dim = Dim3()


class _Outside:
    """Stands for the running block and launch while no kernel runs."""

    def __getattr__(self, name):
        raise RuntimeError(HOST_CALLED)

    __add__ = __radd__ = __getattr__


OUTSIDE = _Outside()


class Now:
    """The CUDA thread that is running: its rank, its block, what the launch needs at hand.

    `python_thread` launched it. `observer` is told of every access; `watching` says that arrays
    must be the views that report accesses. `settled`: some Python thread's turn has begun.
    """

    __slots__ = (
        "rank",
        "block",
        "launch",
        "python_thread",
        "base_x",
        "base_y",
        "base_z",
        "observer",
        "watching",
        "unwritten_allowed",
        "settled",
    )

    def __init__(self):
        self.rank = 0
        self.leave()
        self.unsettle()

    def leave(self):
        """No kernel runs any more."""
        self.block = self.launch = self.base_x = self.base_y = self.base_z = OUTSIDE
        self.python_thread = None
        thread_idx.x = thread_idx.y = thread_idx.z = 0

    def settle(self, watched):
        """The settings of this Python thread hold from now on."""
        self.settled = True
        self.observer = settings.observer.get() if watched else None
        self.watching = watched and (self.observer is not None or settings.shuffled())
        self.unwritten_allowed = settings.unwritten.get()

    def unsettle(self):
        """Nobody's settings hold."""
        self.settled = self.watching = self.unwritten_allowed = False
        self.observer = None


now = Now()


def in_kernel() -> bool:
    """Whether this Python thread runs a kernel; another one may be running one beside it."""
    return now.python_thread == threading.get_ident()


_one_turn = turn()


@contextmanager
def one_at_a_time(watched=True):
    """This Python thread's turn: no other one's kernel runs, and `now` has its settings.

    watched: observers hear of it, and arrays are those that a shuffled schedule asks for.
    """
    with _one_turn:
        if now.settled:  # a turn within this thread's own
            yield
            return
        now.settle(watched)
        try:
            yield
        finally:
            now.unsettle()
