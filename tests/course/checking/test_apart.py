"""Answers that exit, crash, close everything, fill the memory or take for ever have an outcome."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import os
import signal
import sys
import time

import numpy as np
import pytest
from numba import cuda

from course import exercises
from course.checking import apart, limits
from course.checking.checker import check_answer
from course.exercises import first_kernels
from tests.needs import without_gpu

pytestmark = pytest.mark.skipif(not apart.POSSIBLE, reason="this system cannot copy a process")
BLOCKS_FOR = exercises.EXERCISES["first_kernels.blocks_for"]


def exits(height, width, block_x, block_y):
    os._exit(0)


def ends_the_program(height, width, block_x, block_y):
    sys.exit("enough")


def interrupts(height, width, block_x, block_y):
    raise KeyboardInterrupt


def terminates(height, width, block_x, block_y):
    os.kill(os.getpid(), signal.SIGTERM)


def kills(height, width, block_x, block_y):
    os.kill(os.getpid(), signal.SIGKILL)


def closes(height, width, block_x, block_y):
    os.closerange(3, 256)
    return 1, 1


def hoards(height, width, block_x, block_y):
    kept = []
    while True:
        kept.append(np.empty(1 << 24, np.uint8))


def catches_all(height, width, block_x, block_y):
    while True:
        try:
            signal.setitimer(signal.ITIMER_PROF, 0)
            while True:
                pass
        except BaseException:
            pass


@pytest.mark.parametrize(
    "answer, reason, word",
    [
        (exits, "crashed", "ended the program (exit status 0)"),
        (ends_the_program, "crashed", "SystemExit(enough)"),
        (interrupts, "crashed", "KeyboardInterrupt"),
        (terminates, "crashed", "SIGTERM"),
        (kills, "timeout", "ended by force"),
        (hoards, "crashed", "MemoryError"),
        (catches_all, "timeout", ""),
    ],
)
def test_every_end_is_an_outcome(answer, reason, word, monkeypatch):
    monkeypatch.setattr(apart, "MOST_BYTES", 1 << 28)
    if answer is catches_all:
        monkeypatch.setattr(apart, "CPU_SECONDS", 1)
    outcome = check_answer(BLOCKS_FOR, answer, seed=1)
    assert outcome.status == "broken"
    assert outcome.reason == reason
    assert word in repr(outcome)


def test_an_answer_may_close_what_is_open():
    assert check_answer(BLOCKS_FOR, closes, seed=1).status == "broken"


@cuda.jit
def exits_in_a_kernel(out, a, factor):
    os._exit(0)


@without_gpu("beside a GPU's context kernels are checked in this process")
def test_the_next_check_is_as_ever():
    scale = exercises.EXERCISES["first_kernels.scale_guard"]
    assert check_answer(scale, exits_in_a_kernel, seed=1).reason == "crashed"
    assert check_answer(scale, first_kernels.scale, seed=1).solved


def busy(height, width, block_x, block_y):
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    return first_kernels.blocks_for(height, width, block_x, block_y)


def test_slow_is_not_endless(monkeypatch):
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    outcome = check_answer(BLOCKS_FOR, busy, seed=1)
    assert outcome.reason == "too_slow"
    assert "runs with small sizes took" in repr(outcome)


def test_what_an_answer_prints_is_shown(capsys):
    def talks(height, width, block_x, block_y):
        print("computing")
        return 1, 1

    check_answer(BLOCKS_FOR, talks, seed=1)
    assert "computing" in capsys.readouterr().out


def test_what_work_raises_and_returns_comes_back():
    assert apart.result_of(lambda: {"a": np.arange(3)})["a"].sum() == 3
    with pytest.raises(ZeroDivisionError):
        apart.result_of(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="no copy can be made"):
        apart.result_of(lambda: lambda: 0)
