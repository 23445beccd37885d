"""Is it right? A batch's logits against float64, speculation by kernels against the plain rule."""

import torch

from course.kernels.language_model import problem, reference
from course.kernels.language_model.problem import Config
from course.kernels.language_model.rightness import DEVICE, bound, doubled
from course.kernels.language_model.serving import sampling
from course.kernels.language_model.serving.batch import BatchRunner
from course.kernels.language_model.serving.drafting import Averages, Writer
from course.kernels.language_model.serving.runner import PyTorchRunner
from course.kernels.language_model.serving.sampling import Sampling
from course.kernels.language_model.serving.scheduler import BLOCK
from course.kernels.language_model.serving.speculative import Reader, turn

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


class Given:
    """Decisions of a turn from a list of chances, in the order in which `Writer` takes them."""

    def __init__(self, chances: list[float]):
        ahead = len(chances) // 2
        self._drafts = chances[:ahead]
        self._decisions = iter(chances[ahead:-1])
        self._last = chances[-1]

    def happens(self, share) -> bool:
        """See speculative.Chance."""
        return next(self._decisions) < float(share)

    def pick(self, p) -> int:
        """See speculative.Chance."""
        chance = self._drafts.pop(0) if self._drafts else self._last
        return int(sampling.draw(p, torch.tensor(chance, dtype=torch.float64, device=p.device)))


def same_text(ahead: int, turns: int = 20, temperature: float = 0.8) -> int:
    """Let the kernels of speculative decoding and the rule in Python write, by the same chances.

    Returns how many tokens they have written. AssertionError where these differ.
    """
    weights = problem.weights(problem.TOY, 0, torch.float32, DEVICE)
    generator = torch.Generator().manual_seed(0)
    text = torch.randint(problem.TOY.vocabulary, (2048,), generator=generator)
    draft = Averages.of(problem.TOY, weights, text, temperature)
    tokens = [1, 2, 3, 4, 5]
    how = {"ahead": ahead, "temperature": temperature, "most": 200}
    writer = Writer(problem.TOY, weights, draft, tokens, **how)
    writer.write(turns)
    runner = PyTorchRunner(problem.TOY, weights, 20)
    model = Reader(runner, Sampling(temperature))
    counts = []
    for chances in writer.chances[: len(writer.counts())].tolist():
        new = turn(model, draft, tokens, ahead, Given(chances))
        tokens += new
        counts.append(len(new))
    assert counts == writer.counts(), f"{ahead} drafted: {counts} and {writer.counts()} per turn"
    assert tokens[5:] == writer.text(), f"{ahead} drafted: other tokens"
    return len(tokens) - 5
