"""Whose turn it is among Python's threads, also after a fork."""

import contextlib
import os
import threading


def turn() -> threading.RLock:
    """A lock for one thread at a time; a fork waits until no other thread holds it.

    A forked process has the thread that forked alone: nobody would give back what another one held,
    nor put in order what it was about to change. As the standard library's `logging` does it.
    """
    lock = threading.RLock()

    def give_back() -> None:
        with contextlib.suppress(RuntimeError):  # the wait for it was interrupted
            lock.release()

    def give_back_in_child() -> None:
        try:
            lock.release()
        except RuntimeError:  # who holds it is not in this process
            lock._at_fork_reinit()  # type: ignore[attr-defined]  # as `logging` does it

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire,
            after_in_parent=give_back,
            after_in_child=give_back_in_child,
        )
    return lock
