"""The scheduler: runs every thread of every block of one launch on this one CPU thread.

A worker (`fibres.py`) calls the kernel for one CUDA thread after the other. Most kernels never
wait, so one worker runs the whole grid as a plain loop. When a CUDA thread must wait (a barrier, a
warp operation), its worker is left suspended right there and another worker goes on with the next
CUDA threads; so the cost of switching is paid only by kernels that need it. All CUDA threads of a
block must have arrived at a barrier before it opens; blocks run one after another, except that a
grid-wide barrier parks a block until all are there.
"""

import functools
import random
import re
import threading
import warnings
from collections import deque
from typing import NamedTuple

import numpy as np

from . import fibres, settings
from .errors import BarrierError
from .settings import WARP
from .state import (
    HOST_CALLED,
    OUTSIDE,
    block_dim,
    block_idx,
    grid_dim,
    now,
    one_at_a_time,
    thread_idx,
)
from .stuck import different_barriers, grid_divergence, stuck

_DROPPED = np.exceptions.ComplexWarning
DONE, PARKED, PREEMPTED = "done", "parked", "preempted"  # why run_block() returned


class Site(NamedTuple):
    """A place in the kernel's source. Two accesses on one line differ in `instruction`."""

    filename: str
    line: int
    instruction: int


class Waiter:
    """A CUDA thread that waits: who, where, for what, its value; once released, the result."""

    __slots__ = ("fibre", "rank", "frame", "site", "value", "what", "result")

    def __init__(self, frame, what, value=None):
        if now.python_thread != threading.get_ident():
            raise RuntimeError(HOST_CALLED)
        self.fibre = now.launch.fibres.current()
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
        self.finished = []  # ranks of the threads that are done
        self.left = []  # ranks of those that ended at a `return`: barriers do not wait for them
        self.ready = deque()  # the fibres that can go on
        self.barrier = []  # waiters at __syncthreads
        self.grid_barrier = []  # waiters at grid.sync()
        self.groups = {}  # (warp, mask, operation, site) -> waiters of a warp operation
        self.converging = {}  # (warp, site) -> waiters in activemask()
        self.live = None  # per warp, the mask of lanes that have not returned ...
        self.counted = 0  # ... as of this many of `finished`
        self.shared = {}  # call site -> array
        self.dynamic = None  # the dynamic shared memory, bytes

    def all_but_left(self, waiters):
        """Whether all threads wait here but those that have left."""
        return len(waiters) + len(self.left) == self.size

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


def refuse_complex_numbers():
    """Make NumPy raise, not warn, where an array of ours would drop an imaginary part.

    The filter stays: it holds in this package's modules only, and what was taken away at a launch's
    end could come back with what another Python thread puts back at the end of its
    `warnings.catch_warnings`.
    """
    first = warnings.filters[0] if warnings.filters else ()
    if _DROPPED not in first:
        package = re.escape(__package__)
        warnings.filterwarnings("error", category=_DROPPED, module=rf"{package}\.")


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
        self.schedule = settings.new_schedule()
        self.coordinates = coordinates(*block)
        self.fibres = None

    def thread_order(self):
        if self.schedule.random is None:
            return self.coordinates
        return [self.coordinates[i] for i in self.schedule.order(self.block_size)]

    def run(self):
        """Run all blocks, in this Python thread's turn; after an error `failed` says where."""
        with one_at_a_time(watched=False):
            self.begin()
            try:
                with np.errstate(all="ignore"), settings.watchdog():
                    self.fibres = fibres.of(self, self.function)
                    self.run_blocks()
                self.fibres.dismiss()
            except BaseException:
                self.failed_thread = self.coordinates[now.rank][:3]
                self.failed = (0, 0, 0) if now.block is OUTSIDE else now.block.index
                if self.fibres is not None:
                    self.fibres.stop()
                raise
            finally:
                now.leave()

    def begin(self):
        """This launch is the one that runs."""
        refuse_complex_numbers()
        if now.observer is not None:
            now.observer.launch(self.name, self.grid, self.block)
        now.launch = self
        now.python_thread = threading.get_ident()
        for dim3, values in ((block_dim, self.block), (grid_dim, self.grid)):
            dim3.x, dim3.y, dim3.z = values

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
                    block.ready.extend(waiter.fibre for waiter in block.grid_barrier)
                    block.grid_barrier = []
                alive, parked = parked, []

    def run_block(self, block):
        """Run `block` until it is DONE, PARKED (all threads wait at grid.sync()) or gives way."""
        self.enter(block)
        schedule = self.schedule
        self.preempted = False
        while not self.preempted:
            if block.ready and not (block.started < block.size and schedule.coin(0.5)):
                schedule.take(block.ready).switch()
            elif block.started < block.size:
                self.fibres.worker().switch()
            elif len(block.finished) == block.size:
                return DONE
            elif not self.release(block):
                if block.grid_barrier and block.all_but_left(block.grid_barrier):
                    return PARKED
                raise stuck(self, block)
        return PREEMPTED

    def enter(self, block):
        now.block = block
        block_idx.x, block_idx.y, block_idx.z = block.index
        now.base_x = block_idx.x * block_dim.x
        now.base_y = block_idx.y * block_dim.y
        now.base_z = block_idx.z * block_dim.z

    # ---- waiting

    def give_way(self):
        """Under a shuffled schedule: perhaps let other threads, of any block, run before this."""
        if self.schedule.coin(0.5):
            self.fibres.give_way()

    def queue(self, fibre):
        """A fibre of the running block gives way; perhaps the block does, too."""
        now.block.ready.append(fibre)
        self.preempted = self.schedule.coin(0.5)

    def pause(self, waiter):
        """Leave this CUDA thread waiting and run others; gives what `fibres` does."""
        if now.observer is not None:
            now.observer.wait(waiter.what, waiter.rank, now.block.linear, waiter.place())
        return self.fibres.pause(waiter)

    def go_on(self, block, rank):
        """This CUDA thread runs again."""
        if now.block is not block:
            self.enter(block)
        now.rank = rank
        thread_idx.x, thread_idx.y, thread_idx.z, _ = self.coordinates[rank]

    def wake(self, block, waiters):
        """Release `waiters`, in order of arrival or shuffled."""
        if self.schedule.random is not None:
            waiters = list(waiters)
            self.schedule.random.shuffle(waiters)
        block.ready.extend(waiter.fibre for waiter in waiters)

    def barrier(self, frame, what, value=None):
        """__syncthreads and its counting forms: all threads of the block, at the same call."""
        block = now.block
        waiter = Waiter(frame, what, value)
        block.barrier.append(waiter)
        if len(block.barrier) == block.size:
            self.finish_barrier(block)
        return self.pause(waiter)

    def finish_barrier(self, block):
        """All threads of the block wait, or all that have not left."""
        waiting = block.barrier
        first = waiting[0]
        if any(other.site != first.site for other in waiting):
            raise different_barriers(self, block)
        if first.value is not None:
            result = combine(first.what, [other.value for other in waiting])
            for other in waiting:
                other.result = result
        block.barrier = []
        self.wake(block, waiting)

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
        if block.barrier and block.all_but_left(block.barrier):
            self.finish_barrier(block)
            return True
        for key, group in block.groups.items():
            if len(group) == (key[1] & block.live_mask(key[0])).bit_count():
                self.finish_warp(block, key)
                return True
        if block.converging:
            waiters = block.converging.pop(next(iter(block.converging)))
            for part in self.parts(waiters):
                mask = sum(1 << (waiter.rank & 31) for waiter in part)
                for waiter in part:
                    waiter.result = mask
            self.wake(block, waiters)
            return True
        return False

    def parts(self, waiters):
        """Those of the waiters that are active together: all, or, with lanes apart, two parts."""
        if not settings.apart.get():
            return [waiters]
        drawn = self.schedule.random or random.Random(len(waiters))
        sides = [drawn.randrange(2) for _ in waiters]
        return [[w for w, side in zip(waiters, sides, strict=True) if side == n] for n in (0, 1)]


def combine(what, values):
    """The result of a counting barrier."""
    if what.endswith("_count()"):
        return sum(1 for value in values if value)
    if what.endswith("_and()"):
        return int(all(values))
    return int(any(values))
