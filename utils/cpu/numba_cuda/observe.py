"""Hooks: a tool sees every access, barrier, statement and branch of a launch. Free when unused."""

import sys
from contextlib import contextmanager

from . import settings
from .arrays import View
from .engine import Site
from .state import now


class Observer:
    """Base class for tools; override what you need.

    `thread` is the rank in the block (x fastest; lane is rank % 32), `block` the linear block
    index. Threads run in turn, each until it waits or ends, so events of different threads
    interleave at barriers only.

    `views` may name a subclass of WatchedView: the arrays that kernels see are then of that class.
    """

    views = None

    def launch(self, kernel, grid, block):
        """A launch begins: the kernel's name, grid and block as (x, y, z)."""

    def access(self, array, offset, operation, thread, block, site):
        """One element is read, written or changed atomically.

        `array` is the View: name, space ("global", "shared", "local", "constant"), shape, strides,
        dtype, and `memory`, the allocation it lies in (the same for all views of the same memory;
        each block has its own shared, each thread its own local ones). `offset` counts bytes from
        the start of that allocation. `operation` is "read", "write" or "atomic".
        """

    def wait(self, what, thread, block, site):
        """A thread arrives at a barrier or warp operation: "syncthreads()", "shfl_down_sync()"."""

    def line(self, thread, block, site):
        """A thread is about to run the statement at `site` (instruction is 0)."""

    def branch(self, taken, thread, block, site):
        """A thread has decided an if, while or conditional expression."""

    def finish(self, error):
        """The launch has ended; `error` is the exception that ended it, or None."""


@contextmanager
def observe(observer):
    """Within the `with`, every launch of this Python thread reports to `observer`."""
    with settings.during(settings.observer, observer):
        yield observer


def site_of(frame):
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_lasti)


class WatchedView(View):
    """A view that reports each access, or (under a shuffled schedule) yields after it has read."""

    __slots__ = ("offset", "memory")

    def __new__(cls, *parts):
        return super().__new__(getattr(now.observer, "views", None) or cls)

    def __init__(self, data, name, space, written, base):
        super().__init__(data, name, space, written, base)
        self.memory = self if base is None else base.memory
        self.offset = 0 if base is None else address(self.data) - address(base.memory.data)

    def __getitem__(self, index):
        frame = sys._getframe(1)
        if self.in_range(index) and not self.is_unwritten(index):
            value = self.mem[index]
        else:
            value = self.slow_get(index, frame)
            if isinstance(value, View):
                return value
        watched(self, index, "read", frame)
        return value

    def __setitem__(self, index, value):
        frame = sys._getframe(1)
        self.slow_set(index, value, frame)
        watched(self, index, "write", frame)


def address(data):
    return data.__array_interface__["data"][0]


def watched(view, index, operation, frame):
    """Report one access of `view`; called after it, for every access of one element."""
    observer = now.observer
    if observer is not None:
        index, whole = view.resolve(index, frame)
        if whole:
            if not isinstance(index, tuple):
                index = (index,)
            offset = view.offset + sum(i * s for i, s in zip(index, view.data.strides, strict=True))
            observer.access(
                view,
                offset,
                operation,
                now.rank,
                now.block.linear,
                site_of(frame),
            )
    if operation != "write" and view.space in ("global", "shared"):
        now.launch.give_way()
