"""A process's turn at the GPU."""

import os
import time
from pathlib import Path

from utils import engine
from utils.gpu_queue import words
from utils.gpu_queue.tickets import Late, NoQueue, Place, View, checked

#: Seconds of a turn, after which the next ones go first, and those by which it may be longer
SECONDS, GRACE = 10.0, 5.0
#: Seconds between two looks: of who is next, more for each place farther behind, at most
NEXT, EACH, MOST = 0.03, 0.1, 1.0

_said: set[str] = set()


class Turn:
    """A stretch of work, of which a part needs the GPU to itself.

    folder: of the queue. device: which GPU it queues for.
    """

    def __init__(self, folder: Path, device: str):
        self.folder = folder
        self.device = device
        self.place: Place | None = None
        self.drawn: float | None = None  # by the clock of all processes, time.monotonic
        self.began: float | None = None
        self.waited = 0.0

    def start(self) -> bool:
        """Wait for the turn; whether there was one to wait for. One that has begun goes on."""
        if self.place is not None:
            return False
        begin = time.monotonic()
        try:
            self._wait()
        except BaseException as error:
            self.end()
            if not isinstance(error, NoQueue | OSError):
                raise
            _say_once(words.queue_is_missing(self.folder, str(error)))
            return False
        self.began = time.monotonic()
        self.waited += self.began - begin
        return True

    def _wait(self) -> None:
        notice = words.Notice()
        self.drawn = time.monotonic()
        try:
            while not self._begun(notice):
                pass
        finally:
            notice.close()

    def _begun(self, notice: words.Notice) -> bool:
        """Wait in the queue and mark the turn; False for who has to draw another ticket."""
        place = self.place = Place(checked(self.folder), self.device)
        view = View(place, SECONDS + GRACE)
        try:
            while len(order := view.look()) > 1 or view.early is None:
                notice.update(order[:-1])
                time.sleep(min(NEXT + EACH * max(0, len(order) - 2), MOST))
            place.mark()
            view.be_in_time()  # or it was stopped between its last look and the mark
        except Late:  # others went on while this process was stopped
            place.leave()
            return False
        return True

    def renew(self) -> bool:
        """Where the turn is over, let those who wait go first, then take another one.

        Returns whether there was such a pause: what was warm may be cold.
        """
        if self.began is None or time.monotonic() - self.began < SECONDS:
            return False
        self.end()
        return self.start()

    def end(self) -> None:
        """Give the turn back."""
        if self.place is not None:
            self.place.leave()
        if self.began is not None and time.monotonic() - self.began > SECONDS + GRACE:
            _say_once(
                f"this took longer than a turn at the GPU ({SECONDS:.0f} s), and one piece of it "
                "could not be interrupted: others may have run meanwhile, so the time may be wrong."
            )
        self.place = self.began = None


def device() -> str:
    """Which queue a process stands in: its GPU's, its slice's of one (MIG), or the CPU's."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    if first.startswith("MIG-"):
        return first
    gpu = engine.gpu()
    return gpu.uuid if gpu else "cpu"


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        words.say(text)
