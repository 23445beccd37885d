"""Triton answers: other right ones pass, and a process of its own judges as this one does."""

import pytest

pytest.importorskip("triton")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

from course import exercises  # noqa: E402
from course.checking import triton_kernels as checking  # noqa: E402
from course.exercises import triton_kernels as entries  # noqa: E402


@triton.jit
def blend_difference(result, first, second, share, count, SIZE: tl.constexpr):
    lane = tl.arange(0, SIZE) + SIZE * tl.program_id(0)
    old = tl.load(second + lane, mask=lane < count, other=0.0)
    new = tl.load(first + lane, mask=lane < count, other=0.0)
    tl.store(result + lane, old + share * (new - old), mask=lane < count)


@triton.jit
def log_sum_chosen(out, x, columns, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * columns + lane, mask=lane < columns)
    top = tl.max(tl.where(lane < columns, row, -float("inf")), 0)
    powers = tl.where(lane < columns, tl.exp(row - top), 0.0)
    tl.store(out + tl.program_id(0), tl.log(tl.sum(powers, 0)) + top)


@pytest.mark.parametrize(
    "id, answer",
    [
        ("triton.blend", blend_difference),
        ("triton.log_sum", log_sum_chosen),
        ("triton.transpose", entries.turned),
    ],
)
def test_another_right_answer_passes(id, answer):
    exercises.check(id, answer, strict=True)


@pytest.mark.parametrize(
    "answer, reason, word",
    [
        (None, "not_a_kernel", "None"),
        (entries.blend.fn, "not_a_kernel", "@triton.jit"),
        (entries.transpose, "wrong_arity", "out, x, y"),
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


def test_a_process_of_its_own_says_the_same(monkeypatch):
    monkeypatch.setattr(checking, "has_gpu", lambda: True)
    assert checking.run(entries.LOG_SUM, entries.log_sum, 3) is None
    wrong = next(w.answer for w in entries.LOG_SUM.wrong if w.reason == "uninitialized")
    reason, message, code = checking.run(entries.LOG_SUM, wrong, 3)
    assert reason == "uninitialized" and "no other=" in message and code.startswith("program 0")
