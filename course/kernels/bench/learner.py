"""A process of the bench for classes: one learner's kernel, which does what it is told.

    python -m course.kernels.bench.learner FD

FD: an open connection, over which come a function's name and its arguments, and go its results.
"""

import os
import sys
import time
from multiprocessing.connection import Connection

import numpy as np
from numba import cuda

from utils import benchmark, gpu_queue, has_gpu, pick

COUNT = pick(gpu=1 << 25, cpu=1 << 8)
STEPS = pick(gpu=512, cpu=4)
BLOCK = pick(gpu=256, cpu=32)
GRID = (COUNT + BLOCK - 1) // BLOCK
#: Seconds between two launches of a learner who does not time anything
BETWEEN = 0.05
#: Without a GPU: seconds that a turn takes
PLAYED = 0.05


@cuda.jit
def vector_add(out, a, b):
    """Limited by memory."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit
def polynomial(out, a, steps):
    """Limited by arithmetic."""
    i = cuda.grid(1)
    if i < out.size:
        x = a[i]
        y = x
        for _ in range(steps):
            y = y * x + x
        out[i] = y


@cuda.jit
def far_away(out):
    """Writes where no memory is."""
    out[cuda.grid(1) + (1 << 44)] = 1


class Learner:
    """The kernels with their arrays, and what can be asked for."""

    def __init__(self):
        values = np.random.default_rng().uniform(-0.5, 0.5, COUNT).astype(np.float32)
        self.a, self.b = cuda.to_device(values), cuda.to_device(values[::-1].copy())
        self.out = cuda.device_array(COUNT, np.float32)
        self.run = {"memory": self.memory, "arithmetic": self.arithmetic}

    def memory(self):
        vector_add[GRID, BLOCK](self.out, self.a, self.b)

    def arithmetic(self):
        polynomial[GRID, BLOCK](self.out, self.a, STEPS)

    def ready(self):
        """Once everything is compiled."""
        for run in self.run.values():
            run()
        cuda.synchronize()
        return True

    def without_queue(self):
        """From now on as if nobody had set one up."""
        return os.environ.pop(gpu_queue.FOLDER)

    def clock(self, kernel, rounds):
        """Times of a kernel, each in a turn of its own: [median in ms, began, ended, drawn]."""
        rows = []
        for _ in range(rounds):
            with gpu_queue.turn() as turn:
                median = self._timed(self.run[kernel], turn)
                rows.append([median, turn.began, time.monotonic(), turn.drawn])
        return rows

    def _timed(self, run, turn):
        """Milliseconds. Without a GPU nothing is timed: the turn is taken, and this says 1."""
        if has_gpu():
            return benchmark(run).median
        turn.start()
        run()
        time.sleep(PLAYED)
        return 1.0

    def check(self, kernel, seconds):
        """Launch a kernel now and then, untimed, as one who checks an answer; how often."""
        end = time.monotonic() + seconds
        count = 0
        while time.monotonic() < end:
            self.run[kernel]()
            cuda.synchronize()
            count += 1
            time.sleep(BETWEEN)
        return count

    def poison(self):
        """Break this process's context; the error's words."""
        try:
            far_away[1, 32](self.out)
            cuda.synchronize()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""


def main(descriptor: int) -> None:
    """Answer until the other end closes."""
    line = Connection(descriptor)
    learner = Learner()
    while True:
        try:
            name, *arguments = line.recv()
        except EOFError:
            return
        line.send(getattr(learner, name)(*arguments))


if __name__ == "__main__":
    main(int(sys.argv[1]))
