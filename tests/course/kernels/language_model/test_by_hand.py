"""The layer in NumPy, as the chapter writes it, is the model's."""

import numpy as np
import pytest
import torch

from course.kernels.language_model import by_hand, reference, speak
from course.kernels.language_model.problem import SMALL


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(5)


def test_a_norm_is_the_model_s(rng):
    x, weight = rng.normal(size=(4, 160)), rng.normal(size=160)
    exact = reference.norm(torch.tensor(x), torch.tensor(weight), SMALL.eps)
    assert np.allclose(by_hand.norm(x, weight), exact.numpy(), rtol=1e-12)


def test_a_head_is_turned_as_the_model_turns_it(rng):
    x = rng.normal(size=(9, SMALL.head))
    angle = reference.angles(SMALL, torch.arange(9))
    exact = reference.turned(torch.tensor(x)[None, :, None], angle)[0, :, 0]
    assert np.allclose(by_hand.turned(x), exact.numpy(), rtol=1e-10)


def test_a_head_s_rows_look_at_themselves_and_those_before(rng):
    q, k, v = rng.normal(size=(3, 6, 8))
    rows = [torch.tensor(x)[None, :, None] for x in (q, k, v)]
    exact = reference.attend(*rows, torch.arange(6))[0, :, 0]
    assert np.allclose(by_hand.attend(q, k, v), exact.numpy(), rtol=1e-10)


def test_what_is_taken_are_a_text_s_rows_and_the_weights_of_each_layer():
    small = speak.model()
    config, weights, known = small
    x, layers = by_hand.taken(small, "The threads of a")
    tokens = known.encode("The threads of a")
    assert np.array_equal(x, weights["embedding"][tokens].double().cpu().numpy())
    assert len(layers) == config.layers
    assert np.array_equal(layers[2]["qkv"], weights["qkv"][2].double().cpu().numpy())


def test_the_head_is_the_last_norm_and_the_table_that_tokens_are_looked_up_in():
    small = speak.model()
    gain, table = by_hand.head(small)
    tokens = small[2].encode("The threads of a")
    assert np.array_equal(table[tokens], by_hand.taken(small, "The threads of a")[0])
    assert np.array_equal(gain, small[1]["norm"].double().cpu().numpy())
