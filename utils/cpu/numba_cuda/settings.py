"""What a `with` asks of the launches inside it; of those of its own Python thread only."""

import contextvars
import ctypes
import random
import threading
import time
from contextlib import contextmanager

from .. import deadline
from .errors import KernelTimeout

WARP = 32
IN_STEP = "in step"
#: What sleeps uses no CPU time. So many times its limit it may last by the clock, and it sleeps if
#: it uses less than this share of a core: a busy computer gives more to who works.
PATIENCE, AWAKE = 6, 0.02
SHORTEST = 0.05  # seconds between two looks: they take CPU time themselves
AGAIN = 5.0  # seconds: a KernelTimeout that falls into a garbage collection's callback is lost

observer = contextvars.ContextVar("observer", default=None)  # see observe.py
unwritten = contextvars.ContextVar("unwritten", default=False)
apart = contextvars.ContextVar("apart", default=False)
_seed = contextvars.ContextVar("seed", default=None)
_seconds = contextvars.ContextVar("seconds", default=None)
_blocks = contextvars.ContextVar("blocks", default=None)


@contextmanager
def during(variable, value):
    """Within the `with`, a setting has this value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def time_limit(seconds):
    """Within the `with`, a launch that takes more CPU time is stopped with a KernelTimeout.

    One that sleeps takes none: it is stopped after PATIENCE times as long by the clock.
    """
    return during(_seconds, seconds)


def allow_unwritten():
    """Within the `with`, an unwritten shared or local element reads as NaN or 0xCD bytes."""
    return during(unwritten, True)


def schedule(seed):
    """Within the `with`, threads and blocks run in an order shuffled by `seed` (None: by index).

    Threads are also interrupted between reading and writing. A kernel without races gives the same
    result for every seed; one with a missing barrier or a non-atomic add seldom does.

    IN_STEP as the seed: see InStep.
    """
    return during(_seed, seed)


def only_blocks(numbers):
    """Within the `with`, a launch runs these blocks alone, by their linear numbers.

    The grid is as large as ever: what a kernel asks of it, it is told. Of a grid-wide barrier the
    others never come to, the launch says so.
    """
    return during(_blocks, tuple(numbers))


def lanes_apart():
    """Within the `with`, activemask() names a random part of the lanes that come to it together.

    A GPU does not promise that they still run together; who needs them to is wrong.
    """
    return during(apart, True)


def shuffled() -> bool:
    """Whether launches run in a shuffled order."""
    return _seed.get() is not None


def new_schedule():
    """The order of one launch, as `schedule` asks."""
    if _blocks.get() is not None:
        return SomeBlocks(_blocks.get())
    seed = _seed.get()
    return InStep() if seed == IN_STEP else Schedule(seed)


def cpu_clock(thread):
    """A function: seconds of a Python thread's CPU time, or of the process's (macOS)."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(thread)
    return lambda: time.clock_gettime(clock)


def time_left(thread, seconds):
    """A function: how many of these seconds of CPU time a thread has left; 0 where it sleeps.

    Whether it does is asked anew each PATIENCE times so many seconds by the clock: it may have
    worked before.
    """
    cpu = cpu_clock(thread)
    begin = before = cpu()
    since = time.monotonic()

    def left():
        nonlocal before, since
        now, clock = cpu(), time.monotonic()
        lasted, worked = clock - since, now - before
        if lasted > PATIENCE * seconds:
            before, since = now, clock
            if worked < AWAKE * lasted:
                return 0
        return max(0, seconds - (now - begin))

    return left


@contextmanager
def watchdog():
    """Raise KernelTimeout in this Python thread, wherever it is, once the time limit has passed."""
    seconds = _seconds.get()
    if seconds is None:
        yield
        return
    if deadline.ALONE:
        with deadline.stop_after(seconds, KernelTimeout):
            yield
        return
    me = threading.get_ident()
    guard = threading.Lock()
    over = threading.Event()
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    left = time_left(me, seconds)

    def stop():
        wait = seconds
        while not over.wait(max(wait, SHORTEST)):
            wait = left()
            if wait > 0:
                continue
            with guard:
                if not over.is_set():
                    raise_in(ctypes.c_ulong(me), ctypes.py_object(KernelTimeout))
            wait = AGAIN

    try:
        threading.Thread(target=stop, daemon=True).start()
        yield
    finally:
        try:
            with guard:
                over.set()
        finally:
            over.set()  # a KernelTimeout may have come in the midst of the first
        raise_in(ctypes.c_ulong(me), None)  # not delivered yet: no longer wanted


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
        return things[self.drawn(len(things))]

    def take(self, ready):
        """The next of the fibres that are ready."""
        ready.rotate(-self.drawn(len(ready)))
        return ready.popleft()

    def drawn(self, count):
        """A number below count; 0 where threads run in order. `randrange` takes far longer."""
        return 0 if self.random is None else int(count * self.random.random())

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


class InStep(Schedule):
    """All threads of a block go to their next read or atomic operation before one goes further.

    So do the lanes of a warp, more or less: who comes last at a place comes last each time.
    """

    def __init__(self):
        super().__init__(seed=0)
        self.blocks_at_once = 1

    def coin(self, chance):
        return True

    def choose(self, things):
        return things[0]

    def take(self, ready):
        return ready.popleft()

    def order(self, count):
        return range(count)


class SomeBlocks(Schedule):
    """In order, but some blocks only: a sample of a grid that would take too long."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = blocks

    def order(self, count):
        return self.blocks
