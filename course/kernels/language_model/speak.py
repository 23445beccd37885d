"""The model goes on with what somebody has begun: a token at a time, drawn from what is likely."""

import torch

from course.kernels.language_model import carried, problem, reference
from course.kernels.language_model.plain import Plain
from course.kernels.language_model.serving.sampling import Sampling, draw, probabilities
from utils.engine import has_gpu

CALM = Sampling(temperature=0.6, top_p=0.9)
DEVICE = "cuda" if has_gpu() else "cpu"


def model(dtype=torch.float32) -> tuple:
    """The trained model on this machine: (config, weights, tokens)."""
    return carried.model(dtype, DEVICE)


def speak(
    model, begins: str, count: int = 30, sampling: Sampling = CALM, seed: int = 0, stepper=None
) -> str:
    """A text with what the model makes of it, in so many tokens; it ends no paragraph.

    model: (config, weights, tokens). stepper(model, positions): what computes a step, a function of
    a token and its position that returns logits [vocabulary]; PyTorch's unless given.
    """
    known = model[2]
    row = known.encode(begins) or known.encode("\n")
    step = (stepper or in_pytorch)(model, len(row) + count)
    chance = torch.Generator().manual_seed(seed)
    ends = torch.tensor([i for i, piece in enumerate(known.pieces) if b"\n" in piece])
    for position in range(len(row) + count - 1):
        logits = step(row[position], position)
        if position + 1 < len(row):
            continue  # what was begun is still being read
        p = probabilities(logits.cpu().index_fill(0, ends, -torch.inf), sampling)
        row.append(int(draw(p, torch.rand((), dtype=torch.float64, generator=chance))))
    return known.decode(row)


def in_pytorch(model, positions: int):
    """A step by the reference, with a cache."""
    config, weights, _ = model
    cache = problem.cache(config, 1, positions, weights["norm"].dtype, DEVICE)

    def step(token: int, position: int):
        tokens = torch.tensor([token], device=DEVICE)
        return reference.decode(config, weights, cache, tokens, position)[0]

    return step


def by_kernels(model, positions: int):
    """A step by the kernels of plain.cu, with a cache."""
    config, weights, _ = model
    cache = problem.cache(config, 1, positions, weights["norm"].dtype, DEVICE)
    nothing = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    plain = Plain(config, weights, cache, nothing, nothing.clone())

    def step(token: int, position: int):
        plain.token.fill_(token)
        plain.position.fill_(position)
        plain.step()
        return plain.logits[0]

    return step
