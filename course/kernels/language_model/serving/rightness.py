"""Is a batch's runner right? Against float64: prompts in pieces, sequences of different lengths."""

import torch

from course.kernels.language_model import problem, reference
from course.kernels.language_model.problem import Config
from course.kernels.language_model.rightness import DEVICE, bound, doubled
from course.kernels.language_model.serving.batch import BatchRunner
from course.kernels.language_model.serving.scheduler import BLOCK

#: Roundings to bfloat16 between layers, which `rightness.bound` has in float32
MORE = 2
CASE = Config(2, 128, 6, 2, 64, 192, 320, theta=10_000.0)
LENGTHS = (37, 5, 18)
BLOCKS = 12


def error(config: Config = CASE, lengths=LENGTHS, make=BatchRunner, seed: int = 0) -> float:
    """The largest error of some texts' logits, as a share of what roundings explain.

    Each step has four tokens of one text and one of each other, in blocks in an order of chance.
    """
    weights = problem.weights(config, seed, torch.bfloat16, DEVICE)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(BLOCKS, generator=generator).int()
    tables = order[: BLOCKS // len(lengths) * len(lengths)].reshape(len(lengths), -1)
    texts = [torch.randint(config.vocabulary, (n,), generator=generator) for n in lengths]
    runner = make(config, weights, BLOCKS, tables.shape[1] * BLOCK)
    found = [[] for _ in lengths]
    for step in range(sum(lengths)):
        rows = []  # (text, position)
        for text, length in enumerate(lengths):
            done = len(found[text])
            count = 4 if text == step % len(lengths) else 1
            rows += [(text, at) for at in range(done, min(done + count, length))]
        if not rows:
            break
        logits = runner.step(
            torch.stack([texts[text][at] for text, at in rows]),
            torch.tensor([at for _, at in rows]),
            torch.stack([tables[text] for text, _ in rows]),
            torch.arange(len(rows)),
        )
        for (text, _), row in zip(rows, logits.clone(), strict=True):
            found[text].append(row)
    exact = doubled(weights)
    worst = 0.0
    for text, rows in zip(texts, found, strict=True):
        expected = reference.forward(config, exact, text[None].to(DEVICE))[0]
        apart = (torch.stack(rows).double() - expected).abs().max() / expected.abs().max()
        worst = max(worst, (apart / (MORE * bound(config, torch.bfloat16))).item())
    return worst


def check() -> float:
    """The same; AssertionError where roundings do not explain it."""
    found = error()
    assert found <= 1, f"a batch's logits: {found:.3g} times what roundings explain"
    return found
