"""Large batches and several ranks, on the CPU runtime: against float64, and against one device."""

import pytest
import torch

from course.kernels.language_model import problem, reference
from course.kernels.language_model.problem import EIGHT_BILLION, ONE_BILLION, TOY
from course.kernels.language_model.rightness import DEVICE
from course.kernels.language_model.serving import parallel, rightness
from course.kernels.language_model.serving.batch import BatchRunner
from course.kernels.language_model.serving.engine import Engine, Request
from course.kernels.language_model.serving.kernel_runner import KernelRunner
from course.kernels.language_model.serving.runner import PyTorchRunner
from course.kernels.language_model.serving.scheduler import Scheduler
from tests.course.kernels.language_model.serving.alone import alone, crowded, everything


def test_a_batch_is_right():
    assert rightness.check() > 0


def test_a_wrong_block_is_noticed():
    """The check that holds the runner to float64 sees a table that is off by one."""

    class Shifted(BatchRunner):
        def step(self, tokens, positions, tables, wanted):
            return super().step(
                tokens, positions, (tables + (positions[:, None] > 20)) % 12, wanted
            )

    assert rightness.error(make=Shifted) > 3


@pytest.mark.parametrize("ahead", [False, True])
def test_an_engine_serves_with_it(ahead):
    """Choices copy blocks, and one of them is preempted: all get what they would get alone."""
    config = rightness.CASE
    weights = problem.weights(config, 0, torch.bfloat16, DEVICE)
    engine = Engine(BatchRunner(config, weights, 5, 80), Scheduler(5, budget=16, places=4), ahead)
    requests = [Request([3] * 30, 12, choices=2), Request([5] * 28, 8)]
    tokens = crowded(engine, requests)
    for request in requests:
        expected = alone(BatchRunner(config, weights, 5, 80), request.prompt, request.most)
        for choice in range(request.choices):
            assert tokens[request, choice] == expected


@pytest.mark.parametrize(("ranks", "config"), [(2, parallel.HALF), (4, parallel.QUARTER)])
def test_ranks_together_are_one_device(ranks, config):
    between, apart = parallel.errors(ranks, config, steps=3)
    assert torch.is_grad_enabled(), "ranks take turns: no state of PyTorch's may be theirs"
    assert between == 0
    assert 0 < apart <= parallel.ROUNDED


def test_shares_are_the_whole_in_float64():
    """A layer's halves, by the reference's own functions: their sum is the layer."""
    config, ranks = TOY, 2
    weights = problem.weights(config, 0, torch.float64)
    x = torch.randn(1, 5, config.width, dtype=torch.float64)
    positions = torch.arange(5)

    def halves(config, weights):
        q, k, v = reference.queries_keys_values(config, x, weights["qkv"][1], positions)
        mixed = reference.attend(q, k, v, positions).flatten(-2) @ weights["out"][1].T
        return mixed, reference.swiglu(x, weights["gate_up"][1], weights["down"][1])

    shares = [
        halves(parallel.config_of(config, ranks), parallel.share_of(config, weights, rank, ranks))
        for rank in range(ranks)
    ]
    for whole, parts in zip(halves(config, weights), zip(*shares, strict=True), strict=True):
        torch.testing.assert_close(sum(parts), whole, rtol=1e-12, atol=1e-12)
        assert (parts[0] - whole).abs().max() > 0.1
    rows = [parallel.vocabulary_of(config, rank, ranks) for rank in range(ranks)]
    assert rows == [slice(0, 128), slice(128, 256)]


def test_what_cannot_be_shared_out():
    with pytest.raises(ValueError, match="2 kv_heads cannot be shared out to 4 ranks"):
        parallel.config_of(TOY, 4)


@pytest.mark.parametrize(("ranks", "config"), [(2, parallel.HALF), (4, parallel.QUARTER)])
def test_plain_ranks_are_one_device(ranks, config):
    between, apart = parallel.plain_errors(ranks, config)
    assert between == 0
    assert 0 < apart <= parallel.IN_FLOAT32


def test_ranks_that_add_up_unlike_are_told():
    parts = [torch.zeros(4), torch.zeros(5)]
    with parallel.Together(2) as together:
        with pytest.raises(ValueError, match="do not add up the same"):
            together.run([lambda part=part: together.add_up(part) for part in parts])
        with pytest.raises(ValueError, match="do not add up the same"):
            together.run([lambda: None, lambda: together.add_up(parts[0])])


def test_predictions():
    """Long tokens gain more from a second device; kernels and sums keep it from twice."""
    small, large = (parallel.predicted(c, 2) for c in (ONE_BILLION, EIGHT_BILLION))
    assert 1 < small.speedup < large.speedup < 2
    told = parallel.predicted(ONE_BILLION, 2, alone=1e-3)
    assert told.alone == pytest.approx(1e-3)
    assert told.together == pytest.approx(1e-3 - told.bytes / 2 + told.sums)
    assert told.sums == pytest.approx(33 * parallel.latency(2))


def test_an_empty_engine_does_nothing():
    weights = problem.weights(rightness.CASE, 0, torch.bfloat16, DEVICE)
    engine = Engine(BatchRunner(rightness.CASE, weights, 2, 32), Scheduler(2))
    assert engine.step() == [] == everything(engine)


def test_the_plain_kernels_write_the_same():
    """As a runner, with prompts in pieces and shared blocks: PyTorch's greedy tokens."""
    weights = problem.weights(TOY, 0, torch.float32, DEVICE)
    tokens = []
    for kind in (KernelRunner, PyTorchRunner):
        ahead = kind is KernelRunner
        engine = Engine(kind(TOY, weights, 12), Scheduler(12, budget=8, places=4), ahead)
        requests = [Request([3] * 20, 6, choices=2), Request([5, 6, 7], 8)]
        for request in requests:
            engine.add(request)
        drawn = everything(engine)
        tokens.append([(requests.index(d.request), d.choice, d.token) for d in drawn])
    assert tokens[0] == tokens[1]
