"""Sums, maxima, scans, sorts."""

import torch

import triton
import triton.language as tl


@triton.jit
def reduce_rows(x, sums, tops, places, rows, columns, B: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, B)
    values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
    tl.store(sums + row, tl.sum(tl.where(column < columns, values, 0.0), 0))
    tl.store(tops + row, tl.max(values, 0))
    tl.store(places + row, tl.argmax(values, 0))


def check_sum_max_argmax():
    x = torch.randn(7, 50)
    sums, tops = torch.empty(7), torch.empty(7)
    places = torch.empty(7, dtype=torch.int32)
    reduce_rows[(7,)](x, sums, tops, places, 7, 50, B=64)
    torch.testing.assert_close(sums, x.sum(1))
    assert torch.equal(tops, x.amax(1)) and torch.equal(places, x.argmax(1).int())


@triton.jit
def sums_of_both_axes(x, down, across, total, B: tl.constexpr):
    i = tl.arange(0, B)
    tile = tl.load(x + i[:, None] * B + i[None, :])
    tl.store(down + i, tl.sum(tile, 0))
    tl.store(across + i, tl.sum(tile, 1))
    tl.store(total, tl.sum(tile))


def check_axes():
    x = torch.randn(16, 16)
    down, across, total = torch.empty(16), torch.empty(16), torch.empty(1)
    sums_of_both_axes[(1,)](x, down, across, total, B=16)
    torch.testing.assert_close(down, x.sum(0))
    torch.testing.assert_close(across, x.sum(1))
    torch.testing.assert_close(total[0], x.sum())


@triton.jit
def softmax(x, out, columns, B: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, B)
    inside = tl.arange(0, B) < columns
    row = tl.load(x + at, mask=inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(out + at, (powers / tl.sum(powers, 0)).to(out.dtype.element_ty), mask=inside)


def check_softmax():
    x = torch.randn(5, 77) * 20
    out = torch.empty_like(x)
    softmax[(5,)](x, out, 77, B=128)
    torch.testing.assert_close(out, x.softmax(1))


def check_softmax_bfloat16():
    x = torch.randn(3, 33).bfloat16()
    out = torch.empty_like(x)
    softmax[(3,)](x, out, 33, B=64)
    torch.testing.assert_close(out, x.softmax(1), atol=4e-3, rtol=8e-3)


@triton.jit
def running(x, sums, backwards, products, n, B: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(sums + i, tl.cumsum(values, 0), mask=i < n)
    tl.store(backwards + i, tl.cumsum(values, 0, reverse=True), mask=i < n)
    values = tl.load(x + i, mask=i < n)  # behind the end undefined, and so are products there
    tl.store(products + i, tl.cumprod(values, 0), mask=i < n)


def check_scans():
    x = torch.rand(50) + 0.5
    sums, backwards, products = torch.empty(3, 50)
    running[(1,)](x, sums, backwards, products, 50, B=64)
    torch.testing.assert_close(sums, x.cumsum(0))
    torch.testing.assert_close(backwards, x.flip(0).cumsum(0).flip(0))
    torch.testing.assert_close(products, x.cumprod(0))


@triton.jit
def largest(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def running_top(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.associative_scan(tl.load(x + i), 0, largest))


def check_associative_scan():
    x, out = torch.randn(32), torch.empty(32)
    running_top[(1,)](x, out, B=32)
    assert torch.equal(out, x.cummax(0).values)


@triton.jit
def add_pairs(count_a, mean_a, spread_a, count_b, mean_b, spread_b):
    count = count_a + count_b
    difference = mean_b - mean_a
    share = tl.where(count == 0, 0.0, count_b / count)
    spread = spread_a + spread_b + difference * difference * count_a * share
    return count, mean_a + difference * share, spread


@triton.jit
def variance(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.load(x + i, mask=i < n, other=0.0)
    counts = (i < n).to(tl.float32)
    zeros = tl.zeros((B,), tl.float32)
    count, _, spread = tl.reduce((counts, values, zeros), 0, add_pairs)
    tl.store(out, spread / count)


def check_reduce_with_a_function_of_three():
    x, out = torch.randn(20) + 5, torch.empty(1)
    variance[(1,)](x, out, 20, B=32)
    torch.testing.assert_close(out[0], x.var(correction=0))


@triton.jit
def sort(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.sort(tl.load(x + i)))


def check_sort():
    x, out = torch.randn(16), torch.empty(16)
    sort[(1,)](x, out, B=16)
    assert torch.equal(out, x.sort().values)


@triton.jit
def count_values(x, out, n, B: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + tl.arange(0, BINS), tl.histogram(values, BINS, mask=i < n))


def check_histogram():
    x = torch.randint(0, 8, (100,), dtype=torch.int32)
    out = torch.empty(8, dtype=torch.int32)
    count_values[(1,)](x, out, 100, B=128, BINS=8)
    assert torch.equal(out, torch.bincount(x, minlength=8).int())


@triton.jit
def long_row(x, out, n, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    for first in range(0, n, B):
        i = first + tl.arange(0, B)
        total += tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out, tl.sum(total, 0))


def check_loop_over_a_row():
    x, out = torch.randn(1000), torch.empty(1)
    long_row[(1,)](x, out, 1000, B=64)
    torch.testing.assert_close(out[0], x.sum(), atol=1e-4, rtol=1e-5)


@triton.jit
def index_of_loop(out, n, B: tl.constexpr):
    for row in range(tl.program_id(0), n, tl.num_programs(0)):
        at = row.to(tl.int64) * B + tl.arange(0, B)
        tl.store(out + at, row.to(tl.float32) + tl.zeros((B,), tl.float32))


def check_index_of_a_range_is_a_tensor():
    out = torch.empty(10, 4)
    index_of_loop[(3,)](out, 10, B=4)
    assert torch.equal(out, torch.arange(10.0)[:, None].expand(10, 4))
