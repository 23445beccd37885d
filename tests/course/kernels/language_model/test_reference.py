"""The model in plain PyTorch: the same whole and token by token, and what its parts are."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from course.kernels.language_model import problem, reference
from course.kernels.language_model.problem import ONE_BILLION, SMALL, TOY, Config


def drawn(config, batch, length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(config.vocabulary, (batch, length), generator=generator)
    return problem.weights(config, seed, torch.float64), tokens


def test_token_by_token_is_the_whole():
    weights, tokens = drawn(TOY, 2, 40)
    whole = reference.forward(TOY, weights, tokens)
    cache = problem.cache(TOY, 2, 40, torch.float64)
    order = torch.randperm(cache.table.numel(), generator=torch.Generator().manual_seed(1))
    cache.table = order.int().reshape(cache.table.shape)
    for position in range(40):
        logits = reference.decode(TOY, weights, cache, tokens[:, position], position)
        torch.testing.assert_close(logits, whole[:, position], rtol=1e-10, atol=1e-10)


def test_sequences_may_stand_at_unlike_positions():
    weights, tokens = drawn(TOY, 2, 20)
    whole = reference.forward(TOY, weights, tokens)
    cache = problem.cache(TOY, 2, 20, torch.float64)
    for position in range(20):
        both = torch.tensor([position, max(position - 3, 0)])
        logits = reference.decode(TOY, weights, cache, tokens[[0, 1], both], both)
        torch.testing.assert_close(logits, whole[[0, 1], both], rtol=1e-10, atol=1e-10)


def test_attention_and_norm_are_pytorchs():
    torch.manual_seed(0)
    q = torch.randn(2, 7, 4, 16, dtype=torch.float64)
    k, v = torch.randn(2, 2, 7, 2, 16, dtype=torch.float64)
    found = reference.attend(q, k, v, torch.arange(7))
    heads_first = [x.transpose(1, 2) for x in (q, k, v)]
    right = functional.scaled_dot_product_attention(*heads_first, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(found, right.transpose(1, 2))
    x, weight = torch.randn(3, 64, dtype=torch.float64), torch.rand(64, dtype=torch.float64)
    torch.testing.assert_close(
        reference.norm(x, weight, 1e-5), functional.rms_norm(x, (64,), weight, 1e-5)
    )


def test_positions_turn_pairs_that_are_half_a_head_apart():
    config = replace(TOY, head=4, theta=100.0)
    angle = reference.angles(config, torch.tensor([3]))
    torch.testing.assert_close(angle, torch.tensor([[3.0, 0.3]], dtype=torch.float64))
    x = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64).reshape(1, 1, 4)
    turned = reference.turned(x, angle).flatten()
    expected = torch.stack([angle[0, 0].cos(), angle[0, 0].sin()])
    torch.testing.assert_close(turned[[0, 2]], expected)
    assert not turned[[1, 3]].any()


def test_scores_depend_on_distances_alone():
    torch.manual_seed(1)
    q, k = torch.randn(2, 1, 1, TOY.head, dtype=torch.float64)

    def score(at_q, at_k):
        angle = [reference.angles(TOY, torch.tensor([at])) for at in (at_q, at_k)]
        return (reference.turned(q, angle[0]) * reference.turned(k, angle[1])).sum()

    torch.testing.assert_close(score(5, 2), score(105, 102))
    assert abs(score(5, 2) - score(5, 3)) > 1e-3


def test_a_token_sees_no_later_one():
    weights, tokens = drawn(TOY, 1, 9)
    before = reference.forward(TOY, weights, tokens)
    tokens[0, 6] += 1
    after = reference.forward(TOY, weights, tokens % TOY.vocabulary)
    assert torch.equal(before[:, :6], after[:, :6])
    assert not torch.equal(before[:, 6:], after[:, 6:])


def test_gradients_reach_every_weight():
    weights, tokens = drawn(TOY, 1, 5)
    leaves = {name: weight.requires_grad_() for name, weight in weights.items()}
    logits = reference.forward(TOY, leaves, tokens)
    functional.cross_entropy(logits[0, :-1], tokens[0, 1:]).backward()
    assert all(leaf.grad.abs().sum() > 0 for leaf in leaves.values())


def test_sizes_are_counted():
    assert ONE_BILLION.parameters == 1_235_814_400  # as Llama 3.2 1B's card has it
    assert 2 * SMALL.parameters < 3e6
    weights = problem.weights(TOY)
    assert TOY.parameters == sum(weight.numel() for weight in weights.values())
    cached = ONE_BILLION.cache_bytes(1001)
    assert cached == 2 * 16 * 1001 * 8 * 64 * 2
    assert ONE_BILLION.bytes_per_token(1000) == 2 * 1_235_814_400 + cached
    int4 = ONE_BILLION.bytes_per_token(1000, bits=4, batch=8)
    assert int4 == 1_235_814_400 // 2 + 8 * cached


def test_heads_that_cannot_be_shared_are_refused():
    with pytest.raises(ValueError, match="multiple of kv_heads"):
        Config(1, 64, 5, 2, 16, 64, 256)
