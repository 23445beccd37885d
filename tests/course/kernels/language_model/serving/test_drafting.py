"""Speculation by kernels: what the rule in Python writes, and the distribution of the model."""

import pytest
import torch

from course.kernels.language_model import problem, reference
from course.kernels.language_model.problem import TOY
from course.kernels.language_model.rightness import DEVICE
from course.kernels.language_model.serving import rightness
from course.kernels.language_model.serving.drafting import FILE, PIECE, Averages, Writer
from tests.compiling import needs_nvcc, unspilled


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_kernels_follow_the_rule(ahead):
    assert rightness.same_text(ahead) >= 20


def test_averages_are_what_the_model_says():
    weights = problem.weights(TOY, 0, torch.float32, DEVICE)
    text = torch.randint(9, (2 * PIECE,), generator=torch.Generator().manual_seed(0))
    draft = Averages.of(TOY, weights, text, 0.7)
    logits = reference.forward(TOY, weights, text.reshape(2, PIECE).to(DEVICE)).cpu()
    p = (logits / 0.7).softmax(-1)
    pieces = text.reshape(2, PIECE)
    is_there = (pieces[:, :-1] == 4) & (pieces[:, 1:] == 7)
    expected = p[:, 1:][is_there].mean(0)
    torch.testing.assert_close(draft([4, 7]).float().cpu(), expected, rtol=1e-4, atol=1e-6)
    alone = p[:, 1:][pieces[:, 1:] == 7].mean(0)  # a pair that does not stand there
    torch.testing.assert_close(draft([200, 7]).float().cpu(), alone, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(draft.p.sum(1), torch.ones_like(draft.p[:, 0]))
    assert draft([7, 200]).tolist() == pytest.approx([1 / 256] * 256)


def test_a_draft_that_says_what_the_model_says_is_always_accepted():
    """A model without attention and without a past: its averages are what it says."""
    weights = problem.weights(TOY, 0, torch.float32, DEVICE)
    weights["out"].zero_()
    weights["down"].zero_()
    text = torch.arange(256).repeat(2)
    draft = Averages.of(TOY, weights, text, 1.0)
    writer = Writer(TOY, weights, draft, [1, 2], ahead=3, temperature=1.0, most=100)
    writer.write(8)
    counts = writer.counts()
    assert sum(counts) >= 4 * len(counts) - 1  # one may be lost to rounding
    assert len(writer.text()) == sum(counts)


@needs_nvcc
@pytest.mark.nightly("by day larger kernels compile without spills, and the CPU runtime builds it")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_it_compiles_without_spilling(arch, tmp_path):
    unspilled(FILE, tmp_path, arch, "-DVOCABULARY=1024", "-DAHEAD=4")
