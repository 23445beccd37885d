"""Drawing tokens: the filters by hand, the draws by statistics, and the kernels against PyTorch."""

import math

import pytest
import torch

from course.kernels.language_model.serving.sampling import (
    KernelSampler,
    Sampling,
    draw,
    probabilities,
    sample,
)

P = torch.tensor([0.1, 0.4, 0.05, 0.25, 0.2], dtype=torch.float64)


def kept(**how) -> list[int]:
    """The tokens that are drawn from."""
    return probabilities(P.log(), Sampling(**how)).nonzero()[:, 0].tolist()


def test_filters():
    assert kept() == [0, 1, 2, 3, 4]
    assert kept(top_k=2) == [1, 3]
    assert kept(top_p=0.4) == [1]
    assert kept(top_p=0.41) == [1, 3]
    assert kept(top_p=0.95) == [0, 1, 3, 4]
    assert kept(top_k=3, top_p=0.5) == [1, 3]  # 0.4 of 0.85 is less than a half
    assert kept(top_k=99) == [0, 1, 2, 3, 4]
    assert kept(temperature=0) == [1]
    assert kept(top_p=1e-9) == [1]


def test_what_is_kept_has_a_sum_of_one():
    p = probabilities(P.log(), Sampling(top_k=2))
    assert p.tolist() == pytest.approx([0, 0.4 / 0.65, 0, 0.25 / 0.65, 0])


def test_temperature():
    p = probabilities(P.log(), Sampling(temperature=0.5))
    assert p.tolist() == pytest.approx((P**2 / (P**2).sum()).tolist())
    assert probabilities(1e4 * P, Sampling(temperature=1e-5)).isfinite().all()


def test_equals_of_the_last_one_are_kept():
    equal = torch.tensor([0.25, 0.25, 0.25, 0.25]).log()
    assert probabilities(equal, Sampling(top_k=1)).tolist() == [0.25] * 4


def test_draws_at_the_edges():
    p = torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0], dtype=torch.float64)
    chances = {0.0: 1, 0.499: 1, 0.5: 3, math.nextafter(1, 0): 3}
    for chance, token in chances.items():
        assert int(draw(p, torch.tensor(chance, dtype=torch.float64))) == token


def surprise(counts, p) -> float:
    """Chi-squared of counts, less what is expected of it, in standard deviations."""
    expected = p * counts.sum()
    there = p > 0
    assert counts[~there].sum() == 0
    squares = ((counts - expected)[there] ** 2 / expected[there]).sum()
    freedom = int(there.sum()) - 1
    return float((squares - freedom) / (2 * freedom) ** 0.5)


@pytest.mark.parametrize("way", [Sampling(), Sampling(0.7, 20), Sampling(1.3, 0, 0.9)])
def test_many_draws_have_the_distribution(way):
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(50, generator=generator, dtype=torch.float64)
    chances = torch.rand(20000, generator=generator, dtype=torch.float64)
    tokens = sample(logits.expand(20000, -1), way, chances)
    counts = tokens.bincount(minlength=50).double()
    assert abs(surprise(counts, probabilities(logits, way))) < 4
    hotter = Sampling(1.2 * way.temperature, way.top_k)
    others = torch.where(counts > 0, probabilities(logits, hotter), 0)
    assert surprise(counts, others / others.sum()) > 10


@pytest.mark.parametrize("way", [Sampling(), Sampling(0.8, 7), Sampling(1.0, 0, 0.8), Sampling(0)])
def test_kernels_draw_the_same(way):
    """By the course's radix sort and scan: the same token for the same chance."""
    generator = torch.Generator().manual_seed(2)
    logits = 2 * torch.randn(100, generator=generator)
    logits[50:] = logits[:50]  # equals, of which all are kept
    by_kernels = KernelSampler(100)
    p = probabilities(logits, way)
    edges = p.cumsum(0)
    for chance in torch.rand(12, generator=generator, dtype=torch.float64).tolist():
        if (edges - chance).abs().min() > 1e-5:  # float32 may round to the neighbour
            expected = draw(p, torch.tensor(chance, dtype=torch.float64))
            assert by_kernels(logits, way, chance) == int(expected)


def test_kernels_filter_the_same():
    """A chance of nearly 1 is the last token that is kept, whatever lies behind it."""
    logits = torch.arange(300.0).flip(0) / 20
    for way in (Sampling(1.0, 5), Sampling(1.0, 0, 0.6), Sampling(2.0, 40, 0.9)):
        last = int(probabilities(logits, way).nonzero()[-1])
        assert KernelSampler(300)(logits, way, math.nextafter(1, 0)) == last
