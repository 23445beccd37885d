"""The scheduler: runs every thread of every block of one launch on this one CPU thread.

A worker (a greenlet) calls the kernel for one CUDA thread after the other. Most kernels never wait,
so one worker runs the whole grid as a plain loop. When a CUDA thread must wait (a barrier, a warp
operation), its worker is left suspended right there and another worker goes on with the next CUDA
threads; so the cost of switching is paid only by kernels that need it. All CUDA threads of a block
must have arrived at a barrier before it opens; blocks run one after another, except that a
grid-wide barrier parks a block until all are there.
"""

import contextvars
import ctypes
import functools
import random
import threading
import warnings
from collections import deque
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from greenlet import GreenletExit, getcurrent, greenlet

from .errors import BarrierError, KernelTimeout
from .stuck import different_barriers, grid_divergence, stuck

WARP = 32
GIVES_WAY = "giving way"  # what a Waiter waits for when it only lets others run
DONE, PARKED, PREEMPTED = "done", "parked", "preempted"  # why run_block() returned


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
        raise RuntimeError("this part of numba.cuda works inside kernels only; the host called it")

    __add__ = __radd__ = __getattr__


OUTSIDE = _Outside()


class Now:
    """The CUDA thread that is running: its rank, its block, what the launch needs at hand.

    `observer` is told of every access; `watching` says that arrays must be the views that report
    accesses.
    """

    __slots__ = (
        "rank",
        "block",
        "launch",
        "base_x",
        "base_y",
        "base_z",
        "observer",
        "watching",
        "unwritten_allowed",
    )

    def __init__(self):
        self.rank = 0
        self.watching = self.unwritten_allowed = False
        self.observer = None
        self.leave()

    def leave(self):
        """No kernel runs any more."""
        self.block = self.launch = self.base_x = self.base_y = self.base_z = OUTSIDE
        thread_idx.x = thread_idx.y = thread_idx.z = 0


now = Now()
# The state above is global, so launches from several Python threads take turns.
_one_launch = threading.RLock()


class Schedule:
    """In which order threads and blocks run: by index, or (hostile to races) at random from a seed.

    At random also means that a thread may have to give way right after it has read an element,
    before it writes what it made of it, and that a few blocks run at once.
    """

    def __init__(self, seed=None):
        self.random = None if seed is None else random.Random(seed)
        self.blocks_at_once = 1 if seed is None else 4

    def coin(self, chance):
        return self.random is not None and self.random.random() < chance

    def choose(self, things):
        return things[0] if self.random is None else self.random.choice(things)

    def take(self, ready):
        """The next of the ready waiters."""
        if self.random is not None:
            ready.rotate(-self.random.randrange(len(ready)))
        return ready.popleft()

    def order(self, count):
        """The order of `count` things: forwards, or (seeded) backwards, by warps or shuffled."""
        if self.random is None:
            return range(count)
        kind = self.random.randrange(4)
        if kind == 0:
            return range(count - 1, -1, -1)
        order = list(range(count))
        if kind == 1:  # warps in a random order, lanes in theirs
            warps = [order[i : i + WARP] for i in range(0, count, WARP)]
            self.random.shuffle(warps)
            return [rank for warp in warps for rank in warp]
        self.random.shuffle(order)
        return order


_schedule = contextvars.ContextVar("schedule", default=None)
_time_limit = contextvars.ContextVar("time_limit", default=None)


@contextmanager
def one_at_a_time():
    """One launch. `now` is global, so launches from several Python threads take turns."""
    with _one_launch:
        now.watching = now.observer is not None or _schedule.get() is not None
        try:
            yield
        finally:
            now.watching = False


@contextmanager
def time_limit(seconds):
    """Within the `with`, a launch longer than `seconds` is stopped with a KernelTimeout."""
    token = _time_limit.set(seconds)
    try:
        yield
    finally:
        _time_limit.reset(token)


@contextmanager
def allow_unwritten():
    """Within the `with`, an unwritten shared or local element reads as NaN or 0xCD bytes."""
    before = now.unwritten_allowed
    now.unwritten_allowed = True
    try:
        yield
    finally:
        now.unwritten_allowed = before


@contextmanager
def _watchdog(seconds):
    """Raise KernelTimeout in this Python thread, wherever it is, once `seconds` have passed."""
    if seconds is None:
        yield
        return
    me = threading.get_ident()
    guard = threading.Lock()
    over = False
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def stop():
        with guard:
            if not over:
                raise_in(ctypes.c_ulong(me), ctypes.py_object(KernelTimeout))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with guard:
            over = True
        timer.cancel()
        raise_in(ctypes.c_ulong(me), None)  # not delivered yet: no longer wanted


@contextmanager
def schedule(seed):
    """Within the `with`, threads and blocks run in an order shuffled by `seed` (None: by index).

    Threads are also interrupted between reading and writing. A kernel without races gives the same
    result for every seed; one with a missing barrier or a non-atomic add seldom does.
    """
    token = _schedule.set(seed)
    try:
        yield
    finally:
        _schedule.reset(token)


class Site(NamedTuple):
    """A place in the kernel's source. Two accesses on one line differ in `instruction`."""

    filename: str
    line: int
    instruction: int


class Waiter:
    """A CUDA thread that waits: who, where, for what, its value; once released, the result."""

    __slots__ = ("fibre", "rank", "frame", "site", "value", "what", "result")

    def __init__(self, frame, what, value=None):
        self.fibre = getcurrent()
        self.rank = now.rank
        self.frame = frame
        self.site = frame.f_code, frame.f_lasti
        self.what = what
        self.value = value
        self.result = None

    @property
    def line(self):
        return self.frame.f_lineno

    def place(self):
        code, instruction = self.site
        return Site(code.co_filename, self.line, instruction)


class Block:
    """One block while it runs."""

    def __init__(self, launch, index, linear):
        self.launch = launch
        self.index = index  # (x, y, z)
        self.linear = linear
        self.todo = iter(launch.thread_order())
        self.started = 0
        self.size = launch.block_size
        self.finished = []  # ranks of the threads that returned
        self.ready = deque()  # released waiters
        self.barrier = []  # waiters at __syncthreads
        self.grid_barrier = []  # waiters at grid.sync()
        self.groups = {}  # (warp, mask, operation, site) -> waiters of a warp operation
        self.converging = {}  # (warp, site) -> waiters in activemask()
        self.live = None  # per warp, the mask of lanes that have not returned ...
        self.counted = 0  # ... as of this many of `finished`
        self.shared = {}  # call site -> array
        self.dynamic = None  # the dynamic shared memory, bytes

    def live_mask(self, warp):
        """The lanes of `warp` that have not returned."""
        if self.live is None:
            full, rest = divmod(self.size, WARP)
            self.live = [0xFFFFFFFF] * full + ([(1 << rest) - 1] if rest else [])
        for rank in self.finished[self.counted :]:
            self.live[rank >> 5] &= ~(1 << (rank & 31))
        self.counted = len(self.finished)
        return self.live[warp]


@functools.lru_cache(maxsize=64)
def coordinates(nx, ny, nz):
    """(x, y, z, rank) of every thread of a block; x runs fastest."""
    places = ((x, y, z) for z in range(nz) for y in range(ny) for x in range(nx))
    return [(*place, rank) for rank, place in enumerate(places)]


class Launch:
    """One kernel launch. `run()` returns when every thread has, or raises what went wrong."""

    def __init__(self, function, args, grid, block, dynamic_bytes, name):
        self.function = function
        self.args = args
        self.name = name
        self.grid = grid
        self.block = block
        self.dynamic_bytes = dynamic_bytes
        self.block_size = block[0] * block[1] * block[2]
        self.grid_size = grid[0] * grid[1] * grid[2]
        self.schedule = Schedule(_schedule.get())
        self.coordinates = coordinates(*block)
        self.workers = []  # idle workers
        self.hub = None
        self.all_workers = []

    def thread_order(self):
        if self.schedule.random is None:
            return self.coordinates
        return [self.coordinates[i] for i in self.schedule.order(self.block_size)]

    def run(self):
        if now.observer is not None:
            now.observer.launch(self.name, self.grid, self.block)
        now.launch = self
        for dim3, values in ((block_dim, self.block), (grid_dim, self.grid)):
            dim3.x, dim3.y, dim3.z = values
        self.hub = getcurrent()
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(), _watchdog(_time_limit.get()):
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                self.context = contextvars.copy_context()
                self.run_blocks()
        except BaseException:
            self.failed_thread = self.coordinates[now.rank][:3]
            self.failed = (0, 0, 0) if now.block is OUTSIDE else now.block.index
            raise
        finally:
            for worker in self.all_workers:
                if worker:
                    worker.throw(GreenletExit)
            now.leave()

    def run_blocks(self):
        gx, gy, _ = self.grid
        todo = iter(self.schedule.order(self.grid_size))
        alive = []
        parked = []
        while True:
            while (
                len(alive) < self.schedule.blocks_at_once
                and (linear := next(todo, None)) is not None
            ):
                alive.append(
                    Block(self, (linear % gx, linear // gx % gy, linear // (gx * gy)), linear)
                )
            if alive:
                block = self.schedule.choose(alive)
                state = self.run_block(block)
                if state != PREEMPTED:
                    alive.remove(block)
                if state == PARKED:
                    parked.append(block)
            elif not parked:
                return
            elif len(parked) < self.grid_size:
                raise grid_divergence(self, parked)
            else:  # every thread of the grid is at grid.sync()
                for block in parked:
                    block.ready.extend(block.grid_barrier)
                    block.grid_barrier = []
                alive, parked = parked, []

    def run_block(self, block):
        """Run `block` until it is DONE, PARKED (all threads wait at grid.sync()) or gives way."""
        self.enter(block)
        schedule = self.schedule
        self.preempted = False
        while not self.preempted:
            if block.ready and not (
                schedule.random and block.started < block.size and schedule.coin(0.5)
            ):
                schedule.take(block.ready).fibre.switch()
            elif block.started < block.size:
                self.worker().switch()
            elif len(block.finished) == block.size:
                return DONE
            elif not self.release(block):
                if len(block.grid_barrier) == block.size:
                    return PARKED
                raise stuck(self, block)
        return PREEMPTED

    def enter(self, block):
        now.block = block
        block_idx.x, block_idx.y, block_idx.z = block.index
        now.base_x = block_idx.x * block_dim.x
        now.base_y = block_idx.y * block_dim.y
        now.base_z = block_idx.z * block_dim.z

    def worker(self):
        if self.workers:
            return self.workers.pop()
        worker = greenlet(self.work, self.hub)
        worker.gr_context = self.context.copy()
        self.all_workers.append(worker)
        return worker

    def work(self):
        """Call the kernel for one thread after the other until none is left to start; then rest."""
        function = self.function
        args = self.args
        tid = thread_idx
        me = getcurrent()
        while True:
            block = now.block
            finished = block.finished
            for x, y, z, rank in block.todo:
                block.started += 1
                tid.x = x
                tid.y = y
                tid.z = z
                now.rank = rank
                if function(*args) is not None:
                    raise TypeError("CUDA kernel must have void return type.")
                finished.append(now.rank)
            self.workers.append(me)
            if block.ready and not self.schedule.random:
                block.ready.popleft().fibre.switch()
            else:
                self.hub.switch()

    # ---- waiting

    def give_way(self, frame):
        """Under a shuffled schedule: perhaps let other threads, of any block, run before this."""
        if self.schedule.coin(0.5):
            waiter = Waiter(frame, GIVES_WAY)
            now.block.ready.append(waiter)
            self.preempted = self.schedule.coin(0.5)
            self.pause(waiter)

    def pause(self, waiter):
        """Leave this CUDA thread waiting and run others; returns once it is released."""
        block = now.block
        if now.observer is not None and waiter.what is not GIVES_WAY:
            now.observer.wait(waiter.what, waiter.rank, block.linear, waiter.place())
        if block.ready and not self.schedule.random:
            block.ready.popleft().fibre.switch()
        else:  # the hub starts workers: started from here, they would nest
            self.hub.switch()
        rank = waiter.rank
        if now.block is not block:
            self.enter(block)
        now.rank = rank
        thread_idx.x, thread_idx.y, thread_idx.z, _ = self.coordinates[rank]
        return waiter.result

    def wake(self, block, waiters):
        """Release `waiters`, in order of arrival or shuffled."""
        if self.schedule.random is not None:
            waiters = list(waiters)
            self.schedule.random.shuffle(waiters)
        block.ready.extend(waiters)

    def barrier(self, frame, what, value=None):
        """__syncthreads and its counting forms: all threads of the block, at the same call."""
        block = now.block
        waiter = Waiter(frame, what, value)
        waiting = block.barrier
        waiting.append(waiter)
        if len(waiting) == block.size:
            site = waiter.site
            if any(other.site != site for other in waiting):
                raise different_barriers(self, block)
            if value is not None:
                result = combine(what, [other.value for other in waiting])
                for other in waiting:
                    other.result = result
            block.barrier = []
            self.wake(block, waiting)
        return self.pause(waiter)

    def grid_sync(self, frame):
        block = now.block
        waiter = Waiter(frame, "grid.sync()")
        block.grid_barrier.append(waiter)
        return self.pause(waiter)

    def warp(self, frame, what, mask, value, resolve):
        """A warp operation: the lanes in `mask` meet; `resolve` makes {lane: result} of values."""
        block = now.block
        rank = now.rank
        warp = rank >> 5
        lane = rank & 31
        mask = int(mask) & 0xFFFFFFFF
        if not mask >> lane & 1:
            raise BarrierError(
                f"{what}: lane {lane} calls it with mask 0x{mask:08x}, in which its own bit is "
                "not set",
                "The mask must name every lane that takes part, the calling one too.",
            )
        waiter = Waiter(frame, what, value)
        key = (warp, mask, what, waiter.site)
        group = block.groups.setdefault(key, [])
        group.append((waiter, resolve))
        if len(group) == (mask & block.live_mask(warp)).bit_count():
            self.finish_warp(block, key)
        return self.pause(waiter)

    def finish_warp(self, block, key):
        group = block.groups.pop(key)
        results = group[0][1]({waiter.rank & 31: waiter.value for waiter, _ in group})
        for waiter, _ in group:
            waiter.result = results[waiter.rank & 31]
        self.wake(block, [waiter for waiter, _ in group])

    def converge(self, frame):
        """activemask(): the lanes of the warp that come to this call together."""
        block = now.block
        rank = now.rank
        waiter = Waiter(frame, "activemask()")
        block.converging.setdefault((rank >> 5, waiter.site), []).append(waiter)
        return self.pause(waiter)

    def release(self, block):
        """No thread of `block` can run: find those whose wait has ended because others returned."""
        for key, group in block.groups.items():
            if len(group) == (key[1] & block.live_mask(key[0])).bit_count():
                self.finish_warp(block, key)
                return True
        if block.converging:
            waiters = block.converging.pop(next(iter(block.converging)))
            mask = sum(1 << (waiter.rank & 31) for waiter in waiters)
            for waiter in waiters:
                waiter.result = mask
            self.wake(block, waiters)
            return True
        return False


def combine(what, values):
    """The result of a counting barrier."""
    if what.endswith("_count()"):
        return sum(1 for value in values if value)
    if what.endswith("_and()"):
        return int(all(values))
    return int(any(values))
