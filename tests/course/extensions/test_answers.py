"""Other right answers of the chapter's exercises pass, and their judges name what is wrong."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import pytest
import torch

from course.checking.checker import check_answer
from course.exercises.pytorch_extensions import BROADCAST, FAKE, IN_PLACE, SAVED, STREAM


def keep_in_one_line(ctx, inputs, output):
    _, ctx.scale = inputs
    ctx.save_for_backward(output)


def keep_a_tuple(ctx, inputs, output):
    ctx.save_for_backward(*(output,))
    ctx.scale = float(inputs[1])


def fake_by_device(points, centers):
    n = points.shape[0]
    index = torch.empty(n, dtype=torch.long, device=points.device)
    return index, torch.empty(n, dtype=points.dtype, device=points.device)


def fake_by_computing(points, centers):
    distance, index = torch.cdist(points, centers.to(points.dtype)).min(1)
    return index, distance


def sum_axis_by_axis(dy, x, scale):
    def fold(grad, like):
        while grad.ndim > like.ndim:
            grad = grad.sum(0)
        for axis in range(like.ndim):
            if like.shape[axis] == 1:
                grad = grad.sum(axis, keepdim=True)
        return grad

    return fold(dy * scale, x), fold(dy * x, scale)


def ask_autograd(dy, x, scale):
    x, scale = x.clone().requires_grad_(), scale.clone().requires_grad_()
    return torch.autograd.grad(x * scale, (x, scale), dy)


def record_everything(gpu, x, heavy, light):
    before = gpu.current_stream()
    side = gpu.Stream()
    side.wait_stream(before)
    x.record_stream(side)
    with gpu.stream(side):
        a = heavy(x)
        a.record_stream(before)
    b = light(x)
    before.wait_stream(side)
    return b + a


def light_first(gpu, x, heavy, light):
    here, side = gpu.current_stream(), gpu.Stream()
    side.wait_stream(here)
    b = light(x)
    with gpu.stream(side):
        a = heavy(x)
    a.record_stream(here)
    here.wait_stream(side)
    return a + b


def as_a_list(name, update):
    return torch.library.custom_op(name, update, mutates_args=["momentum", "values"])


def as_a_decorator(name, update):
    return torch.library.custom_op(name, mutates_args={"values", "momentum"})(update)


@pytest.mark.parametrize(
    "exercise, answer",
    [
        (SAVED, keep_in_one_line),
        (SAVED, keep_a_tuple),
        (FAKE, fake_by_device),
        (FAKE, fake_by_computing),
        (BROADCAST, sum_axis_by_axis),
        (BROADCAST, ask_autograd),
        (STREAM, record_everything),
        (STREAM, light_first),
        (IN_PLACE, as_a_list),
        (IN_PLACE, as_a_decorator),
    ],
    ids=lambda each: getattr(each, "__name__", getattr(each, "id", "")),
)
def test_unlike_right_answers_pass(exercise, answer):
    outcome = check_answer(exercise, answer)
    assert outcome.solved, repr(outcome)


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
