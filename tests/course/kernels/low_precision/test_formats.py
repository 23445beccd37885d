"""Every code of every format, bit for bit; roundings; blocks with a scale."""

import numpy as np
import pytest
import torch

from course.kernels.low_precision import every_code, formats


@pytest.mark.parametrize("format", every_code.TYPES)
def test_every_code_and_every_midpoint_is_as_pytorch_has_it(format):
    codes, numbers = every_code.compare(format)
    assert codes == 1 << format.bits
    assert numbers > 3 * codes


def test_a_wrong_code_is_noticed(monkeypatch):
    right = formats.encode
    monkeypatch.setattr(formats, "encode", lambda x, f: right(x, f, "toward zero"))
    with pytest.raises(AssertionError, match="e5m2"):
        every_code.compare(formats.E5M2)


def test_what_is_wrong_is_said_and_not_raised(monkeypatch, capsys):
    every_code.tried()
    assert capsys.readouterr().out.count("✓") == len(every_code.TYPES)
    right = formats.encode
    monkeypatch.setattr(formats, "encode", lambda x, f: right(x, f, "toward zero"))
    every_code.tried()
    told = capsys.readouterr().out.splitlines()
    assert all(line.startswith("✗") for line in told)
    assert "The one nearest to 0 is" in told[-1] and "it should be 0 0000 001" in told[-1]


def test_four_bits_are_the_sixteen_numbers_of_the_standard():
    half = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    found = formats.decode(np.arange(16), formats.E2M1)
    assert found.tolist() == half + [-x for x in half]


def test_float32_keeps_its_bits_and_tf32_its_upper_19():
    x = np.random.default_rng(0).integers(0, 1 << 32, 5000, np.uint32).view(np.float32)
    x = x[np.isfinite(x)]
    assert np.array_equal(formats.encode(x, formats.FP32), x.view(np.uint32))
    cut = formats.encode(x, formats.TF32, "toward zero")
    assert np.array_equal(cut, x.view(np.uint32) >> 13)


@pytest.mark.parametrize("format", formats.FORMATS)
def test_what_is_too_large_saturates_or_does_not(format):
    beyond = np.float32([format.largest, 3e38, -3e38, np.inf])
    kept = formats.rounded(beyond, format, saturate=True)
    if format.exponent < 8:
        assert kept.tolist() == [format.largest, format.largest, -format.largest, format.largest]
    plain = formats.rounded(beyond[3:], format)[0]
    expected = {"infinities": np.inf, "one NaN": np.nan, "numbers": format.largest}
    assert np.array_equal(plain, expected[format.specials], equal_nan=True)


def test_rounding_by_chance_is_right_on_average():
    x = np.full(40_000, 1.03, np.float32)
    found = formats.rounded(x, formats.E4M3, "stochastic", seed=5)
    assert set(found.tolist()) == {1.0, 1.125}
    assert found.mean() == pytest.approx(1.03, abs=2e-3)


def test_elements_and_steps_have_chances_of_their_own():
    x = np.full(256, 1 + 2**-9, np.float32)  # a quarter of the way from 1 to the next bfloat16
    steps = [formats.rounded(x, formats.BF16, "stochastic", seed=seed) > 1 for seed in range(64)]
    of_elements = np.mean(steps, 0)
    variance = 0.25 * 0.75 / len(steps)
    assert of_elements.mean() == pytest.approx(0.25, abs=0.02)
    assert 0.6 < of_elements.var() / variance < 1.6


def test_spacing_is_the_distance_to_the_next_number():
    for format in (formats.E4M3, formats.E5M2, formats.FP16):
        x = formats.numbers(format)
        x = x[x >= 0]
        steps = [formats.spacing(float(number), format) for number in x[:-1]]
        assert steps == (x[1:].astype(np.float64) - x[:-1]).tolist()


def test_mx_scales_are_what_pytorch_decodes():
    x = np.random.default_rng(1).normal(size=256).astype(np.float32) * 1e-3
    codes, scales = formats.to_mx(x)
    powers = torch.from_numpy(scales.astype(np.uint8)).view(torch.float8_e8m0fnu).float().numpy()
    values = formats.decode(codes, formats.E4M3).reshape(-1, 32) * powers[:, None]
    assert np.array_equal(values.reshape(-1), formats.from_mx(codes, scales))
    assert np.abs(values.reshape(-1) - x).max() <= np.abs(x).max() / 16


@pytest.mark.parametrize("format", [formats.E4M3, formats.E2M1])
def test_numbers_that_a_block_can_hold_stay_as_they_are(format):
    numbers = formats.numbers(format)
    rng = np.random.default_rng(2)
    x = rng.choice(numbers, (4, 32)).astype(np.float32)
    x[:, 0] = format.largest
    x *= np.float32(2.0) ** rng.integers(-20, 20, (4, 1))
    x = x.astype(np.float32).reshape(-1)
    assert np.array_equal(formats.from_mx(*formats.to_mx(x, format), format), x)


def test_nvfp4_keeps_what_it_can_hold():
    x = np.tile(np.float32([6, -4, 3, 0.5, 0, 1, -1.5, 2]), 4) * np.float32(448)
    assert np.array_equal(formats.from_nvfp4(*formats.to_nvfp4(x)), x)
    assert not formats.from_nvfp4(*formats.to_nvfp4(np.zeros(32))).any()
