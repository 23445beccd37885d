"""Training's kernels: value and gradient against float64, and a text that is learned."""

import dataclasses

import numpy as np
import pytest
import torch

from course.kernels.language_model import carried, reference, text, train
from course.kernels.language_model.network import Network
from course.kernels.language_model.problem import TOY, Config, weights
from utils.engine import has_gpu

DEVICE = "cuda" if has_gpu() else "cpu"
#: Groups of heads, sizes that no tile divides, one layer and three
ODD = Config(3, 40, 6, 2, 8, 52, 71, theta=100.0)
PLAIN = Config(1, 24, 2, 2, 16, 20, 65)


def rows_of(config, batch, length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    size = batch, length + 1
    rows = torch.randint(0, config.vocabulary, size, generator=generator, dtype=torch.int32)
    return rows[:, :-1].to(DEVICE), rows[:, 1:].to(DEVICE)


@pytest.mark.parametrize(
    "config, batch, length",
    [(ODD, 2, 33), (PLAIN, 1, 1), (TOY, 3, 130), (dataclasses.replace(ODD, theta=1e6), 1, 7)],
)
def test_loss_and_gradients_are_those_of_float64(config, batch, length):
    own = weights(config, 3, device=DEVICE)
    errors = train.gradient_errors(config, own, *rows_of(config, batch, length))
    assert set(errors) == {"loss", *config.shapes}
    assert max(errors.values()) < 2e-5, errors


def test_logits_are_the_references():
    own = weights(ODD, 1, device=DEVICE)
    given, _ = rows_of(ODD, 2, 19)
    network = Network(ODD, own, 2, 19)
    network.forward(given)
    exact = {name: weight.double() for name, weight in own.items()}
    right = reference.forward(ODD, exact, given.long()).flatten(0, 1)
    assert (network.logits - right).abs().max() < 1e-5 * right.abs().max()


def test_a_step_is_pytorchs_adamw():
    own = weights(PLAIN, 1, device=DEVICE)
    theirs = {name: weight.clone().requires_grad_() for name, weight in own.items()}
    decays = {True: 0.0, False: 0.1}
    groups = [
        {"params": [w for name, w in theirs.items() if name.startswith("norm") == norms], **other}
        for norms, other in ((norms, {"weight_decay": decay}) for norms, decay in decays.items())
    ]
    rival = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95), eps=1e-8)
    network = Network(PLAIN, own, 2, 9)
    for seed in range(3):
        given, following = rows_of(PLAIN, 2, 9, seed)
        network.forward(given)
        network.loss(following)
        network.backward()
        for name, weight in theirs.items():
            weight.grad = network.gradients[name].clone()
        network.step(0.01)
        rival.step()
    for name, weight in theirs.items():
        assert torch.allclose(own[name], weight, rtol=1e-4, atol=1e-6), name


def test_a_sentence_is_learned_by_heart():
    config = dataclasses.replace(PLAIN, width=32)
    numbers = list(b"a warp is a group of 32 threads that run together. ") * 20
    config = dataclasses.replace(config, vocabulary=256)
    own = train.begun(config, DEVICE)
    network = Network(config, own, 4, 16)
    lessons = train.Lessons(numbers, 4, 16, DEVICE)
    losses = [loss.item() for _, loss in train.learn(network, lessons, 120, 1e-2)]
    assert losses[0] > 5 and losses[-1] < 0.5
    assert train.held_out_loss(network, lessons) < 0.5


def test_rates_rise_then_fall():
    rates = [train.rate(step, 100) for step in range(100)]
    assert np.argmax(rates) in (9, 10) and rates[0] < rates[9] and rates[-1] < 0.1 * max(rates)


def test_lessons_are_the_text_and_what_follows():
    lessons = train.Lessons(range(1000), 3, 10)
    given, following = lessons.draw()
    assert (following == given + 1).all() and given.shape == (3, 10)
    whole = [given for given, _ in lessons.all()]
    assert torch.cat([rows.flatten() for rows in whole]).tolist() == list(range(990))


def test_one_paragraph_of_twenty_is_held_out():
    lines = [f"{i}\n" for i in range(1, 61)]
    learned, held = train.shared_out("".join(lines))
    assert held == "20\n40\n60\n" and len(learned.split()) == 57


def test_the_text_is_prose():
    words = text.chapters()
    assert words.count("\n") > 2000 and len(words.split()) > 50_000
    for mark in ("](", "<!--", "**", "$$", "\n#", "\n|"):
        assert mark not in words, mark


def test_marks_go_and_short_lines_too():
    given = (
        "## A heading with a few words in it\n\n- **Bold** and a [link](x.md), 30 characters\n- no"
    )
    heading, item = "A heading with a few words in it", "Bold and a link, 30 characters"
    assert text.paragraphs(given) == [heading, item]


def test_what_is_kept_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(carried, "PATH", tmp_path / "model.npz")
    own = weights(carried.SMALL, 2)
    carried.keep(carried.SMALL, own, [(97, 98)], {"steps": 3}, carried.PATH)
    config, back, known = carried.model()
    assert known.decode([256]) == "ab" and carried.facts()["steps"] == 3
    assert all((back[name] - own[name]).abs().max() < 2e-3 for name in config.shapes)
