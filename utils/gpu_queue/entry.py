"""The queue's door, which costs nothing where there is no queue."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from utils.gpu_queue.turns import Turn

#: Names the queue's folder. Where it is not set there is no queue.
FOLDER = "CUDA_COURSE_GPU_QUEUE"

_state = threading.local()


class NoTurn:
    """Where there is no queue: nothing is waited for."""

    waited = 0.0
    drawn = began = None

    def start(self) -> bool:
        """Nothing to wait for."""
        return False

    def renew(self) -> bool:
        """No pause."""
        return False


NO_TURN = NoTurn()


@contextlib.contextmanager
def turn() -> Iterator["Turn | NoTurn"]:
    """Work of which `start` begins the part that needs the GPU to itself, until the block's end.

    A block within another one belongs to its turn. Without ``CUDA_COURSE_GPU_QUEUE`` nothing
    happens.
    """
    folder = os.environ.get(FOLDER)
    outer = getattr(_state, "turn", None)
    if not folder or outer is not None:
        yield outer or NO_TURN
        return
    from utils.gpu_queue.turns import Turn, device  # Python in a web page has no locks of files

    mine = _state.turn = Turn(Path(folder), device())
    try:
        yield mine
    finally:
        _state.turn = None
        mine.end()
