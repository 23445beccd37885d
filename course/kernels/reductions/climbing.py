"""The judge of the two ladders: a rung is right on lengths of all kinds before it is timed.

    judge = climbing.Sums(host)
    judge.climb("sequential", sum_sequential)     # your kernel, beside CUDA C
    judge.watch("sequential", sum_sequential)     # the same by the tracer, which names races
    judge.tried("shuffle")                        # the CUDA C as it stands: right, or what is wrong
    judge.table()                                 # all that were climbed

A kernel that is given takes the place of the course's in Numba; CUDA C is built as the learner left
it in its cell. Both are called "yours" where they differ from the course's.
"""

import contextlib
import inspect
import os
import signal
import threading

import numpy as np
from numba import cuda

from course.kernels.reductions import scan_ladder, scan_lookback, sum_ladder
from course.kernels.reductions.kernels import is_yours, load
from utils import compare, cuda_c
from utils.cpu.numba_cuda import schedule
from utils.engine import has_gpu
from utils.tools.diagnostics import LearnerError
from utils.tracer import trace

SIZES = (0, 1, 33, 1025, 5_003)
SMALL = 1025  # elements that are watched closely
ROUNDING = 1e-5
RUNS = 30
RUNS_ON_CPU = 8
SECONDS = 60  # of a try without a GPU: far more than a kernel needs that comes to its end
FEW = 12_000  # elements of a run on the CPU: twelve blocks, whose order then shows in the bits


class NotRight(LearnerError):
    """A rung gives something else than the sums."""


class _Watched:
    """A Numba kernel whose launches the tracer runs. problems: what it found, in words."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.problems = []

    def __getitem__(self, launch):
        def run(*arguments):
            traced = trace(self.kernel, *launch, *arguments)
            self.problems += traced.problems
            names = inspect.signature(self.kernel.py_func).parameters
            for name, argument in zip(names, arguments, strict=True):
                if name in traced.results:
                    argument.copy_to_device(traced.results[name])

        return run


class _Judge:
    """rungs: by name. name: under which results are recorded. file: of CUDA C.

    passes: how often a way that moves as little as can be touches each element.
    """

    rungs: dict
    name: str
    file: str
    passes: int

    def __init__(self, host):
        self.host = host
        self.x = cuda.to_device(host)
        self.out = self.room(host.size)
        self.climbed = {}

    def climb(self, name: str, kernel=None):
        """Check a rung in both languages, then time them in turn. NotRight where one is not."""
        rung = self.rungs[name]
        kernel = kernel or rung.kernel
        ways = {
            "Numba": lambda x, out: rung.launch(kernel, x, out),
            "CUDA C": rung.cuda_c,
        }
        if is_yours(kernel, rung.kernel):
            print("[yours: the Numba kernel of your cell]")
        for label, run in ways.items():
            for size in SIZES:
                self.check(label, run, size)
        rivals = {label: lambda run=run: run(self.x, self.out) for label, run in ways.items()}
        times = compare(rivals, bytes=self.passes * self.x.nbytes, name=f"{self.name}/{name}")
        self.climbed[rung.title] = times
        return times

    def watch(self, name: str, kernel) -> None:
        """Say whether a Numba kernel is right as it stands now, and what the tracer sees in it.

        Nothing is raised, and nothing timed: it runs on the CPU, on a few elements.
        """
        rung = self.rungs[name]
        watched = _Watched(kernel)
        if is_yours(kernel, rung.kernel):
            print("[yours: the Numba kernel of your cell]")
        try:
            self.check("Numba", lambda x, out: rung.launch(watched, x, out), SMALL)
            said = "✓ right, and no race" if not watched.problems else "(right, this time)"
        except NotRight as mistake:
            said = str(mistake)
        for problem in watched.problems[:2]:
            print(problem)
        print(said)

    def different(self, name: str) -> int:
        """How many different results a rung's Numba kernel gives for the same numbers.

        Without a GPU a few blocks run in shuffled orders, as a GPU would order them, and the
        numbers are repeated until there are enough for them.
        """
        runs = RUNS if has_gpu() else RUNS_ON_CPU
        x = self.x if has_gpu() else cuda.to_device(np.resize(self.host, FEW))
        results = set()
        for seed in range(runs):
            with schedule(None if has_gpu() else seed):
                self.rungs[name].numba(x, self.out)
            results.add(self.out.copy_to_host().tobytes())
        return len(results)

    def tried(self, name: str, kernel=None) -> None:
        """Say whether a rung is right as it stands now: with the Numba kernel that is given, or
        its CUDA C. Nothing is raised, nothing is timed.

        Without a GPU the CPU runtime's slow checks watch, and name a mistake of C with its line;
        what does not come to its end is stopped.
        """
        rung = self.rungs[name]
        if kernel is not None and is_yours(kernel, rung.kernel):
            print("[yours: the Numba function of your cell]")
        _forget()  # what is loaded is built anew, with the checks
        try:
            with cuda_c.checked(), _stopped_after(SECONDS):
                if kernel is None:
                    self.check("CUDA C", rung.cuda_c, SMALL)
                else:
                    self.check("Numba", lambda x, out: rung.launch(kernel, x, out), SIZES[-1])
        except LearnerError as mistake:
            print(mistake)
        else:
            print("✓ right")
        _forget()

    def check(self, label: str, run, size: int) -> None:
        """Run it on the first `size` elements. NotRight where the result is not theirs."""
        part, out = cuda.to_device(self.host[:size]), self.room(size)
        out.copy_to_device(np.full(out.size, np.nan, np.float32))  # what is never written stays NaN
        run(part, out)
        found, wanted = out.copy_to_host(), self.right(self.host[:size])
        wrong = ~(np.abs(found - wanted) <= ROUNDING * np.maximum(1, np.abs(wanted)))
        if wrong.any():
            place = int(wrong.argmax())
            raise NotRight(
                f"{label}, {size:,} elements: out[{place}] is {found[place]:.7g}, "
                f"and {wanted[place]:.7g} would be right"
            )

    def table(self) -> None:
        """Print all rungs that were climbed, in the ladder's order."""
        where = {times.where for times in self.climbed.values() if times.where}
        if where:
            print(f"no GPU here; recorded on {'; '.join(where)}")
        print(f"{'':28}{'Numba':>12}{'CUDA C':>12}   of copy speed (CUDA C)")
        for title in (rung.title for rung in self.rungs.values() if rung.title in self.climbed):
            times = self.climbed[title]
            cells = [_milliseconds(times.timings[label]) for label in ("Numba", "CUDA C")]
            print(f"{title:28}{cells[0]:>12}{cells[1]:>12}   {_share(times.timings['CUDA C'])}")


@contextlib.contextmanager
def _stopped_after(seconds):
    """Raise NotRight where the block takes longer on the CPU, which is interrupted for it."""
    if has_gpu():
        yield
        return
    late = threading.Event()

    def stop():
        late.set()
        os.kill(os.getpid(), signal.SIGINT)  # a launch of the CPU runtime heeds no other signal

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if not late.is_set():
            raise
        says = f"It was stopped after {seconds:g} seconds. Does every loop end?"
        raise NotRight(says) from None
    finally:
        timer.cancel()


def _forget() -> None:
    for cached in (load, scan_lookback.in_cuda_c):
        cached.cache_clear()


def _milliseconds(timing) -> str:
    return f"{timing.time[0]:.3f} ms" if timing.time else "-"


def _share(timing) -> str:
    if not timing.time or not timing.copy_time:
        return "-"
    share = timing.copy_time / timing.time[0]
    return f"{share:4.0%} {'█' * round(20 * share)}"


class Sums(_Judge):
    """The ladder of sums over an array of float32."""

    rungs, name, file, passes = sum_ladder.RUNGS, "reduce", "sum_ladder.cu", 1

    @staticmethod
    def room(size: int):
        """An array for the result."""
        return cuda.device_array(1, np.float32)

    @staticmethod
    def right(values):
        """What must come out, in float64."""
        return values.sum(dtype=np.float64, keepdims=True)


class Scans(_Judge):
    """The ladder of running sums over an array of float32."""

    rungs = {**scan_ladder.RUNGS, "look_back": scan_lookback.RUNG}
    name, file, passes = "scan", "scan_ladder.cu", 2

    @staticmethod
    def room(size: int):
        """An array for the result."""
        return cuda.device_array(size, np.float32)

    @staticmethod
    def right(values):
        """What must come out, in float64."""
        return values.cumsum(dtype=np.float64)
