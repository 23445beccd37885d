"""Are decoders right? Their logits against float64, step by step, from what they hold themselves.

An error is told as a share of the largest logit, and held to what roundings explain.
"""

import torch

from course.kernels.language_model import problem, reference
from course.kernels.language_model.problem import Config
from course.kernels.language_model.quantized import rounded
from utils import has_gpu

DEVICE = "cuda" if has_gpu() else "cpu"
#: Half a step between neighbours at 1: the most by which one rounding changes a number
HALF_STEP = {torch.float32: 2**-24, torch.bfloat16: 2**-9}
#: Roundings in a row that a logit has behind it, for each layer and at the end; in float32 sums of
#: thousands of numbers, and angles of positions, round more often
ROUNDINGS = {torch.float32: 32, torch.bfloat16: 4}


def bound(config: Config, dtype) -> float:
    """The largest error that roundings explain, as a share of the largest logit.

    Errors of a layer's numbers are independent: they add up as the root of their count does.
    """
    return ROUNDINGS[dtype] * HALF_STEP[dtype] * (config.layers + 1) ** 0.5


def doubled(weights: dict) -> dict:
    """The same weights in float64."""
    return {name: weight.double() for name, weight in weights.items()}


def error_of(
    make, config: Config, dtype, *, batch=2, steps=40, seed=0, start=None, bits=16
) -> float:
    """The largest error of a decoder's logits, as a share of what roundings explain.

    bits: of the weights that the decoder makes of those it is given.
    make(config, weights, cache, token, position) -> a decoder with step(), token and logits.
    start: the first position of each sequence, 0 unless given. Sequences' pages lie in an order of
    chance. AssertionError where the next token is not the largest logit's.
    """
    start = torch.tensor(start or [0] * batch, device=DEVICE)
    weights = problem.weights(config, seed, dtype, DEVICE)
    positions = int(start.max()) + steps
    caches = [filled(config, batch, positions, kind, seed) for kind in (dtype, torch.float64)]
    generator = torch.Generator(DEVICE).manual_seed(seed)
    token = torch.randint(config.vocabulary, (batch,), generator=generator, device=DEVICE)
    decoder = make(config, weights, caches[0], token, start)
    exact_weights = doubled(rounded(weights, bits))
    worst = 0.0
    for step in range(steps):
        token = decoder.token.long().clone()
        decoder.logits.fill_(torch.nan)
        decoder.step()
        exact = reference.decode(config, exact_weights, caches[1], token, start + step)
        error = ((decoder.logits - exact).abs().max() / exact.abs().max()).item()
        assert error == error, f"step {step}: a logit is NaN"
        assert torch.equal(decoder.token.long(), decoder.logits.argmax(-1)), f"step {step}: token"
        worst = max(worst, error / bound(config, dtype))
    return worst


def filled(config: Config, batch: int, positions: int, dtype, seed: int):
    """A cache of random numbers (the same for every dtype: bfloat16's), its pages shuffled."""
    cache = problem.cache(config, batch, positions, dtype, DEVICE)
    generator = torch.Generator(DEVICE).manual_seed(seed)
    for numbers in (cache.k, cache.v):
        drawn = torch.randn(numbers.shape, generator=generator, device=DEVICE)
        numbers.copy_(drawn.bfloat16())
    order = torch.randperm(cache.table.numel(), generator=generator, device=DEVICE)
    cache.table = order.int().reshape(cache.table.shape)
    return cache


def prove(make, config: Config, dtype, **more) -> float:
    """The same; AssertionError where roundings do not explain it."""
    error = error_of(make, config, dtype, **more)
    assert error <= 1, f"{error:.3g} times what roundings explain"
    return error
