"""The judges of the chapter's exercises are not dodged. Right answers: tests/course/exercises."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import pytest
import torch

from course.checking.checker import check_answer
from course.exercises.pytorch_extensions import FAKE, IN_PLACE, STREAM


def heavy_alone(gpu, x, heavy, light):
    """Dodges the question: everything on one stream, and the sum worked out elsewhere."""
    return x * gpu.full(101.0)


def announce_another(name, update):
    return torch.library.custom_op(f"{name}_2", update, mutates_args=("values", "momentum"))


def guess_the_shape(points, centers):
    return torch.empty(5, dtype=torch.int64), torch.empty(5)


@pytest.mark.parametrize(
    "exercise, answer",
    [(STREAM, heavy_alone), (IN_PLACE, announce_another), (FAKE, guess_the_shape)],
)
def test_dodges_are_rejected(exercise, answer):
    assert not check_answer(exercise, answer).solved
