"""4-bit weights, 2 of 4, the digits and the training in few bits; Hopper's kernels compile."""

import functools
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course.kernels.low_precision import (
    digits,
    fp8_matmul,
    in_chapter,
    int4,
    loss_scaling,
    rightness,
    sparse,
)
from tests.compiling import compiled, needs_nvcc
from utils import cuda_c, has_gpu, machine, results

# ---- int4


@pytest.mark.parametrize(
    "shape",
    [int4.FASTEST, int4.Shape(1, 2, 3), int4.FASTEST_OF_MORE],
    ids=["fastest", "one tile", "eight vectors"],
)
def test_products_are_right(shape):
    rightness.check_int4(shape)


def test_a_permuted_weight_is_noticed(monkeypatch):
    right = int4.pack
    monkeypatch.setattr(int4, "pack", lambda codes, scales: right(codes.flip(1), scales))
    with pytest.raises(AssertionError, match="int4"):
        rightness.check_int4(sizes=((32, 128, 1),))


def product_of_a_row(x: torch.Tensor, size: float = 1.0) -> tuple[torch.Tensor, ...]:
    """(of 4-bit weights and x, exactly, how far apart they may be for each row)."""
    codes, scales = int4.random_weights(32, 256)
    scales *= size
    weights = int4.dequantize(codes, scales).double()
    got = int4.multiply(int4.pack(codes, scales), x[None], shape=int4.SMALL)[0].double()
    x = x.double()
    exact = weights @ x
    largest = x.unflatten(0, (-1, int4.GROUP)).abs().amax(1)
    units = 2.0 ** (largest.log2().floor() - 13).clamp(min=-126)
    lost = weights.abs() @ (units / 2).repeat_interleave(int4.GROUP)
    sums = 2**-20 * (weights.abs() @ x.abs())  # in float32
    of_y = rightness.HALF_STEP * exact.abs() + 2.0**-134  # the smallest numbers are 2^-133 apart
    return got, exact, of_y + 1.01 * (lost + sums)


@pytest.mark.parametrize(
    "size, scales",
    [(0.0, 1), (2.0**-130, 1), (2.0**-110, 1), (1.0, 1), (2.0**120, 1), (2.0**-62, 2.0**-60)],
)
def test_whole_numbers_keep_vectors_of_any_size(size, scales):
    x = size * torch.randn(256, device=rightness.DEVICE)
    x[:128] *= 2**-16  # a group counts by itself
    x[200:] *= 2**-9  # not all of its numbers stay exact
    got, exact, most = product_of_a_row(x.bfloat16(), scales)
    assert ((got - exact).abs() <= most).all()


@pytest.mark.parametrize("what", [torch.inf, -torch.inf, torch.nan])
def test_what_is_no_number_stays_none(what):
    x = torch.ones(256, device=rightness.DEVICE).bfloat16()
    x[200] = what
    assert product_of_a_row(x)[0].isnan().all()


def test_quantized_weights_are_off_by_half_a_step_at_most():
    weights = torch.randn(16, 256)
    codes, scales = int4.quantize(weights)
    steps = scales.float().repeat_interleave(int4.GROUP, 1)
    error = (int4.dequantize(codes, scales) - weights).abs()
    # 7 steps reach to the largest, but for the scale's own rounding
    assert (error <= 0.5 * steps + 2**-8 * 7 * steps).all()
    assert codes.min() >= 1


def zeros(*shape: int, dtype=torch.bfloat16) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=rightness.DEVICE)


NOT_A_VECTOR = {
    "x is bfloat16 [9, 128]": {"x": zeros(9, 128)},
    "x is bfloat16 [0, 128]": {"x": zeros(0, 128)},
    "x is bfloat16 [1, 256]": {"x": zeros(1, 256)},
    "x is bfloat16 [128]": {"x": zeros(128)},
    "x is float32 [1, 128]": {"x": zeros(1, 128, dtype=torch.float32)},
    "on meta, but must be": {"x": zeros(1, 128).to("meta")},
    "contiguous": {"x": zeros(1, 256)[:, ::2]},
    "from a multiple of 16 bytes on": {"x": zeros(256)[1:129][None]},
    "y is float32 [1, 32]": {"y": zeros(1, 32, dtype=torch.float32)},
    "y is bfloat16 [1, 16]": {"y": zeros(1, 16)},
}


@pytest.mark.parametrize("words", NOT_A_VECTOR)
def test_vectors_that_do_not_fit_are_refused(words):
    packed = int4.pack(*int4.random_weights(32, 128))
    given = {"x": zeros(1, 128)} | NOT_A_VECTOR[words]
    with pytest.raises(ValueError, match=re.escape(words)):
        int4.multiply(packed, **given)


def test_weights_that_do_not_fit_are_refused():
    codes, scales = int4.random_weights(32, 128)
    for words, given in {
        "whole tiles": (codes[:24], scales[:24]),
        "codes is float32": (codes.float(), scales),
        "scales is float16": (codes, scales.half()),
        r"must be bfloat16 \[32, 1\]": (codes, scales.T),
        "a code is 16": (codes.clamp(max=1).flip(0) + 15, scales),
    }.items():
        with pytest.raises(ValueError, match=words):
            int4.pack(*given)


@pytest.mark.parametrize(
    "kilobytes, shape", [(99, int4.SMALL), (139, int4.SMALL), (163, int4.FASTEST)]
)
def test_int4_takes_the_shape_that_a_blocks_shared_memory_holds(kilobytes, shape, monkeypatch):
    monkeypatch.setattr(int4, "has_gpu", lambda: True)
    monkeypatch.setattr(int4.hardware, "shared_limit", lambda: kilobytes << 10)
    assert int4.shape_for(rows=4096, vectors=1) == shape


@pytest.mark.parametrize("capability, can", [((7, 5), False), ((8, 0), True), ((12, 0), True)])
def test_int4_wants_tensor_cores_that_know_bfloat16(capability, can, monkeypatch):
    gpu = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(int4, "has_gpu", lambda: True)
    monkeypatch.setattr(int4, "machine", lambda: SimpleNamespace(gpu=gpu))
    assert int4.available() is can


# ---- 2 of 4


def test_pruning_keeps_the_two_largest_of_four():
    pruned = sparse.prune(torch.tensor([[1.0, -4, 3, 2, 0, 0, 0, 5]]))
    assert pruned.tolist() == [[0, -4, 3, 0, 0, 0, 0, 5]]


def test_compressed_rows_are_expanded_again():
    pruned = sparse.prune(torch.randn(16, 32))
    pruned[3] = 0
    values, places = sparse.compress(pruned)
    assert torch.equal(sparse.expand(values, places), pruned)
    pairs = places.reshape(16, -1, 2)
    assert (pairs[..., 0] < pairs[..., 1]).all()  # mma.sp wants them in this order


def test_three_of_four_are_refused():
    with pytest.raises(ValueError, match="prune"):
        sparse.compress(torch.ones(1, 4))


# ---- networks


@pytest.mark.parametrize("scheme", digits.SCHEMES)
def test_weights_have_as_many_values_as_their_bits_allow(scheme):
    weights = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
    parts = digits.quantized(weights, scheme).reshape(-1, scheme.share or weights.size)
    for part in parts:
        assert 2 < len(np.unique(part)) <= 2 * scheme.levels + 1


def test_the_network_reads_and_four_bits_hardly_harm_it():
    network = digits.trained()
    assert digits.accuracy(network) > 0.88
    few = functools.partial(digits.quantized, scheme=weights_of_four_bits())
    assert digits.accuracy(digits.with_weights(few)) > 0.88


def weights_of_four_bits():
    (scheme,) = (each for each in digits.SCHEMES if each.levels == 7 and each.share)
    return scheme


def test_the_strongest_neurons_come_first_and_the_margin_is_empty():
    sizes = np.linalg.norm(digits.trained().first, axis=1)
    assert (np.diff(sizes) <= 0).all()
    pixels, _ = digits.test()
    picture = pixels.reshape(-1, digits.SIDE, digits.SIDE)
    assert not picture[:, : digits.MARGIN].any() and picture[:, digits.MARGIN :].any()


def test_a_number_is_spelt_with_other_pictures_of_the_same_digit():
    pixels, spelt = digits.written("3-3x7")
    assert spelt == [3, 3, 7] and pixels.shape == (3, 1024)
    assert not np.array_equal(pixels[0], pixels[1])
    every, labels = digits.test()
    places = [int(np.flatnonzero((every == each).all(1))[0]) for each in pixels]
    assert labels[places].tolist() == spelt


def test_gradients_vanish_and_a_scaled_loss_brings_them_back():
    plain = loss_scaling.train(25, keep=loss_scaling.as_float32)
    broken = loss_scaling.train(25)
    mended = loss_scaling.train(25, scale=2.0**10)
    assert broken.vanished[0] > 0.9
    assert mended.vanished[0] < 0.05
    assert mended.losses[-1] == pytest.approx(plain.losses[-1], rel=0.05)
    assert broken.losses[-1] > 1.2 * plain.losses[-1]
    assert loss_scaling.train(3, scale=2.0**40).skipped == 3


# ---- 8-bit floats


def test_scales_bring_the_largest_to_the_largest():
    x = torch.randn(256, 256) * 100
    for quantize in (fp8_matmul.by_rows, fp8_matmul.by_pieces, fp8_matmul.by_blocks):
        codes, scales = quantize(x)
        assert codes.float().abs().max() == fp8_matmul.LARGEST
        assert scales.dtype == torch.float32
    given = *fp8_matmul.by_pieces(x), *fp8_matmul.by_blocks(x)
    a, of_a, b, of_b = given
    error = fp8_matmul.exact(a, b, of_a, of_b, blocks=True) - x.double() @ x.double().T
    assert error.square().mean().sqrt() < 0.05 * (x @ x.T).square().mean().sqrt()


OTHER_SHAPE = pytest.mark.nightly("by day another file, and another shape")
COMPILED = [
    pytest.param("fp8_matmul.cu", fp8_matmul.ROW_SCALES, marks=OTHER_SHAPE),
    pytest.param("fp8_matmul.cu", fp8_matmul.BLOCK_SCALES, marks=OTHER_SHAPE),
    ("fp8_turns.cu", fp8_matmul.Shape(width=128, stages=6, turns=True, split=True)),
    pytest.param(
        "fp8_turns.cu", fp8_matmul.Shape(width=192, stages=5, turns=True), marks=OTHER_SHAPE
    ),
]


@needs_nvcc
@pytest.mark.parametrize("file, shape", COMPILED, ids=str)
def test_hopper_kernels_compile(file, shape, tmp_path):
    report, _ = compiled(fp8_matmul.KERNELS / file, tmp_path, "sm_90a", *shape.flags)
    assert "serialized" not in report


TURNS = fp8_matmul.Shape(turns=True, width=128, stages=2)
SMALL = [
    fp8_matmul.Shape(blocks=True, width=128, stages=2),
    fp8_matmul.Shape(turns=True, width=192, stages=2),
    fp8_matmul.Shape(turns=True, width=128, stages=2, split=True),  # the last of three tiles
    pytest.param(TURNS, marks=OTHER_SHAPE),
]
NO_HOPPER = has_gpu() and machine().gpu.compute_capability != (9, 0)


@pytest.mark.skipif(NO_HOPPER, reason="this GPU has no wgmma")
@pytest.mark.parametrize("shape", SMALL, ids=str)
def test_products_of_eight_bits_are_right(shape):
    """On the CPU runtime where there is no GPU."""
    device = "cuda" if has_gpu() else "cpu"
    m, n, k = (200, 256, 256) if shape.blocks else (200 if shape.split else 300, 264, 272)
    generator = torch.Generator(device).manual_seed(3)
    a = torch.randn(m, k, generator=generator, device=device)
    b = torch.randn(n, k, generator=generator, device=device)
    of_a, of_b = fp8_matmul.by_rows(a), fp8_matmul.by_rows(b)
    if shape.blocks:
        of_a, of_b = fp8_matmul.by_pieces(a), fp8_matmul.by_blocks(b)
    c = torch.full((m, n), torch.nan, device=device, dtype=torch.bfloat16)
    fp8_matmul.multiply(c, of_a[0], of_b[0], of_a[1], of_b[1], shape)
    exact = fp8_matmul.exact(of_a[0], of_b[0], of_a[1], of_b[1], blocks=shape.blocks)
    assert (c.double() - exact).norm() <= 4e-3 * exact.norm()


NOT_A_FACTOR = {
    "c is bfloat16 [8, 256]": {"c": zeros(8, 256)},
    "a is bfloat16 [8, 256]": {"a": zeros(8, 256)},
    "b is float8_e4m3fn [264, 128]": {"b": zeros(264, 128, dtype=fp8_matmul.E4M3)},
    "scales_a is float32 [7]": {"scales_a": zeros(7, dtype=torch.float32)},
    "scales_b is float32 [264, 1]": {"scales_b": zeros(264, 1, dtype=torch.float32)},
    "pad them": {"b": zeros(260, 256, dtype=fp8_matmul.E4M3)},
}


@pytest.mark.parametrize("words", NOT_A_FACTOR)
def test_factors_that_do_not_fit_are_refused(words):
    names = ("c", "a", "b", "scales_a", "scales_b")
    right = dict(zip(names, rightness.fp8_operands(8, 264, 256), strict=True))
    with pytest.raises(ValueError, match=re.escape(words)):
        fp8_matmul.multiply(**right | {"shape": TURNS} | NOT_A_FACTOR[words])


def test_shapes_that_no_kernel_has_are_refused():
    with pytest.raises(ValueError, match="no scales of blocks"):
        fp8_matmul.kernel(fp8_matmul.Shape(turns=True, blocks=True))
    with pytest.raises(cuda_c.CompileError, match="128 at a time"):
        fp8_matmul.kernel(fp8_matmul.Shape(width=192))


def test_a_sparse_tile_is_right():
    device = "cuda" if has_gpu() else "cpu"
    generator = torch.Generator(device).manual_seed(5)
    weights = torch.randn(16, 32, generator=generator, device=device).bfloat16()
    pruned = sparse.prune(weights)
    b = torch.randn(8, 32, generator=generator, device=device).bfloat16()
    d = sparse.multiply_tile(*sparse.compress(pruned), b)
    exact = pruned.double() @ b.double().T
    assert (d.double() - exact).abs().max() <= 1e-5


# ---- what the chapter shows


def test_a_kernel_as_it_stands_is_told(monkeypatch, capsys):
    rightness.tried_int4()
    assert "✓ right: the largest error is" in capsys.readouterr().out
    right = int4.pack
    monkeypatch.setattr(int4, "pack", lambda codes, scales: right(codes.flip(1), scales))
    rightness.tried_int4()
    assert "at most" in capsys.readouterr().out


def test_a_table_says_whose_numbers_it_shows(monkeypatch, capsys):
    entry = {"value": 3.9, "unit": "1", "gpu": "NVIDIA X", "date": "2026-11-22T00:00:00Z"}
    monkeypatch.setattr(results, "find", {"a/speedup": entry}.get)
    monkeypatch.setattr(in_chapter.in_chapter, "able", lambda: False)
    row = in_chapter.Row("a product", ("a/speedup", "a/share_of_copy"))
    in_chapter.race("gemv", ("against bf16", "of copy"), [row])
    head, line, source = capsys.readouterr().out.splitlines()
    assert head.split() == ["against", "bf16", "of", "copy"]
    assert line.split() == ["a", "product", "3.90", "times", "–"]
    assert source == "(NVIDIA X, 2026-11-22)"
    in_chapter.show(
        ("against bf16", "of copy"), [row], {"a/share_of_copy": (0.5, "1"), "a/speedup": (2, "1")}
    )
    assert "measured now" in capsys.readouterr().out
