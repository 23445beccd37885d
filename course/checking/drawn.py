"""Inputs drawn by what they may be: Hypothesis looks for a failure and makes it small."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from course.checking.limits import TooSlow
from course.checking.model import Exercise

CALLS = 150  # drawn for a plain function
LAUNCHES = 6  # drawn for a kernel


class Failed(Exception):
    """What ends Hypothesis's search."""


def drawn_shapes(exercise: Exercise) -> Any:
    """The Hypothesis strategy of an exercise's shapes, or None where it gives fixed ones only.

    It is `draws` or that of `fresh`; of a `fresh` without one the random seed is drawn.
    """
    from hypothesis import strategies

    if exercise.draws:
        return exercise.draws(strategies)
    fresh = exercise.fresh
    if fresh is None:
        return None
    if hasattr(fresh, "draws"):
        return fresh.draws(strategies)
    seeds = strategies.integers(0, (1 << 32) - 1)
    return seeds.map(lambda seed: fresh(np.random.default_rng(seed)))


@functools.cache
def get_ready() -> None:
    """Let Hypothesis do what it does once a process: it reads the source of all loaded modules.

    A copy of this process then has it, too.
    """
    import hypothesis
    from hypothesis import strategies

    @hypothesis.settings(max_examples=1, database=None, deadline=None)
    @hypothesis.given(strategies.integers())
    def search(_: int) -> None:
        pass

    search()


def smallest_failure(
    exercise: Exercise,
    fails: Callable[[tuple, np.random.Generator], object],
    seed: int,
    examples: int,
) -> tuple[tuple, np.random.Generator] | None:
    """(shape, rng) of the simplest drawn shape for which fails(shape, rng) is true, or None.

    rng: a random generator, another one in each of a few draws. seed: the same ones again.
    """
    import hypothesis
    from hypothesis import strategies

    shapes = drawn_shapes(exercise)
    if shapes is None:
        return None
    found = []

    def rng_of(number: int) -> np.random.Generator:
        return np.random.default_rng((seed, number))

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(shapes, strategies.integers(0, 99))
    def search(shape: tuple, number: int) -> None:
        if fails(shape, rng_of(number)):
            found.append((shape, number))
            raise Failed

    try:
        search()
    except Failed:
        pass  # Hypothesis runs the smallest one again, last of all
    except TooSlow:  # what it has found so far will do
        if not found:
            raise
    if not found:
        return None
    shape, number = found[-1]
    return shape, rng_of(number)
