"""Exercises whose answer is a function that PyTorch calls: judged by letting PyTorch call it."""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from course.checking import checker, engines
from course.checking.limits import time_limit
from course.checking.model import Exercise
from course.checking.rejected import Rejected, check_arity, crashed, parameters
from utils.tools.torch_threads import one_thread

SECONDS = 30  # of CPU time; the first check in a notebook imports PyTorch's tracers


class Lazy:
    """A module that is imported when it is first used: PyTorch takes a second."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name):
        return getattr(importlib.import_module(self._name), name)


class Finding(NamedTuple):
    """Why an answer is not right: a key of REASONS, and a sentence for the learner."""

    reason: str
    says: str


@dataclass(frozen=True, kw_only=True)
class TorchExercise(Exercise):
    """`judge(answer, rng)` returns a Finding, or None for a right answer; `tried` says what it did.

    It raises whatever the answer raises.
    """

    judge: Callable
    tried: str
    kind: str = "torch"
    reference: object = None
    inputs: object = None
    shapes: tuple = ()


def check(exercise: TorchExercise, answer, seed: int) -> str:
    """What was tried, or Rejected."""
    if not inspect.isfunction(answer):
        raise Rejected("not_a_kernel", "check() takes the function itself, without parentheses.")
    check_arity(answer, parameters(exercise))
    try:
        with time_limit(SECONDS), one_thread():
            finding = exercise.judge(answer, np.random.default_rng(seed))
    except Exception as error:
        raise crashed(engines.Stopped(error), answer) from None
    if finding:
        raise Rejected(finding.reason, finding.says)
    return exercise.tried


checker.CHECKS["torch"] = check
