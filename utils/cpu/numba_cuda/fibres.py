"""How a CUDA thread that must wait is put aside in the middle of its call: in one of two ways.

By stacks, where there are greenlets: a worker is a call with a stack of its own, and is left where
it is. By generators, where there are none (a web page): the kernel is made a generator, which
yields where it waits (`suspending.py`). Order and results are the same; stacks are faster.

To the scheduler (`engine.py`) both give workers: `switch()` lets one run until it waits, gives way
or has no thread left to start.
"""

import contextvars
import inspect
import threading

from ..greenlets import GreenletExit, getcurrent, greenlet
from . import settings
from .state import LEFT, now, thread_idx
from .stuck import cannot_wait

MOST_RESTED = 1024  # workers that are kept for the next launch: a thread each of the largest block

_by_generators = contextvars.ContextVar("by_generators", default=greenlet is None)


def by_generators():
    """Within the `with`, threads wait as they do where there are no greenlets."""
    return settings.during(_by_generators, True)


def are_generators() -> bool:
    """Whether threads wait by generators."""
    return _by_generators.get()


def of(launch, function):
    """What puts the threads of a launch aside."""
    return Generators(launch, function) if are_generators() else Stacks(launch)


def ended(block, result):
    """A CUDA thread of `block`, the one that ran, has come to its end with this result."""
    if result is not None:
        if result is not LEFT:
            raise TypeError("CUDA kernel must have void return type.")
        block.left.append(now.rank)
    block.finished.append(now.rank)


def start_threads(launch, block):
    """Call the kernel for one thread of the block after the other until none is left to start."""
    function = launch.function
    args = launch.args
    tid = thread_idx
    finished = block.finished
    for x, y, z, rank in block.todo:
        block.started += 1
        tid.x = x
        tid.y = y
        tid.z = z
        now.rank = rank
        result = function(*args)
        if result is not None:
            ended(block, result)
        else:
            finished.append(now.rank)


# ---- by stacks


class Rested(threading.local):
    """Workers of this Python thread that wait for its next launch: making one takes long."""

    def __init__(self):
        self.workers = []


rested = Rested()


def work():
    """What a worker does: it starts threads of the launch that runs, and rests."""
    while True:
        start_threads(now.launch, now.block)
        now.launch.fibres.rest().switch()


class Stacks:
    """Workers that are greenlets."""

    def __init__(self, launch):
        self.launch = launch
        self.hub = getcurrent()
        self.context = contextvars.copy_context()
        self.idle = []
        self.all = []

    def current(self):
        """The worker that runs."""
        return getcurrent()

    def worker(self):
        """A worker that rests, of this launch or of an earlier one, or else a new one."""
        if self.idle:
            return self.idle.pop()
        worker = rested.workers.pop() if rested.workers else greenlet(work)
        worker.parent = self.hub
        worker.gr_context = self.context.copy()
        self.all.append(worker)
        return worker

    def rest(self):
        """The worker has nothing to do; who goes on: a thread that is ready, or the hub."""
        self.idle.append(getcurrent())
        block = now.block
        if block.ready and not self.launch.schedule.random:
            return block.ready.popleft()
        return self.hub

    def pause(self, waiter):
        """Leave the CUDA thread waiting and run others; its result once it is released."""
        block = now.block
        if block.ready and not self.launch.schedule.random:
            block.ready.popleft().switch()
        else:  # the hub starts workers: started from here, they would nest
            self.hub.switch()
        self.launch.go_on(block, waiter.rank)
        return waiter.result

    def give_way(self):
        """Let others run, of any block, before this CUDA thread goes on."""
        block = now.block
        rank = now.rank
        self.launch.queue(getcurrent())
        self.hub.switch()
        self.launch.go_on(block, rank)

    def dismiss(self):
        """The workers rest until the next launch of this Python thread."""
        for worker in self.all:
            worker.gr_context = None  # it may hold an observer
        rested.workers = (rested.workers + self.all)[:MOST_RESTED]

    def stop(self):
        """End all workers where they are."""
        for worker in self.all:
            if worker:
                worker.throw(GreenletExit)


# ---- by generators


class Fibre:
    """A worker without a stack: the generator of a CUDA thread, and what it is to be sent."""

    __slots__ = ("fibres", "generator", "block", "rank", "waiter", "value")

    def __init__(self, fibres):
        self.fibres = fibres
        self.generator = self.waiter = self.value = None

    def switch(self):
        """Go on until it waits, gives way or has no thread left to start."""
        self.fibres.run(self)


class Generators:
    """Workers that are Fibres. A kernel that never waits stays a plain function."""

    def __init__(self, launch, function):
        self.launch = launch
        self.suspends = inspect.isgeneratorfunction(function)
        self.running = None
        self.waiting = None  # the waiter of the thread that runs: it must yield it at once
        self.giving = False  # the thread that runs is to give way where it yields next
        self.aside = set()  # the Fibres in the midst of a call

    def current(self):
        return self.running

    def worker(self):
        return Fibre(self)

    def run(self, fibre):
        self.running = fibre
        if fibre.generator is None:
            fibre.block = now.block
        else:
            self.launch.go_on(fibre.block, fibre.rank)
            waiter = fibre.waiter
            if not self.advance(fibre, fibre.value if waiter is None else waiter.result):
                return
        if self.suspends:
            self.start_threads(fibre)
        else:
            start_threads(self.launch, fibre.block)
            self.refuse_to_wait()

    def start_threads(self, fibre):
        """As the function of this name, until a thread waits."""
        launch = self.launch
        block = fibre.block
        for x, y, z, rank in block.todo:
            block.started += 1
            thread_idx.x = x
            thread_idx.y = y
            thread_idx.z = z
            now.rank = rank
            fibre.generator = launch.function(*launch.args)
            if not self.advance(fibre, None):
                return

    def advance(self, fibre, value):
        """Let a thread run, given what it waited for. Whether it has come to its end."""
        send = fibre.generator.send
        try:
            while True:
                value = send(value)
                if self.waiting is not None or self.giving:
                    self.put_aside(fibre, value)
                    return False
        except StopIteration as end:
            result = end.value
        self.refuse_to_wait()
        self.giving = False
        fibre.generator = None
        self.aside.discard(fibre)
        ended(fibre.block, result)
        return True

    def put_aside(self, fibre, value):
        """A thread has yielded what it waits for, or what it has read before it gives way."""
        fibre.rank = now.rank
        self.giving = False
        self.aside.add(fibre)
        if self.waiting is None:
            fibre.waiter, fibre.value = None, value
            self.launch.queue(fibre)
            return
        if value is not self.waiting:
            self.refuse_to_wait()
        fibre.waiter, self.waiting = value, None

    def pause(self, waiter):
        """The kernel gets the waiter and yields it; what it then is sent is the result."""
        self.refuse_to_wait()
        self.waiting = waiter
        return waiter

    def refuse_to_wait(self):
        """A thread that was to wait has gone on: nothing told `suspending.py` that it may."""
        if self.waiting is not None:
            raise cannot_wait(self.launch, now.block, self.waiting)

    def give_way(self):
        self.giving = True

    def dismiss(self):
        """Nothing is left to do: all threads have ended."""

    def stop(self):
        for fibre in self.aside:
            fibre.generator.close()
