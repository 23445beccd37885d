"""Speculative decoding gives the model's own distribution: proved by trying every decision."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch

from course.kernels.language_model.problem import TOY, weights
from course.kernels.language_model.serving.runner import PyTorchRunner
from course.kernels.language_model.serving.sampling import Sampling
from course.kernels.language_model.serving.speculative import (
    Chance,
    Counts,
    Reader,
    predicted_speedup,
    tokens_per_turn,
    turn,
    write,
)
from tests.course.kernels.language_model.serving.alone import alone


class Every:
    """Decides as a script says, notes what else was possible, and how likely all of it was."""

    def __init__(self, script):
        self.script, self.ways, self.probability = list(script), [], Fraction(1)

    def decide(self, shares):
        possible = [number for number, share in enumerate(shares) if share > 0]
        place = len(self.ways)
        self.ways.append(len(possible))
        chosen = possible[self.script[place] if place < len(self.script) else 0]
        self.probability *= shares[chosen]
        return chosen

    def happens(self, share):
        return self.decide([1 - share, share]) == 1

    def pick(self, p):
        assert sum(p) == 1
        return self.decide(list(p))


def distribution(run) -> Counter:
    """{what run(chance) returns: its exact probability}, over all decisions that can be taken."""
    found, script = Counter(), []
    while script is not None:
        chance = Every(script)
        found[run(chance)] += chance.probability
        taken = script + [0] * (len(chance.ways) - len(script))
        script = None
        for place in reversed(range(len(taken))):
            if taken[place] + 1 < chance.ways[place]:
                script = [*taken[:place], taken[place] + 1]
                break
    assert sum(found.values()) == 1
    return found


def table(seed: int, zeros: float = 0.0):
    """tokens -> a distribution over 3 tokens: for each text another one, in fractions."""
    known, draws = {}, np.random.default_rng(seed)

    def of(tokens):
        key = tuple(tokens)
        if key not in known:
            numbers = draws.integers(1, 9, 3) * (draws.random(3) >= zeros)
            numbers[draws.integers(3)] += 1
            total = int(numbers.sum())
            known[key] = np.array([Fraction(int(n), total) for n in numbers], dtype=object)
        return known[key]

    return of


def in_one_step(of):
    """The same as a model that reads several tokens in one step."""
    return lambda tokens, n: [of(tokens[: len(tokens) - n + 1 + i]) for i in range(n)]


LENGTH = 3


def speculated(p, q, ahead):
    """The distribution of the first LENGTH tokens."""

    def run(chance):
        text = []
        while len(text) < LENGTH:
            text += turn(in_one_step(p), q, text, ahead, chance)
        return tuple(text[:LENGTH])

    return distribution(run)


def directly(p):
    """The same without a draft."""

    def run(chance):
        text = []
        while len(text) < LENGTH:
            text.append(chance.pick(p(text)))
        return tuple(text)

    return distribution(run)


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_every_text_has_the_models_probability(ahead, zeros):
    """Exactly: all decisions are tried, and fractions added up."""
    for seed in range(3):
        p, q = table(seed, zeros), table(100 + seed, zeros)
        assert speculated(p, q, ahead) == directly(p)


def test_a_draft_that_knows_it_all_and_one_that_knows_nothing():
    p = table(7)
    assert speculated(p, p, 2) == directly(p)
    nothing = np.array([Fraction(1, 3)] * 3, dtype=object)
    assert speculated(p, lambda tokens: nothing, 2) == directly(p)


#: Rules that people write, and that change what the model says
MISTAKES = {
    "drawn again from p": {"left_over": lambda p, q: p},
    "drawn again from |p - q|": {"left_over": lambda p, q: abs(p - q) / abs(p - q).sum()},
    "drawn again from q's surplus": {
        "left_over": lambda p, q: (q - p).clip(0) / (q - p).clip(0).sum()
    },
    "accepted with p": {"share_accepted": lambda p, q: p},
    "accepted with q / p": {"share_accepted": lambda p, q: min(1, q / p) if p else 0},
    "accepted if p is larger": {"share_accepted": lambda p, q: Fraction(int(p >= q))},
    "always accepted": {"share_accepted": lambda p, q: Fraction(1)},
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_proof_finds_mistakes(mistake, monkeypatch):
    from course.kernels.language_model.serving import speculative

    for name, function in MISTAKES[mistake].items():
        monkeypatch.setattr(speculative, name, function)
    p, q = table(1), table(2)
    assert speculated(p, q, 1) != directly(p)


def reader(seed: int) -> Reader:
    """A toy model that reads one text."""
    return Reader(PyTorchRunner(TOY, weights(TOY, seed, torch.float64), 16), Sampling(0))


@pytest.mark.parametrize("draft_seed", [0, 1])
def test_greedy_text_is_the_models_own(draft_seed):
    """With a draft that is always right, and one that hardly ever is."""
    prompt = [1, 2, 3, 4, 5]
    model, draft = reader(0), reader(draft_seed)
    text, turns = [], 0
    for new in write(model, draft, prompt, 3, Chance(0)):
        text += new
        turns += 1
        if len(text) >= 60:
            break
    assert text[:60] == alone(PyTorchRunner(TOY, weights(TOY, 0, torch.float64), 16), prompt, 60)
    assert model.steps == turns
    if draft_seed == 0:
        assert turns == 15  # of four tokens each


def test_a_reader_reads_only_what_is_new():
    model = reader(0)
    rows = []
    step = model.runner.step
    model.runner.step = lambda *told: rows.append(len(told[0])) or step(*told)
    first = model([1, 2, 3], 1)
    model([1, 2, 3, 4, 5], 2)
    model([1, 2, 9], 1)
    assert torch.equal(model([1, 2, 3], 1), first)
    assert rows == [3, 2, 1, 1]


def test_counts():
    draft = Counts([1, 2, 3, 1, 2, 4, 1, 2, 3], 6, most=2)
    assert draft([0, 1, 2]).tolist() == pytest.approx([0, 0, 0, 2 / 3, 1 / 3, 0])
    assert draft([5, 3]).tolist() == [0, 1, 0, 0, 0, 0]  # nothing has stood behind 5, 3
    assert draft([]).tolist() == pytest.approx([0, 3 / 9, 3 / 9, 2 / 9, 1 / 9, 0])


def test_predictions():
    assert tokens_per_turn(0.0, 4) == 1
    assert tokens_per_turn(1.0, 4) == 5
    assert predicted_speedup(0.5, 1, 0.5) == pytest.approx(1.0)


def test_tokens_per_turn_are_as_the_model_says():
    """Where each token is accepted with the same probability, by many turns."""
    p = torch.tensor([0.5, 0.5], dtype=torch.float64)
    q = torch.tensor([1.0, 0.0], dtype=torch.float64)
    chance, turns = Chance(3), 4000
    counts = [len(turn(lambda _, n: [p] * n, lambda _: q, [], 3, chance)) for _ in range(turns)]
    assert sum(counts) / turns == pytest.approx(tokens_per_turn(0.5, 3), rel=0.05)
