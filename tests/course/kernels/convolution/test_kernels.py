"""The convolution kernels that run without a GPU, against float64, in odd sizes."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course.kernels.convolution import (
    classic,
    depthwise,
    hopper,
    implicit,
    numba_classic,
    winograd,
)
from course.kernels.convolution.rightness import (
    error,
    nchw,
    nhwc,
    references,
    tensors,
    terms,
    verify,
)
from course.kernels.convolution.shapes import Convolution
from utils import has_gpu

DEVICE = "cuda" if has_gpu() else "cpu"
SIZES = ((17, 37), (1, 1), (33, 5), (3, 130))
LAYERS = {
    "odd": Convolution(1, 8, 5, 7, 16),
    "one": Convolution(1, 8, 1, 1, 8, side=1, padding=0),
    "stride": Convolution(2, 8, 7, 6, 8, stride=2),
    "strides and dilation": Convolution(2, 16, 6, 5, 8, stride=3, padding=2, dilation=2),
    "valid": Convolution(1, 8, 6, 5, 8, padding=0),
    "even": Convolution(1, 8, 5, 5, 8, side=2, padding=1),
}


def filtered(picture, taps):
    """The same-sized result in float64."""
    windows = np.pad(picture.astype(float), [(side // 2,) * 2 for side in taps.shape])
    windows = np.lib.stride_tricks.sliding_window_view(windows, taps.shape)
    return np.einsum("yxrs,rs->yx", windows, taps.astype(float))


@pytest.mark.parametrize("name", classic.RUNGS)
@pytest.mark.parametrize("side", [1, 5])
def test_a_picture_and_a_filter(name, side):
    rng = np.random.default_rng(side)
    taps = rng.random((side, side), dtype=np.float32)
    for size in SIZES:
        picture = rng.random(size, dtype=np.float32)
        out = np.full_like(picture, np.nan)
        classic.RUNGS[name](out, picture, taps if name == "naive" else classic.by_value(taps))
        np.testing.assert_allclose(out, filtered(picture, taps), atol=1e-5)


@pytest.mark.parametrize("kernel", [numba_classic.naive_2d, numba_classic.tiled_2d])
def test_a_picture_in_numba(kernel):
    rng = np.random.default_rng(2)
    taps = rng.random((numba_classic.SIDE,) * 2, dtype=np.float32)
    for size in SIZES:
        picture = rng.random(size, dtype=np.float32)
        out = np.full_like(picture, np.nan)
        kernel[numba_classic.grid_2d(picture)](out, picture, taps)
        np.testing.assert_allclose(out, filtered(picture, taps), atol=1e-5)


@pytest.mark.parametrize("kernel", [numba_classic.naive_1d, numba_classic.tiled_1d])
@pytest.mark.parametrize("count, taps", [(1, 1), (5, 9), (129, 3), (200, 33)])
def test_a_signal_in_numba(kernel, count, taps):
    rng = np.random.default_rng(count)
    signal, weights = rng.random(count, dtype=np.float32), rng.random(taps, dtype=np.float32)
    out = np.full_like(signal, np.nan)
    kernel[-(-count // numba_classic.BLOCK), numba_classic.BLOCK](out, signal, weights)
    exact = filtered(signal[None], weights[None])[0]
    np.testing.assert_allclose(out, exact, atol=1e-5)


@pytest.mark.parametrize("label", LAYERS)
def test_implicit_products(label):
    conv = LAYERS[label]
    t = tensors(conv, DEVICE, implicit.sixteen_bits())
    exact = references(t, conv, ("y", "dx", "dw"))
    implicit.forward(t["y"], t["x"], t["w"], conv)
    implicit.data_gradient(t["dx"], t["dy"], t["w"], conv)
    implicit.weights_gradient(t["dw"], t["dy"], t["x"], conv)
    for kind in ("y", "dx", "dw"):
        verify(t[kind], exact[kind], terms(conv, kind))


HOPPER = pytest.mark.skipif(has_gpu() and not hopper.available(), reason="this GPU has no wgmma")
SMALL = hopper.Tile(consumers=2, bn=128, stages=2, cluster=2)


@HOPPER
@pytest.mark.parametrize("label", ["odd", "stride", "strides and dilation"])
def test_implicit_products_on_wgmma(label):
    conv = LAYERS[label]
    t = tensors(conv, DEVICE)
    kinds = ("y", "dx", "dw") if conv.stride == 1 else ("y", "dw")
    exact = references(t, conv, kinds)
    hopper.forward(t["y"], t["x"], t["w"], conv, SMALL)()
    if conv.stride == 1:
        hopper.data_gradient(t["dx"], t["dy"], t["w"], conv, SMALL)()
    tile = hopper.WeightsTile(consumers=1, cluster=2, stages=2)
    hopper.weights_gradient(t["dw"], t["dy"], t["x"], conv, tile)()
    for kind in kinds:
        verify(t[kind], exact[kind], terms(conv, kind))


@HOPPER
def test_patches_with_a_halo():
    conv = Convolution(2, 64, 7, 9, 64)
    t = tensors(conv, DEVICE)
    exact = references(t, conv, ("y", "dw"))
    hopper.halo_forward(t["y"], t["x"], t["w"], conv)()
    hopper.halo_weights_gradient(t["dw"], t["dy"], t["x"], conv)()
    for kind in ("y", "dw"):
        verify(t[kind], exact[kind], terms(conv, kind))


def check_depthwise(make, shape, side):
    """make(y, x, weights): what computes y."""
    generator = torch.Generator(DEVICE).manual_seed(side)
    x = torch.randn(shape, generator=generator, device=DEVICE).bfloat16()
    weights = torch.randn(side, side, shape[3], generator=generator, device=DEVICE).bfloat16()
    y = torch.full_like(x, torch.nan)
    make(y, x, weights)()
    filters = weights.permute(2, 0, 1)[:, None].double()
    exact = F.conv2d(nchw(x).double(), filters, padding=side // 2, groups=shape[3])
    verify(y, nhwc(exact), side**2)


@HOPPER
def test_depthwise_by_boxes():
    check_depthwise(partial(hopper.depthwise, stages=3), (2, 5, 60, 72), 3)


def test_a_nan_or_a_wrong_number_is_no_right_result():
    exact = torch.ones(3, dtype=torch.float64)
    assert error(exact.bfloat16(), exact, 1) == 0
    for wrong in (torch.nan, 1.1):
        with pytest.raises(AssertionError, match="times the error"):
            verify(torch.tensor([1, 1, wrong]).bfloat16(), exact, 1)


@pytest.mark.parametrize("shape, side", [((2, 13, 9, 6), 3), ((3, 1, 1, 2), 7), ((1, 7, 9, 6), 7)])
def test_depthwise(shape, side):
    check_depthwise(partial(depthwise.depthwise, height=5), shape, side)


@pytest.mark.parametrize("shape, side", [((2, 5, 3, 7), 3), ((1, 1, 1, 1), 5)])
def test_depthwise_in_numba(shape, side):
    rng = np.random.default_rng(side)
    x, taps = rng.random(shape, np.float32), rng.random((side, side, shape[3]), np.float32)
    out = np.full_like(x, np.nan)
    n, h, w, c = shape
    block = 4, 2, 4
    grid = -(-c // 4), -(-w // 2), -(-n * h // 4)
    numba_classic.depthwise[grid, block](out, x, taps)
    for image in range(n):
        for channel in range(c):
            exact = filtered(x[image, :, :, channel], taps[:, :, channel])
            np.testing.assert_allclose(out[image, :, :, channel], exact, atol=1e-5)


def test_depthwise_takes_channels_in_pairs():
    x = torch.zeros(1, 3, 3, 3, device=DEVICE).bfloat16()
    with pytest.raises(ValueError, match="two at a time"):
        depthwise.depthwise(x, x, torch.zeros(3, 3, 3, device=DEVICE).bfloat16())


@pytest.mark.parametrize("dtype, allowed", [(torch.float32, 1e-5), (torch.bfloat16, 0.1)])
def test_winograd(dtype, allowed):
    generator = torch.Generator(DEVICE).manual_seed(3)
    for n, h, w, c, k in ((2, 7, 5, 6, 4), (1, 1, 1, 1, 1)):
        x = torch.randn(n, h, w, c, generator=generator, device=DEVICE).to(dtype)
        weights = torch.randn(k, 3, 3, c, generator=generator, device=DEVICE).to(dtype)
        y = torch.full((n, h, w, k), torch.nan, device=DEVICE).to(dtype)
        winograd.winograd(y, x, winograd.transformed_filters(weights))
        exact = nhwc(F.conv2d(nchw(x).double(), nchw(weights).double(), padding=1))
        assert ((y.double() - exact).abs().max() / (9 * c) ** 0.5).item() < allowed
