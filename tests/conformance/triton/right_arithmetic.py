"""Elementwise programs: types, rounding, masks."""

import torch

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


def check_add_masked():
    x, y, out = torch.randn(1000), torch.randn(1000), torch.empty(1000)
    add[(triton.cdiv(1000, 256),)](x, y, out, 1000, B=256)
    assert torch.equal(out, x + y)


def check_add_bfloat16():
    x, y = torch.randn(100).bfloat16(), torch.randn(100).bfloat16()
    out = torch.empty_like(x)
    add[(4,)](x, y, out, 100, B=32)
    assert torch.equal(out, x + y)


def check_add_float16():
    x, y = torch.randn(77).half(), torch.randn(77).half()
    out = torch.empty_like(x)
    add[(3,)](x, y, out, 77, B=32)
    assert torch.equal(out, x + y)


def check_add_int64():
    x, y = torch.randint(-(1 << 40), 1 << 40, (2, 50))
    out = torch.empty_like(x)
    add[(2,)](x, y, out, 50, B=32)
    assert torch.equal(out, x + y)


def check_add_nothing():
    x, out = torch.randn(0), torch.empty(0)
    add[(1,)](x, x, out, 0, B=16)


@triton.jit
def gelu(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=0.0)
    result = 0.5 * value * (1 + tl.erf(value * 0.7071067811865476))
    tl.store(out + i, result, mask=i < n)


def check_gelu():
    x, out = torch.randn(300), torch.empty(300)
    gelu[(5,)](x, out, 300, B=64)
    torch.testing.assert_close(out, torch.nn.functional.gelu(x))


@triton.jit
def divide(x, y, out, rest, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    b = tl.load(y + i, mask=i < n, other=1)
    tl.store(out + i, a // b, mask=i < n)
    tl.store(rest + i, a % b, mask=i < n)


def check_integer_division_as_in_c():
    x, y = torch.randint(-99, 99, (40,)), torch.randint(1, 9, (40,)) * torch.tensor([1, -1] * 20)
    out, rest = torch.empty_like(x), torch.empty_like(x)
    divide[(1,)](x, y, out, rest, 40, B=64)
    assert torch.equal(out, torch.div(x, y, rounding_mode="trunc"))
    assert torch.equal(rest, torch.fmod(x, y))


@triton.jit
def convert(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(out.dtype.element_ty), mask=i < n)


def check_float32_to_bfloat16():
    x = torch.tensor([1.00390625, 1.01171875, -3.4e38, 1e-40, 0.1, -0.0, float("inf"), 65504.0])
    out = torch.empty(8, dtype=torch.bfloat16)
    convert[(1,)](x, out, 8, B=8)
    assert torch.equal(out, x.bfloat16())


def check_float_to_integer_truncates():
    x, out = torch.randn(64) * 50, torch.empty(64, dtype=torch.int32)
    convert[(1,)](x, out, 64, B=64)
    assert torch.equal(out, x.int())


@triton.jit
def choose(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(i < n, tl.maximum(value, 0.0), -1.0))


def check_where_drops_undefined_lanes():
    x, out = torch.randn(50), torch.empty(64)
    choose[(1,)](x, out, 50, B=64)
    wanted = torch.full((64,), -1.0)
    wanted[:50] = x.relu()
    assert torch.equal(out, wanted)


@triton.jit
def guarded(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i, mask=i < n)
    positive = (i < n) & (value > 0)  # False where nothing was read, whatever value is
    tl.store(out + i, positive.to(tl.int32))


def check_false_and_undefined_is_false():
    x, out = torch.randn(20), torch.empty(32, dtype=torch.int32)
    guarded[(1,)](x, out, 20, B=32)
    assert torch.equal(out[:20], (x > 0).int()) and not out[20:].any()


@triton.jit
def chosen_by_constant(x, out, SCALE: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i)
    if SCALE > 1:
        value = value * SCALE
    tl.store(out + i, value)


def check_constexpr_branches():
    x, out = torch.randn(16), torch.empty(16)
    for scale in (1, 3):
        chosen_by_constant[(1,)](x, out, SCALE=scale, B=16)
        assert torch.equal(out, x * scale)


@triton.jit
def drop(x, out, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    keep = tl.rand(seed, i) > p
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(keep, value / (1 - p), 0.0), mask=i < n)


def check_dropout_is_the_same_for_any_block():
    x = torch.randn(200)
    outs = []
    for block in (32, 256):
        outs.append(torch.empty(200))
        drop[(triton.cdiv(200, block),)](x, outs[-1], 200, 0.5, 123, B=block)
    assert torch.equal(*outs)
    kept = outs[0] != 0
    assert 60 < kept.sum() < 140 and torch.equal(outs[0][kept], x[kept] * 2)


@triton.jit
def bits(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, ((value >> 3) & 0xF) ^ (value << 1), mask=i < n)


def check_shifts_and_masks_of_bits():
    x = torch.randint(0, 1 << 20, (60,), dtype=torch.int32)
    out = torch.empty_like(x)
    bits[(1,)](x, out, 60, B=64)
    assert torch.equal(out, ((x >> 3) & 0xF) ^ (x << 1))


@triton.jit
def hashed(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    value = (tl.load(x + i) * 1103515245 + 12345) & 0x7FFFFFFF
    tl.store(out + value % B, value, mask=i < 1)


def check_a_hash_may_wrap_around():
    x = torch.full((8,), 7777777, dtype=torch.int32)
    out = torch.zeros(8, dtype=torch.int32)
    hashed[(1,)](x, out, B=8)
    wanted = (7777777 * 1103515245 + 12345) & 0x7FFFFFFF
    assert out[wanted % 8] == wanted
