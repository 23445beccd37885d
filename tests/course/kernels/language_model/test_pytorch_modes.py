"""PyTorch's token is the reference's, and lives as long as what runs it."""

import gc
import weakref

import pytest
import torch

from course.kernels.bench.report import Report
from course.kernels.language_model import problem, pytorch_modes, reference
from course.kernels.language_model.problem import PAGE, TOY
from course.kernels.language_model.pytorch_modes import ATTENTION, Token

POSITION = 37


@pytest.mark.parametrize("attention", ["flash", "math folded"])
def test_a_token_is_the_references(attention):
    weights = problem.weights(TOY, 0, torch.float64)
    token = Token(TOY, weights, 2, POSITION, attention)
    cache = problem.cache(TOY, 2, POSITION + 1, torch.float64)
    rows = cache.capacity - POSITION - 1
    for layer in range(TOY.layers):
        for pages, numbers in zip((cache.k, cache.v), token.cache[layer], strict=True):
            padded = torch.nn.functional.pad(numbers.transpose(1, 2), (0, 0, 0, 0, 0, rows))
            pages[layer] = padded.reshape(-1, PAGE, TOY.kv_heads, TOY.head)
    given = torch.tensor([3, 9])
    exact = reference.decode(TOY, weights, cache, given, POSITION)
    torch.testing.assert_close(token.logits(given), exact, rtol=1e-10, atol=1e-10)


def test_a_captured_token_keeps_its_memory(monkeypatch):
    """The graph reads where the token's tensors are: they must not be given to others."""
    monkeypatch.setattr(pytorch_modes, "as_graph", lambda run: lambda: None)
    token = Token(TOY, problem.weights(TOY), 1, 3, "flash")
    alive = weakref.ref(token.token)
    run = pytorch_modes.captured(token)
    del token
    gc.collect()
    assert run() is None and alive() is not None
    del run
    gc.collect()
    assert alive() is None


def test_the_rivals_are_eager_in_graphs_and_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(pytorch_modes, "as_graph", lambda run: run)
    monkeypatch.setattr(pytorch_modes, "milliseconds", lambda run: 1.0)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    monkeypatch.setattr(pytorch_modes, "sdpa_kernel", lambda backend: torch.no_grad())
    report = Report(tmp_path / "report.json", 10)
    runs = pytorch_modes.rivals(report, "toy", TOY, problem.weights(TOY), 2, POSITION)
    assert list(runs)[: 1 + len(ATTENTION)] == ["eager", *(f"graph, {name}" for name in ATTENTION)]
    assert len(runs) == 1 + len(ATTENTION) + len(pytorch_modes.MODES)
    assert not report.entries["errors"]
    tokens = torch.stack([run() for run in runs.values()])
    assert tokens.shape == (len(runs), 2)
