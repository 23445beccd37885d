"""Limits for an answer that runs in the notebook's own process: time, and what it prints."""

import contextlib
import io
import signal
import sys
import threading

#: Characters. What an answer prints is shown up to the first number and stops it at the second.
SHOWN, MOST = 2_000, 1_000_000
#: An answer that sleeps uses no CPU time. So many times its limit it may take by the clock.
PATIENCE = 6


class TooLong(BaseException):
    """The answer did not finish in time. No Exception, so that nothing takes it for an error."""


class TooMuch(BaseException):
    """The answer printed without end. No Exception, for the same reason."""


@contextlib.contextmanager
def time_limit(seconds):
    """Raise TooLong in the main thread when the block takes longer; no other can be stopped.

    seconds: of CPU time, so that a busy computer stops nobody; PATIENCE times as many by the clock.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "SIGPROF"):
        yield
        return

    def stop(signum, frame):
        raise TooLong

    clocks = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, PATIENCE * seconds),
    )
    with contextlib.ExitStack() as after:
        for number, clock, limit in clocks:
            after.callback(signal.signal, number, signal.signal(number, stop))
            left = signal.setitimer(clock, limit)  # someone else's alarm, or none
            after.callback(signal.setitimer, clock, *left)
        yield


class _Sink(io.TextIOBase):
    """A place to print to that keeps the beginning and at last gives up."""

    def __init__(self):
        self.kept, self.size = [], 0

    def write(self, text):
        if self.size < SHOWN:
            self.kept.append(text[: SHOWN - self.size])
        self.size += len(text)
        if self.size > MOST:
            raise TooMuch
        return len(text)


@contextlib.contextmanager
def print_limit():
    """Show the beginning of what the block prints, after it; TooMuch when it is endless."""
    sink = _Sink()
    try:
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            yield
    finally:
        if sink.kept:
            cut = "\n… (the rest is not shown)\n" if sink.size > SHOWN else ""
            sys.stdout.write("".join(sink.kept) + cut)
