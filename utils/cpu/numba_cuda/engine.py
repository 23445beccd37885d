"""The scheduler: runs every thread of every block of one launch on this one CPU thread.

A worker (a greenlet) calls the kernel for one CUDA thread after the other. Most kernels never wait, so one
worker runs the whole grid as a plain loop. When a CUDA thread must wait (a barrier, a warp operation), its
worker is left suspended right there and another worker goes on with the next CUDA threads; so the cost of
switching is paid only by kernels that need it. All CUDA threads of a block must have arrived at a barrier
before it opens; blocks run one after another, except that a grid-wide barrier parks a block until all are there.
"""

import contextvars
import functools
import random
import threading
from collections import deque
from contextlib import contextmanager

import numpy as np
from greenlet import GreenletExit, getcurrent, greenlet

from .errors import BarrierError, as_text

WARP = 32


class Dim3:
    """x, y and z of an index or a size."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x=1, y=1, z=1):
        self.x, self.y, self.z = x, y, z

    def __iter__(self):
        yield self.x
        yield self.y
        yield self.z

    def __repr__(self):
        return f"({self.x}, {self.y}, {self.z})"


# What cuda.threadIdx and its kin are. The scheduler changes them at every switch, so kernels read plain attributes.
thread_idx, block_idx, block_dim, grid_dim = Dim3(0, 0, 0), Dim3(0, 0, 0), Dim3(), Dim3()


class Now:
    """The CUDA thread that is running: its rank in the block, its block, and what the launch needs at hand."""

    __slots__ = ("rank", "block", "launch", "base_x", "base_y", "base_z", "observer")

    def __init__(self):
        self.rank = 0
        self.block = self.launch = self.observer = None
        self.base_x = self.base_y = self.base_z = None


now = Now()
_one_launch = (
    threading.RLock()
)  # the state above is global, so launches from several Python threads take turns


class Schedule:
    """In which order threads and blocks run: by index, or shuffled from a seed."""

    def __init__(self, seed=None):
        self.seed = seed
        self.random = None if seed is None else random.Random(seed)

    def order(self, count):
        """The order of `count` things: forwards, or (seeded) forwards, backwards, warp by warp or shuffled."""
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


@contextmanager
def schedule(seed):
    """Within the `with`, kernels run their threads and blocks in a shuffled order drawn from `seed` (None: by index).

    A kernel without races gives the same result for every seed; one with a missing barrier seldom does.
    """
    token = _schedule.set(seed)
    try:
        yield
    finally:
        _schedule.reset(token)


class Waiter:
    """A CUDA thread that waits: who, where (a frame), with what value; and, once released, the result."""

    __slots__ = ("fibre", "rank", "site", "line", "value", "result", "what")

    def __init__(self, fibre, rank, site, line, value, what):
        self.fibre, self.rank, self.site, self.line, self.value = fibre, rank, site, line, value
        self.result = None
        self.what = what


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
        self.function, self.args, self.name = function, args, name
        self.grid, self.block = grid, block
        self.dynamic_bytes = dynamic_bytes
        self.static_bytes = 0
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
        with _one_launch:
            before = now.block, now.launch
            now.launch = self
            for dim3, values in ((block_dim, self.block), (grid_dim, self.grid)):
                dim3.x, dim3.y, dim3.z = values
            self.hub = getcurrent()
            try:
                with np.errstate(all="ignore"):
                    self.context = contextvars.copy_context()
                    self.run_blocks()
            except BaseException:
                self.failed = now.block.index if now.block is not None else (0, 0, 0)
                raise
            finally:
                for worker in self.all_workers:
                    if worker:
                        worker.throw(GreenletExit)
                now.block, now.launch = before
                now.base_x = now.base_y = now.base_z = None

    def run_blocks(self):
        parked = []
        gx, gy, _ = self.grid
        for linear in self.schedule.order(self.grid_size):
            block = Block(self, (linear % gx, linear // gx % gy, linear // (gx * gy)), linear)
            if self.run_block(block):
                parked.append(block)
        while parked:  # every block is at grid.sync(), or has ended
            if len(parked) < self.grid_size:
                raise self.grid_divergence(parked)
            for block in parked:
                block.ready.extend(block.grid_barrier)
                block.grid_barrier = []
            parked = [block for block in parked if self.run_block(block)]

    def run_block(self, block):
        """Run `block` until all its threads have returned (False) or all wait at grid.sync() (True)."""
        self.enter(block)
        while True:
            if block.ready:
                block.ready.popleft().fibre.switch()
            elif block.started < block.size:
                self.worker().switch()
            elif len(block.finished) == block.size:
                return False
            elif not self.release(block):
                if len(block.grid_barrier) == block.size:
                    return True
                raise self.stuck(block)

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
        """Call the kernel for one thread after the other, until none is left to start; then rest."""
        function, args, tid = self.function, self.args, thread_idx
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
            if block.ready:
                block.ready.popleft().fibre.switch()
            else:
                self.hub.switch()

    # -- waiting ---------------------------------------------------------------------------------------------

    def pause(self, waiter):
        """Leave this CUDA thread waiting and run others; returns once it is released."""
        block = now.block
        if block.ready:
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
        waiter = Waiter(getcurrent(), now.rank, (frame.f_code, frame.f_lasti), frame.f_lineno, value, what)
        waiting = block.barrier
        waiting.append(waiter)
        if len(waiting) == block.size:
            site = waiter.site
            if any(other.site != site for other in waiting):
                raise self.different_barriers(block)
            if value is not None:
                result = combine(what, [other.value for other in waiting])
                for other in waiting:
                    other.result = result
            block.barrier = []
            self.wake(block, waiting)
        return self.pause(waiter)

    def grid_sync(self, frame):
        block = now.block
        waiter = Waiter(
            getcurrent(), now.rank, (frame.f_code, frame.f_lasti), frame.f_lineno, None, "grid.sync()"
        )
        block.grid_barrier.append(waiter)
        return self.pause(waiter)

    def warp(self, frame, what, mask, value, resolve):
        """A warp operation: the lanes named in `mask` meet; `resolve` turns {lane: value} into {lane: result}."""
        block, rank = now.block, now.rank
        warp, lane = rank >> 5, rank & 31
        mask = int(mask) & 0xFFFFFFFF
        if not mask >> lane & 1:
            raise BarrierError(
                f"{what}: lane {lane} calls it with mask 0x{mask:08x}, in which its own bit is not set",
                "The mask must name every lane that takes part, the calling one too.",
            )
        waiter = Waiter(getcurrent(), rank, (frame.f_code, frame.f_lasti), frame.f_lineno, value, what)
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
        block, rank = now.block, now.rank
        waiter = Waiter(getcurrent(), rank, (frame.f_code, frame.f_lasti), frame.f_lineno, None, "activemask")
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

    # -- what went wrong -------------------------------------------------------------------------------------

    def name_of(self, rank):
        return as_text(self.coordinates[rank][:3])

    def at(self, error, block, waiter):
        """Put thread, block and line of `waiter` into `error`."""
        error.thread, error.block = self.coordinates[waiter.rank][:3], block.index
        error.site = waiter.site[0], waiter.line
        return error

    def different_barriers(self, block):
        places = {}
        for waiter in block.barrier:
            places.setdefault(waiter.line, []).append(waiter)
        text = "; ".join(f"{self.some(waiters)} at line {line}" for line, waiters in sorted(places.items()))
        return self.at(
            BarrierError(
                f"Threads of one block wait at different barriers: {text}",
                "cuda.syncthreads() must be the same call for all threads of the block: move it out of the branch.",
            ),
            block,
            block.barrier[-1],
        )

    def some(self, waiters):
        """'thread (0,0,0)' or '16 threads (first (0,0,0))'."""
        first = self.name_of(min(waiter.rank for waiter in waiters))
        return f"thread {first}" if len(waiters) == 1 else f"{len(waiters)} threads (first {first})"

    def stuck(self, block):
        waiting = list(block.barrier) + list(block.grid_barrier)
        waiting += [waiter for group in block.groups.values() for waiter, _ in group]
        first = min(waiting, key=lambda waiter: waiter.rank)
        places = {}
        for waiter in waiting:
            places.setdefault((waiter.what, waiter.line), []).append(waiter)
        gone = block.size - len(waiting)
        if len(places) == 1:
            (what, line), waiters = next(iter(places.items()))
            if block.groups:
                (warp, mask, _, _), group = next(iter(block.groups.items()))
                present = sum(1 << (waiter.rank & 31) for waiter, _ in group)
                return self.at(
                    BarrierError(
                        f"{what} at line {line} waits for ever: its mask 0x{mask:08x} names lanes of warp {warp} that "
                        f"never come (0x{mask & ~present:08x})",
                        "All lanes named in the mask must reach the same call.",
                    ),
                    block,
                    first,
                )
            out = next(rank for rank in block.finished)
            return self.at(
                BarrierError(
                    f"{len(waiters)} of {block.size} threads wait at {what}, line {line}, but {gone} "
                    f"{'has' if gone == 1 else 'have'} returned without reaching it (thread {self.name_of(out)}, say)",
                    "Every thread of the block must reach the barrier: no return and no branch around it.",
                ),
                block,
                first,
            )
        text = "; ".join(
            f"{self.some(w)} in {what} at line {line}" for (what, line), w in sorted(places.items())
        )
        if gone:
            text += f"; {gone} returned"
        return self.at(
            BarrierError(
                f"Deadlock: no thread of the block can go on. {text}",
                "Threads that wait for each other must wait at the same call.",
            ),
            block,
            first,
        )

    def grid_divergence(self, parked):
        block = parked[0]
        return self.at(
            BarrierError(
                f"{len(parked)} of {self.grid_size} blocks wait at grid.sync(), but the others have returned without it",
                "Every thread of every block must reach grid.sync().",
            ),
            block,
            block.grid_barrier[0],
        )


def combine(what, values):
    """The result of a counting barrier."""
    if what.endswith("_count()"):
        return sum(1 for value in values if value)
    if what.endswith("_and()"):
        return int(all(values))
    return int(any(values))
