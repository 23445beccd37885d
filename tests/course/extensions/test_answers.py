"""The judges of the chapter's exercises are not dodged. Right answers: tests/course/exercises."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import numpy as np
import pytest
import torch

from course.checking.checker import check_answer
from course.exercises.pytorch_extensions import FAKE, IN_PLACE, STREAM
from course.extensions import trials


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


def forgets_who_reads(gpu, x, heavy, light):
    """Waits as it should, and tells the allocator of nobody who reads `a`."""
    side = gpu.Stream()
    side.wait_stream(gpu.current_stream())
    with gpu.stream(side):
        a = heavy(x)
    b = light(x)
    gpu.current_stream().wait_stream(side)
    return a + b


def begins_at_once(gpu, x, heavy, light):
    side = gpu.Stream()
    with gpu.stream(side):
        a = heavy(x)
    b = light(x)
    gpu.current_stream().wait_stream(side)
    a.record_stream(gpu.current_stream())
    return a + b


def adds_at_once(gpu, x, heavy, light):
    side = gpu.Stream()
    side.wait_stream(gpu.current_stream())
    with gpu.stream(side):
        a = heavy(x)
    b = light(x)
    a.record_stream(gpu.current_stream())
    return a + b


@pytest.mark.parametrize("seed", range(5))
def test_what_is_missing_between_two_streams_is_told(seed):
    def said(answer):
        return trials.judge_stream(answer, np.random.default_rng(seed)).says

    assert "memory was handed out again" in said(forgets_who_reads)
    assert "heavy reads x before it is there" in said(begins_at_once)
    assert "the sum" in said(adds_at_once)
    assert "memory" not in said(adds_at_once) and "reads x" not in said(adds_at_once)


def counts_with_len(points, centers):
    count = len(points)
    return points.new_empty(count, dtype=torch.int64), points.new_empty(count)


def test_a_size_that_became_a_number_is_told_so():
    finding = trials.judge_fake(counts_with_len, np.random.default_rng(1))
    assert "`points.shape[0]` leaves it open" in finding.says


def test_what_is_made_once_for_a_size_is_no_memory_that_stays():
    made = {}

    def keep(ctx, inputs, output):
        made.setdefault(len(output), bytes(len(output)))
        ctx.scale = inputs[1]
        ctx.save_for_backward(output)

    assert trials.copy_kept(trials.scaled_tanh(keep), 2.0) is None
