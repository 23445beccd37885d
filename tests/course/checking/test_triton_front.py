"""Triton's own front end says what a GPU could not run, though the CPU engine runs it."""

import os
import signal

import pytest

pytest.importorskip("triton")

import numpy as np  # noqa: E402
import triton  # noqa: E402
import triton.language as language  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.language import float32 as real  # noqa: E402

from course import exercises  # noqa: E402
from course.checking import triton_front  # noqa: E402
from course.checking.answers import but  # noqa: E402
from course.exercises import triton_kernels as entries  # noqa: E402
from tests.needs import without_gpu  # noqa: E402

NUMBER = 2.0
CONSTANT = tl.constexpr(2.0)
LIST = [2.0]


class CLASS:
    number = 2.0


@triton.jit
def squared(x):
    return x * x


@triton.jit
def uses_much(out, x, n, B: language.constexpr):
    i = tl.arange(0, B)
    a = CONSTANT * squared(tl.load(x + i, mask=i < n, other=0.0)).to(real)
    tl.store(out + i, a, mask=i < n)


@triton.jit
def starts_whole(out, x, n, B: tl.constexpr):
    total = 0
    for k in range(n):
        total += tl.load(x + k)
    tl.store(out, total)


ARGUMENTS = {
    "out": np.zeros(8, np.float32),
    "x": np.zeros(8, np.float32),
    "n": 8,
    "B": 8,
}


def refused(kernel, **changed):
    return triton_front.refused(kernel.fn, ARGUMENTS | changed)


def test_a_kernel_may_use_kernels_constants_types_and_modules_by_any_name():
    assert refused(uses_much) is None


@pytest.mark.parametrize("name", ("NUMBER", "LIST", "LIST[0]", "CLASS.number"))
def test_other_globals_are_refused_by_name(name):
    message, _ = refused(but(uses_much, "CONSTANT", name))
    assert f"global variable {name[:4]}" in message


def test_the_line_is_the_one_in_the_file():
    message, number = refused(starts_whole)
    assert "total has initial type int32" in message
    assert number == starts_whole.fn.__code__.co_firstlineno + 3


def test_it_is_asked_with_the_types_of_the_launch():
    assert refused(starts_whole, x=np.zeros(8, np.int32)) is None
    assert "fp16" in refused(starts_whole, x=np.zeros(8, np.float16))[0]
    assert refused(starts_whole, n=1.5)[0]  # range takes no float


@pytest.mark.nightly("by day it is started once")
def test_a_process_that_was_ended_is_started_again():
    os.kill(triton_front.compiler.process.pid, signal.SIGKILL)
    assert refused(starts_whole, n=9)[0]
    triton_front.compiler.forget()
    assert refused(uses_much, n=9) is None


def test_the_same_is_asked_once():
    refused(uses_much)
    before = triton_front.ask.cache_info().misses
    refused(uses_much)
    assert triton_front.ask.cache_info().misses == before


def test_an_endless_compilation_is_no_answer(monkeypatch):
    lines = {"null": "null"}
    monkeypatch.setattr(triton_front.compiler, "line_for", lambda request: lines.get(request, ""))
    assert refused(uses_much, n=10) == triton_front.NO_ANSWER
    triton_front.ask.cache_clear()


def test_the_learner_sees_the_line_and_what_triton_says():
    answer = but(
        entries.blend,
        "    b = tl.load(y + i, mask=inside)\n",
        "    parts = []\n    parts.append(tl.load(y + i, mask=inside))\n    b = parts[0]\n",
    )
    outcome = exercises.check("triton.blend", answer)
    assert (outcome.status, outcome.reason) == ("broken", "does_not_compile")
    assert "Triton's compiler says" in repr(outcome)
    assert "parts.append" in outcome.code


@without_gpu("a GPU's compiler is asked in any case")
def test_without_the_compiler_the_outcome_says_so(monkeypatch):
    monkeypatch.setattr(triton_front.compiler, "ready", lambda: False)
    triton_front.ask.cache_clear()
    outcome = exercises.check("triton.blend", entries.blend)
    triton_front.ask.cache_clear()
    assert outcome.solved and "was not asked" in repr(outcome)
