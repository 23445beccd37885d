"""The plain form of a token against float64, on the CPU runtime where there is no GPU."""

import pytest
import torch

from course.kernels.language_model import problem, reference, rightness
from course.kernels.language_model.plain import Plain
from course.kernels.language_model.problem import SMALL, TOY


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("start", [[0, 0], [30, 63, 15]])
def test_the_plain_form_is_right(dtype, start):
    error = rightness.prove(Plain, TOY, dtype, batch=len(start), steps=4, start=start)
    assert 0 < error


@pytest.mark.nightly("by day the toy")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_plain_form_is_right_of_other_sizes(dtype):
    rightness.prove(Plain, SMALL, dtype, steps=3, start=[0, 100])


@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=pytest.mark.nightly("by day 30"))])
def test_greedy_tokens_are_pytorchs_in_float32(count):
    weights = problem.weights(TOY, 3, torch.float32, rightness.DEVICE)
    caches = [problem.cache(TOY, 1, count, device=rightness.DEVICE) for _ in range(2)]
    token = torch.tensor([7], device=rightness.DEVICE)
    decoder = Plain(TOY, weights, caches[0], token, torch.zeros_like(token))
    for position in range(count):
        decoder.step()
        token = reference.decode(TOY, weights, caches[1], token, position).argmax(-1)
        assert torch.equal(decoder.token.long(), token), position


class Wrong(Plain):
    """A decoder that forgets something on the way."""


class NoNorm(Wrong):
    def _norm_gemv(self, out, gain, weight):
        super()._norm_gemv(out, torch.ones_like(gain), weight)


class StillStanding(Wrong):
    def step(self):
        super().step()
        self.position -= 1


class NoResidual(Wrong):
    def _gemv_add(self, y, weight):
        self.x.zero_()
        super()._gemv_add(y, weight)


@pytest.mark.parametrize("wrong", [NoNorm, StillStanding, NoResidual])
def test_a_mistake_is_told(wrong):
    with pytest.raises(AssertionError, match="roundings"):
        rightness.prove(wrong, TOY, torch.bfloat16, steps=3)
