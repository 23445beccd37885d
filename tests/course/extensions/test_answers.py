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


def test_a_number_that_backward_reads_and_nobody_kept_is_named():
    def keep(ctx, inputs, output):
        ctx.save_for_backward(output)

    finding = trials.judge_saved(keep, np.random.default_rng(1))
    assert finding == ("crashed", "Backward reads `ctx.scale`, and nobody has put it there.")


@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_who_takes_float32_alone_hears_of_the_other_floats(error):
    def forward(launch, x, a, b, c):
        if x.dtype != torch.float32:
            raise error("float32 only")
        return right_wrapper(launch, x, a, b, c)

    finding = trials.judge_contract(forward, np.random.default_rng(1))
    assert finding.reason == "wrong_dtype"
    assert "float64, float16 and bfloat16 are floats, too" in finding.says


def right_wrapper(launch, x, a, b, c):
    y = torch.empty_like(x)
    if x.numel():
        launch(y, x if x.stride() == y.stride() else torch.empty_like(y).copy_(x), a, b, c)
    return y


def test_a_mistake_of_ones_own_is_no_refusal_of_a_type():
    def forward(launch, x, a, b, c):
        return launch(x)

    with pytest.raises(TypeError, match="launch"):
        trials.judge_contract(forward, np.random.default_rng(1))


def test_two_tensors_for_one_backward_pass_are_told_whose_it_is():
    def register(operator, slopes):
        def keep(ctx, inputs, output):
            x, ctx.a, ctx.b, _ = inputs
            ctx.save_for_backward(x, output)

        def backward(ctx, dy):
            return slopes(dy, ctx.saved_tensors[0], ctx.a, ctx.b), None, None, None

        operator.register_autograd(backward, setup_context=keep)

    finding = trials.judge_register(register, np.random.default_rng(1))
    assert finding.says == "It keeps 2 tensors for y's backward pass, which needs x alone."


def test_the_device_meta_is_said_in_words():
    def fake(points, centers):
        count = points.shape[0]
        index = torch.empty(count, dtype=torch.int64, device="cpu")
        return index, points.new_empty(count, device="cpu")

    finding = trials.judge_fake(fake, np.random.default_rng(1))
    assert "points lie on a device without memory (meta), index of the fake on cpu" in finding.says
