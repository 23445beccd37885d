"""Limits for an answer that runs in the notebook's own process: time, and what it prints."""

import contextlib
import io
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from utils import has_gpu
from utils.cpu import deadline

SECONDS = 10  # of CPU time, for all launches of one check on the CPU engine, or all calls
EACH_SECONDS = 4  # of these, for one of them
ENOUGH_SECONDS = 2  # of these, after which a kernel that was wrong once is not tried any more
#: of CPU time, for a launch with large arrays, which takes a good computer one or two. It comes
#: after all small ones went well, so it may rather take long than be called endless.
LARGE_SECONDS = 20
GPU_SECONDS = 30  # on a GPU, where what is launched is compiled first, for one of them

#: Characters. What an answer prints is shown up to the first number and stops it at the second.
SHOWN, MOST = 2_000, 1_000_000
#: An answer that sleeps uses no CPU time. So many times its limit it may sleep by the clock, and it
#: sleeps if it uses less than this share of a core: a busy computer gives more to who works.
PATIENCE, AWAKE = 6, 0.02
#: Seconds after which TooLong comes again, where it was lost: Python drops what is raised in a
#: garbage collection. Not sooner, or a second one may come in the midst of what the first one ends.
AGAIN = 10


class TooLong(BaseException):
    """The answer did not finish in time: seconds of it. No Exception, lest it be taken for one."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class TooSlow(BaseException):
    """Every piece of work came to its end, and together they take too long. done, seconds."""

    def __init__(self, done: int, seconds: float) -> None:
        super().__init__(done, seconds)
        self.done, self.seconds = done, seconds


class TooMuch(BaseException):
    """The answer printed without end. No Exception, for the same reason."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLong in the main thread when the block takes longer; no other can be stopped.

    seconds: of CPU time, so that a busy computer stops nobody; PATIENCE times as many by the clock
    if it sleeps.
    """
    if deadline.ALONE:
        with deadline.stop_after(seconds, lambda: TooLong(seconds)):
            yield
        return
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "SIGPROF"):
        yield
        return

    used = time.process_time()

    def stop(signum: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, AGAIN, AGAIN)
        raise TooLong(seconds)

    def stop_if_asleep(signum: int, frame: FrameType | None) -> None:
        nonlocal used
        before, used = used, time.process_time()
        if used - before < AWAKE * PATIENCE * seconds:
            signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
            raise TooLong(seconds)

    clocks = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds, stop),
        (signal.SIGALRM, signal.ITIMER_REAL, PATIENCE * seconds, stop_if_asleep),
    )
    with contextlib.ExitStack() as after:
        for number, clock, limit, handler in clocks:
            after.callback(signal.signal, number, signal.signal(number, handler))
            left = signal.setitimer(clock, limit, limit)  # someone else's alarm, or none
            after.callback(signal.setitimer, clock, *left)
        yield


class Budget:
    """CPU time for pieces of work, so many seconds for each and so many for all of them."""

    def __init__(self, each: float, total: float) -> None:
        self.each, self.total = each, total
        self.done, self.used = 0, 0.0

    @contextlib.contextmanager
    def piece(self) -> Iterator[None]:
        """Raise TooLong when the block does not end, TooSlow when all took too long."""
        begin = time.process_time()
        with time_limit(self.each):
            yield
        self.done += 1
        self.used += time.process_time() - begin
        if self.used > self.total:
            raise TooSlow(self.done, self.used)


class _Sink(io.TextIOBase):
    """A place to print to that keeps the beginning and at last gives up."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.size = 0

    def write(self, text: str) -> int:
        if self.size < SHOWN:
            self.kept.append(text[: SHOWN - self.size])
        self.size += len(text)
        if self.size > MOST:
            raise TooMuch
        return len(text)

    @property
    def shown(self) -> str:
        """The beginning of what was printed, and whether that was all."""
        cut = "\n… (the rest is not shown)\n" if self.size > SHOWN else ""
        return "".join(self.kept) + cut


@contextlib.contextmanager
def print_limit() -> Iterator[_Sink]:
    """Keep what the block prints in a sink, which says what of it is `shown`.

    Raises TooMuch when it is endless.
    """
    sink = _Sink()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        yield sink


def budget_of_engine() -> Budget:
    """What all launches of one kind may take on the CPU engine."""
    return Budget(EACH_SECONDS, SECONDS)


def budgets_of_launches() -> tuple[Budget, Budget]:
    """What launches on this machine's engine may take: usual ones, and those with large arrays."""
    if has_gpu():
        return (budget_of_gpu(),) * 2  # one for both: a GPU is no slower with large ones
    return budget_of_engine(), Budget(LARGE_SECONDS, 3 * LARGE_SECONDS)


def budget_of_gpu() -> Budget:
    """What they may take on a GPU."""
    return Budget(GPU_SECONDS, 4 * GPU_SECONDS)
