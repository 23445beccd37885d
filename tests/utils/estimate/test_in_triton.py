"""Counts of a Triton program that runs alone, by arithmetic and by the tracer of all of them."""

import pytest
import torch
import triton
import triton.language as tl

from tests.needs import without_gpu
from utils.estimate import Blank, Launch, Unknown, estimate, sampling
from utils.estimate.totals import count
from utils.tracer import trace

pytestmark = without_gpu("its interpreter runs where there is no GPU")


@triton.jit
def add(out, a, b, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    total = tl.load(a + i, mask=inside, other=0.0) + tl.load(b + i, mask=inside, other=0.0)
    tl.store(out + i, total, mask=inside)


@triton.jit
def scaled_rows(out, x, scale, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + column
    total = tl.sum(tl.load(x + at), 0)
    tl.store(out + at, total * tl.load(scale + column))


@triton.jit
def product(c, a, b, n, k, B: tl.constexpr, PRECISION: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    total = tl.zeros((B, B), tl.float32)
    for k0 in range(0, k, B):
        inner = k0 + tl.arange(0, B)
        tile_a = tl.load(a + row * k + inner[None, :])
        tile_b = tl.load(b + inner[:, None] * n + column)
        total = tl.dot(tile_a, tile_b, total, input_precision=PRECISION)
    tl.store(c + row * n + column, total)


@triton.jit
def add_up(total, x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + i), 0))


def adding(n, block=1024, **named):
    args = Blank(n), Blank(n), Blank(n), n
    return Launch(add, n // block, 128, args, named={"BLOCK": block, **named})


def multiplying(n, dtype=torch.float32, precision="tf32", kernel=product):
    matrix = Blank((n, n), dtype)
    args = Blank((n, n)), matrix, matrix, n, n
    return Launch(kernel, (n // 32, n // 32), 128, args, named={"B": 32, "PRECISION": precision})


def test_a_launch_of_any_size_takes_no_room_and_counts_as_arithmetic_says():
    n = 1 << 31
    counted = count(adding(n, 1024))
    assert counted.moved == {"read": 8 * n, "write": 4 * n}
    assert counted.amounts["read_sectors"] == counted.amounts["read_fewest"] == 2 * n // 8
    assert counted.amounts["whole_written"] == n // 8
    assert counted.amounts["read_requests"] == 2 * n // 128  # 16 bytes for each lane
    assert counted.amounts["fp32"] == n // 32
    assert counted.waits["memory b"] == 1  # both loads are under way together
    assert estimate(adding(1 << 28)).limit == "memory"


def test_a_program_alone_touches_the_sectors_that_it_touches_among_others():
    n, tensors = 1000, [torch.zeros(1000) for _ in range(3)]
    whole = trace(add, (8,), 128, *tensors, n, BLOCK=128)
    sectors = {"read": 0, "write": 0}
    for row in whole.coalescing:
        sectors[row.operation] += row.sectors
    args = *[Blank(n)] * 3, n
    counted = count(Launch(add, 8, 128, args, named={"BLOCK": 128})).amounts
    assert {what: counted[f"{what}_sectors"] for what in sectors} == sectors


def test_what_the_program_before_has_read_is_still_in_l1():
    rows, columns = 1 << 16, 1024
    args = Blank((rows, columns)), Blank((rows, columns)), Blank(columns), columns
    counted = count(Launch(scaled_rows, rows, 128, args, named={"BLOCK": columns})).amounts
    lines = rows * columns // 8
    assert counted["l2_read_0"] == 2 * lines
    assert counted["l2_read_1536"] == pytest.approx(lines, rel=1e-3)  # of x alone
    assert counted["barriers"] == 2 * 4 * rows


@pytest.mark.parametrize(
    ("dtype", "precision", "times"),
    [(torch.bfloat16, "tf32", 1), (torch.float32, "tf32", 2), (torch.float32, "ieee", 0)],
)
def test_tensor_cores_do_a_dot_but_where_float32_is_to_stay(dtype, precision, times):
    n = 128
    counted = count(multiplying(n, dtype, precision)).amounts
    assert counted["tensor"] == times * 2 * n**3
    assert (counted["fp32"] >= n**3 / 32) == (times == 0)


def test_tensor_cores_may_be_what_limits():
    def deep(k):
        arrays = Blank((4096, 4096)), Blank((4096, k)), Blank((k, 4096))
        named = {"B": 256, "PRECISION": "tf32", "num_stages": 2}
        return Launch(product, (16, 16), 256, (*arrays, 4096, k), named=named)

    found = estimate(deep, "RTX 3090", size=4096, small=(512, 1024, 1536))
    assert found.limit == "tensor" and "the tensor cores" in repr(found)


def test_additions_to_one_element_are_counted_as_such():
    n = 1 << 20
    counted = count(Launch(add_up, n // 256, 128, (Blank(1), Blank(n)), named={"BLOCK": 256}))
    assert counted.hottest["total"] == (n // 256, 1, "float")
    (first, *_) = estimate(adding(1 << 24, 32)).waterfall().steps
    assert first.seconds < estimate(adding(1 << 24, 32)).seconds


def test_a_mistake_of_the_program_is_told():
    launch = Launch(add_up, 8, 128, (Blank(1), Blank(100)), named={"BLOCK": 256})
    with pytest.raises(Unknown, match="outside the tensor"):
        count(launch)


def test_with_a_gpu_there_is_no_interpreter_that_counts(monkeypatch):
    monkeypatch.setattr(sampling, "gpu", lambda: "a GPU")
    with pytest.raises(Unknown, match="machines without a GPU"):
        count(adding(1 << 20))
