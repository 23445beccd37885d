"""Speculative decoding: a quick draft writes some tokens, the model reads them all in one step.

    for token in write(model, draft, tokens, ahead=4, chance=Chance(seed)): ...

A step of the model takes hardly longer for five tokens than for one: what takes the time is to read
the weights. The draft's tokens are accepted one by one, up to the first that is not. In its place
another one is drawn, so that the text has exactly the distribution that the model alone gives.
Sources: Leviathan, Kalman and Matias, Fast Inference from Transformers via Speculative Decoding
(2023); Chen et al., Accelerating Large Language Model Decoding with Speculative Sampling (2023).
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator

import torch

from course.kernels.language_model.serving import sampling
from course.kernels.language_model.serving.runner import Runner
from course.kernels.language_model.serving.sampling import Sampling
from course.kernels.language_model.serving.scheduler import BLOCK
from utils.occupancy import ceil_div

# ---- the rule


def share_accepted(p, q):
    """With which probability a token is accepted that the draft drew.

    p, q: its probability by the model and by the draft.
    """
    return min(1, p / q)


def left_over(p, q):
    """What another token is drawn from where one was not accepted: p less q, where that is more.

    p, q: all tokens' probabilities by the model and by the draft.
    """
    rest = (p - q).clip(0)
    return rest / rest.sum()


class Chance:
    """Where decisions come from. The same code runs with one that tries all of them, in a test."""

    def __init__(self, seed: int = 0):
        self._random = random.Random(seed)

    def happens(self, share) -> bool:
        """True with this probability."""
        return self._random.random() < share

    def pick(self, p) -> int:
        """A token with these probabilities."""
        return int(sampling.draw(p, torch.tensor(self._random.random(), dtype=torch.float64)))


def turn(model: Callable, draft: Callable, tokens: list[int], ahead: int, chance) -> list[int]:
    """The next 1 to ahead + 1 tokens.

    draft(tokens) -> what it draws the next one from. model(tokens, n) -> what the model draws from
    after each of the last n of them, as many distributions: one step.
    """
    written, by_draft = [], []
    for _ in range(ahead):
        by_draft.append(draft(tokens + written))
        written.append(chance.pick(by_draft[-1]))
    by_model = model(tokens + written, ahead + 1)
    for number, (token, q) in enumerate(zip(written, by_draft, strict=True)):
        p = by_model[number]
        if not chance.happens(share_accepted(p[token], q[token])):
            return [*written[:number], chance.pick(left_over(p, q))]
    return [*written, chance.pick(by_model[ahead])]


def write(model, draft, tokens: list[int], ahead: int, chance) -> Iterator[list[int]]:
    """Turn after turn, for ever; each gives its tokens."""
    tokens = list(tokens)
    while True:
        new = turn(model, draft, tokens, ahead, chance)
        tokens += new
        yield new


def tokens_per_turn(share: float, ahead: int) -> float:
    """How many tokens a turn gives, if each is accepted with this probability."""
    return sum(share**n for n in range(ahead + 1))


def predicted_speedup(share: float, ahead: int, draft: float) -> float:
    """By a model: a turn is a step of the model and `ahead` of the draft, each so much of one."""
    return tokens_per_turn(share, ahead) / (1 + ahead * draft)


# ---- models and drafts


class Reader:
    """A runner that reads one text, and remembers how far its cache has it.

    Call it as `turn` calls a model: reader(tokens, n), or as it calls a draft: reader(tokens).
    """

    def __init__(self, runner: Runner, way: Sampling):
        self.runner, self.way = runner, way
        self.steps = 0
        self._read = []
        self._table = torch.arange(runner.blocks, dtype=torch.int32)

    def __call__(self, tokens: list[int], last: int | None = None) -> torch.Tensor:
        """Probabilities after each of the last so many tokens; of one, where no number is told."""
        count = last or 1
        first = min(common(self._read, tokens), len(tokens) - count)
        rows = len(tokens) - first
        if len(tokens) > self.runner.blocks * BLOCK:
            raise ValueError(f"{len(tokens)} tokens do not fit into {self.runner.blocks} blocks")
        logits = self.runner.step(
            torch.tensor(tokens[first:]),
            torch.arange(first, len(tokens)),
            self._table[: ceil_div(len(tokens), BLOCK)].expand(rows, -1),
            torch.arange(rows - count, rows),
        )
        self.steps += 1
        self._read = list(tokens)
        p = sampling.probabilities(logits, self.way).cpu()  # where drafts and chance are
        return p if last else p[0]


def common(one: list[int], other: list[int]) -> int:
    """How many first tokens are the same."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class Counts:
    """A draft without a network: what has followed the latest words before, in some text.

    It looks for the longest run of up to `most` latest tokens that stands in the text, and draws
    what stood behind it, as often as it stood there.
    """

    def __init__(self, text: list[int], vocabulary: int, most: int = 3):
        self.vocabulary, self.most = vocabulary, most
        self._after = {}
        for length in range(most + 1):
            for i in range(length, len(text)):
                self._after.setdefault(tuple(text[i - length : i]), Counter())[text[i]] += 1

    def __call__(self, tokens: list[int]) -> torch.Tensor:
        """What the next token is drawn from."""
        for length in range(min(self.most, len(tokens)), -1, -1):
            counts = self._after.get(tuple(tokens[len(tokens) - length :]))
            if counts:
                break
        p = torch.zeros(self.vocabulary, dtype=torch.float64)
        p[list(counts)] = torch.tensor(list(counts.values()), dtype=torch.float64)
        return p / p.sum()
