"""Softmax, cross-entropy and the norms: right for every length, for NaN and infinities as torch."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from course.kernels.row_kernels import classic, norms
from course.kernels.row_kernels.cross_entropy import (
    IGNORED,
    cross_entropy,
    cross_entropy_backward,
    loss_and_gradient,
)
from course.kernels.row_kernels.softmax import softmax
from tests.course.kernels.row_kernels import expected as exact
from utils import pick

DEVICE = pick(gpu="cuda", cpu="cpu")
SIZES = [(0, 5), (1, 1), (3, 7), (2, 127), (5, 128), (3, 1025), (2, 4640)]
TOLERANCE = {torch.float32: 3e-6, torch.bfloat16: 2e-2}
DTYPES = list(TOLERANCE)


def normal(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def assert_close(actual, expected, tolerance):
    """Relative to the largest expected number, or to 1 if they are all smaller."""
    expected = expected.detach()
    assert actual.shape == expected.shape
    if actual.numel():
        size = max(1, float(expected.abs().max()))
        assert float((actual.double() - expected).abs().max()) <= tolerance * size


# ---- softmax -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_softmax(size, dtype):
    x = normal(*size, dtype=dtype)
    assert_close(softmax(x), x.double().softmax(-1), TOLERANCE[dtype])


@pytest.mark.parametrize(
    "name", ["softmax_three_reads<float>", "softmax_online<float>", "softmax_one_read<float, 4>"]
)
def test_every_softmax_is_right_for_special_values(name):
    x = torch.tensor([*exact.SPECIAL, [1e30, -1e30] * 50], device=DEVICE)
    out = torch.full_like(x, 7.0)
    classic.module("softmax.cu")[name][len(x), 32](out, x, x.shape[1])
    expected = x.double().softmax(-1).float()
    torch.testing.assert_close(out, expected, equal_nan=True)


def test_softmax_keeps_the_shape_of_more_axes():
    x = normal(2, 3, 5)
    assert_close(softmax(x), x.double().softmax(-1), 1e-6)


def test_a_type_that_the_kernels_lack_is_refused():
    with pytest.raises(TypeError, match="float64"):
        softmax(torch.zeros(2, 2, dtype=torch.float64, device=DEVICE))


# ---- norms ---------------------------------------------------------------------------------------

NORM_SIZES = [size for size in SIZES if size[1] > 1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", NORM_SIZES)
def test_layer_norm(size, dtype):
    x, dy = normal(*size, dtype=dtype), normal(*size, dtype=dtype, seed=1)
    gamma, beta = normal(2, size[1], dtype=dtype, seed=2)
    expected, gradients = exact.with_gradients(exact.layer_norm, (x, gamma, beta), dy)

    y, means, inverses = norms.layer_norm(x, gamma, beta)
    assert_close(y, expected, TOLERANCE[dtype])
    for actual, wanted in zip(
        norms.layer_norm_backward(dy, x, gamma, means, inverses), gradients, strict=True
    ):
        assert_close(actual, wanted, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", NORM_SIZES)
def test_rms_norm(size, dtype):
    x, dy = normal(*size, dtype=dtype), normal(*size, dtype=dtype, seed=1)
    gamma = normal(size[1], dtype=dtype, seed=2)
    expected, gradients = exact.with_gradients(exact.rms_norm, (x, gamma), dy)

    y, inverses = norms.rms_norm(x, gamma)
    assert_close(y, expected, TOLERANCE[dtype])
    for actual, wanted in zip(
        norms.rms_norm_backward(dy, x, gamma, inverses), gradients, strict=True
    ):
        assert_close(actual, wanted, TOLERANCE[dtype])


def test_the_variance_of_numbers_far_from_zero():
    """The difference of two large sums would have no digit right here."""
    x = normal(2, 500) + 10_000
    ones, zeros = torch.ones(500, device=DEVICE), torch.zeros(500, device=DEVICE)
    y, _, _ = norms.layer_norm(x, ones, zeros)
    assert_close(y, F.layer_norm(x.double(), (500,)), 2e-3)


# ---- cross-entropy -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_cross_entropy(size, dtype):
    rows, columns = size
    x = normal(*size, dtype=dtype)
    targets = torch.arange(rows, device=DEVICE) * 5 % columns
    weights = torch.linspace(0.5, 2, rows, device=DEVICE)
    expected, gradient = exact.losses(x, targets, weights)

    losses, log_sums = cross_entropy(x, targets)
    assert_close(losses, expected, 3e-6)  # float32 whatever the logits are
    backward = cross_entropy_backward(x, targets, log_sums, weights)
    assert_close(backward, gradient, TOLERANCE[dtype])
    losses, fused = loss_and_gradient(x, targets, weights)
    assert_close(losses, expected, 3e-6)
    assert_close(fused, gradient, TOLERANCE[dtype])


def test_ignored_targets_and_targets_that_are_no_column():
    x = normal(4, 9)
    targets = torch.tensor([3, IGNORED, 9, -1], device=DEVICE)
    losses, gradient = loss_and_gradient(x, targets, torch.ones(4, device=DEVICE))
    assert_close(losses[0], F.cross_entropy(x[0], targets[0]), 1e-6)
    assert losses[1] == 0 and not gradient[1].any()
    assert losses[2:].isnan().all()


def test_targets_of_the_wrong_kind_are_refused():
    with pytest.raises(ValueError, match="int64"):
        cross_entropy(normal(4, 9), torch.zeros(4, dtype=torch.int32, device=DEVICE))


@pytest.mark.parametrize("gib, rows", [(140, 1 << 14), (16, 1 << 14), (8, 1 << 13)])
def test_matrices_of_a_chapter_fit_a_small_gpu(monkeypatch, gib, rows):
    monkeypatch.setattr(classic, "has_gpu", lambda: True)
    monkeypatch.setattr(classic, "gpu", lambda: SimpleNamespace(memory_bytes=gib << 30))
    assert classic.rows_for(16_384, most=1 << 14) == rows
