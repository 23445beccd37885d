"""What one who waits for the GPU is told: their place, how long it takes, what to do instead."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from utils.engine import FORCE_CPU

if TYPE_CHECKING:
    from utils.gpu_queue.tickets import Ticket

ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
#: Seconds of waiting after which something is said, and after which another way is offered
SOON, LONG = 0.5, 45
#: Seconds that a turn is taken to need: a clock's budget, and its warm-up
TYPICAL = 2.0

INSTEAD = (
    "You need not wait: interrupt this cell and go on; only its times will be missing. To work "
    f"without the GPU, restart the kernel and run %env {FORCE_CPU}=1 first: then all runs on the "
    "CPU engines, checks included, and recorded times stand in for measured ones."
)


def ordinal(number: int) -> str:
    """1 is "first", 12 is "12th"."""
    if number <= len(ORDINALS):
        return ORDINALS[number - 1]
    last = number % 10 if number % 100 not in (11, 12, 13) else 0
    return str(number) + {1: "st", 2: "nd", 3: "rd"}.get(last, "th")


def place(ahead: Sequence["Ticket"], now: float) -> str:
    """Such as "third; about 3 s". now: the time, in seconds since the epoch."""
    seconds = len(ahead) * TYPICAL
    if ahead and ahead[0].started is not None:
        seconds -= min(now - ahead[0].started, TYPICAL)
    about = f"about {seconds:.0f} s" if seconds >= 1 else "a moment"
    return f"{ordinal(len(ahead) + 1)}; {about}"


class Notice:
    """One line that is written anew while one waits, and gone afterwards."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.shown = ""
        self.offered = False

    def update(self, ahead: Sequence["Ticket"]) -> None:
        """Say what is so now."""
        waited = time.monotonic() - self.since
        if waited < SOON:
            return
        if waited > LONG and not self.offered:
            self.offered = True
            self._write("")
            print(INSTEAD, flush=True)
        told = place(ahead, time.time())
        self._write(f"Waiting for the GPU, which times one thing at a time. Your place: {told}")

    def close(self) -> None:
        """The wait is over."""
        if self.shown:
            self._write("")

    def _write(self, text: str) -> None:
        if text == self.shown:
            return
        blank = " " * len(self.shown)
        sys.stdout.write(f"\r{blank}\r{text}")
        sys.stdout.flush()
        self.shown = text


def say(text: str) -> None:
    """A note beside what a cell prints."""
    print(f"Note: {text}", file=sys.stderr, flush=True)


def queue_is_missing(folder: Path, reason: str) -> str:
    """What is said once where the queue's folder cannot be used."""
    return (
        f"times are taken without a turn, so others may disturb them: {reason}. Whoever runs this "
        f"machine named {folder} as the queue for its GPU; tell them."
    )
