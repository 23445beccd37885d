"""Triton answers: what is no answer is named; a process of its own judges as this one does."""

from contextlib import nullcontext

import pytest

pytest.importorskip("triton")

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

from course import exercises  # noqa: E402
from course.checking import triton_kernels as checking  # noqa: E402
from course.checking.answers import but  # noqa: E402
from course.exercises import triton_kernels as entries  # noqa: E402
from tests.conformance.triton import right_programs  # noqa: E402
from tests.needs import without_gpu  # noqa: E402
from utils.cpu.triton import IN_STEP, taking_turns  # noqa: E402

pytestmark = without_gpu("asks the CPU engine, in this process")


@pytest.mark.parametrize(
    "answer, reason, word",
    [
        (None, "not_a_kernel", "None"),
        (entries.blend.fn, "not_a_kernel", "@triton.jit"),
        (entries.log_sum, "wrong_arity", "out, x, y"),
    ],
)
def test_what_is_no_answer_is_named(answer, reason, word):
    outcome = exercises.check("triton.blend", answer)
    assert (outcome.status, outcome.reason) == ("broken", reason)
    assert word in repr(outcome)


def test_the_line_and_the_program_are_shown():
    wrong = next(w for w in entries.BLEND.wrong if w.reason == "race")
    outcome = exercises.check("triton.blend", wrong.answer, seed=1)
    assert outcome.code.startswith("program 1, line ")
    assert "program 0 writes" in outcome.lines[0]


def test_a_known_mistake_is_named():
    zeros = but(entries.log_sum, ('other=-float("inf")', "other=0.0"))
    outcome = exercises.check("triton.log_sum", zeros, seed=1)
    assert outcome.reason == "wrong_value"
    assert "With `other=0.0` the columns that do not exist count" in repr(outcome)


@triton.jit
def waits_while_zero(out, x, y, weight, n, BLOCK: tl.constexpr):
    while tl.load(out) == 0:
        weight = 0
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, weight, mask=i < n)


def test_a_launch_on_zeros_is_stopped(monkeypatch):
    monkeypatch.setattr(checking, "SECONDS", 0.5)
    assert exercises.check("triton.blend", waits_while_zero).reason == "timeout"


@pytest.mark.nightly("by day it says what is wrong, and in this process the solution is right")
def test_a_process_of_its_own_finds_the_solution_right(monkeypatch):
    monkeypatch.setattr(checking, "has_gpu", lambda: True)
    assert checking.run(entries.LOG_SUM, entries.log_sum, 3) is None


def test_a_process_of_its_own_says_the_same(monkeypatch):
    monkeypatch.setattr(checking, "has_gpu", lambda: True)
    wrong = next(w.answer for w in entries.LOG_SUM.wrong if w.reason == "uninitialized")
    reason, message, code = checking.run(entries.LOG_SUM, wrong, 3)
    assert reason == "uninitialized" and "no other=" in message and code.startswith("program 0")


@triton.jit
def halved(x):
    return FACTOR * x


@triton.jit
def with_a_helper(out, x):
    tl.store(out, halved(tl.load(x)))


FACTOR = tl.constexpr(0.5)


def test_a_process_of_its_own_gets_what_the_kernel_uses():
    source = checking.whole_source(with_a_helper.fn)
    assert (
        source.index("FACTOR = ") < source.index("def halved") < source.index("def with_a_helper")
    )


CHECKS = [name for name in vars(right_programs) if name.startswith("check_")]


@pytest.mark.parametrize("name", CHECKS)
def test_right_programs_may_take_turns(name):
    for order in (0, 1, IN_STEP):
        with taking_turns(order):
            getattr(right_programs, name)()


@triton.jit
def take_numbers(counter, seen, B: tl.constexpr):
    old = tl.atomic_add(counter, 0)
    tl.store(seen + tl.program_id(0), old)
    tl.atomic_xchg(counter, old + 1)


@triton.jit
def four_tries(counter):
    done = 0
    for _ in range(4):
        if done == 0:
            old = tl.atomic_add(counter, 0)
            if tl.atomic_cas(counter, old, old + 1) == old:
                done = 1


@pytest.mark.parametrize("programs", (4, 8))
def test_of_many_that_exchange_in_step_one_succeeds_each_time(programs):
    counter = torch.zeros(1, dtype=torch.int32)
    with taking_turns(IN_STEP):
        four_tries[(programs,)](counter)
    assert counter[0] == 4


def test_two_atomic_operations_are_not_one():
    def counted(turns):
        counter, seen = torch.zeros(1, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
        with turns:
            take_numbers[(16,)](counter, seen, B=1)
        return len(set(seen.tolist()))

    assert counted(nullcontext()) == 16
    assert max(counted(taking_turns(seed)) for seed in range(3)) < 16
