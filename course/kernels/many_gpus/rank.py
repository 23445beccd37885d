"""In a rank: what `launch` starts on every GPU, and what a rank knows of the others."""

import os
import pickle
import shutil
import sys
import threading
import traceback
from multiprocessing.connection import Client
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RANKS, ADDRESS, KEY = "MANY_GPUS_RANKS", "MANY_GPUS_ADDRESS", "MANY_GPUS_KEY"
#: What takes long to import, of what ranks use
HEAVY = ("numba.cloudpickle", "torch", "torch.distributed.fsdp")


class Group:
    """What a rank knows of the others, and a way to exchange small Python objects with them."""

    def __init__(
        self,
        rank: int,
        size: int,
        connection,
        folder: str,
    ):
        self.rank, self.size = rank, size
        self.folder = folder  # a folder that all ranks share, gone when they have ended
        self._connection = connection

    def all_gather(self, value=None) -> list:
        """Every rank's value, in the order of the ranks. All ranks must call it as often."""
        return self._exchange("all_gather", value, sys._getframe(1))

    def barrier(self) -> None:
        """Wait until every rank has come here."""
        self._exchange("barrier", None, sys._getframe(1))

    def _exchange(self, call, value, caller):
        place = f"{_place(caller.f_code.co_filename)}, line {caller.f_lineno}"
        self._connection.send(("exchange", call, place, value))
        return self._connection.recv()


def by_value(thing) -> bytes:
    """Pickled, also where it is a function of a notebook, which other processes cannot import."""
    from numba import cloudpickle

    return cloudpickle.dumps(thing)


def _what_happened() -> str:
    """The error that is being handled, with the lines that led to it and no folders."""
    kind, error, trace = sys.exc_info()
    frames = traceback.extract_tb(trace)[1:]  # without this file's own
    lines = [f"  {_place(f.filename)}, line {f.lineno}, in {f.name}" for f in frames]
    last = "".join(traceback.format_exception_only(kind, error)).strip()
    return "\n".join([*lines, last])


def _place(filename: str) -> str:
    """A file's name as a reader knows it."""
    path = Path(filename)
    if path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT))
    return "the cell" if "ipykernel" in filename else path.name


def _end_with_the_launcher() -> None:
    """End this process, whatever it does, as soon as the launcher's is gone, and its folder."""

    def watch():
        os.read(0, 1)  # nobody writes there: it returns at the end
        shutil.rmtree(Path(os.environ[ADDRESS]).parent, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def work() -> None:
    _end_with_the_launcher()
    rank, size = map(int, os.environ[RANKS].split("/"))
    key = bytes.fromhex(os.environ.pop(KEY))
    connection = Client(os.environ[ADDRESS], authkey=key)
    connection.send(rank)
    payload, folder = connection.recv()
    try:
        function, arguments = pickle.loads(payload)
        result = function(Group(rank, size, connection, folder), *arguments)
        heavy = [name for name in HEAVY if name in sys.modules]
        connection.send(("done", by_value(result), heavy))
    except BaseException:  # also SystemExit: the launcher shows it with the rank
        connection.send(("error", _what_happened()))
        sys.stdout.flush()
        os._exit(1)


if __name__ == "__main__":
    work()
