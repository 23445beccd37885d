"""Launches of a cell without a GPU, estimated at the size that they have on one."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from numba import cuda, float32

from course.kernels.tiles import matmul as products
from tests.needs import without_gpu
from utils import benchmark, compare, results, sizes, timing
from utils.estimate import Blank, Launch, Unknown, estimate
from utils.estimate.at_gpu_size import DEPENDS, UNCLEAR, said
from utils.sizes import picked
from utils.timing import SAID

pytestmark = without_gpu("launches are noted by the CPU engines")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Sizes of other tests are of another notebook."""
    for name in ("long_ones", "picks"):
        monkeypatch.setattr(sizes, name, {})
        monkeypatch.setattr(f"utils.estimate.at_gpu_size.{name}", getattr(sizes, name))


@cuda.jit
def add(out, a, b):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit
def in_strides(out, a):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a[i]


@cuda.jit
def product(c, a, b):
    x, y = cuda.grid(2)
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[y, k] * b[k, x]
    c[y, x] = total


@cuda.jit
def gather(out, a, places):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[places[i]]


@cuda.jit
def every_eighth(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i * 8]


def noted(work):
    with sizes.noted() as launches:
        work()
    return launches


def zeros(*shape):
    return cuda.to_device(np.zeros(shape, np.float32))


def adding(n, grid=None, threads=256):
    out, a, b = zeros(n), zeros(n), zeros(n)
    grid = (n + threads - 1) // threads if grid is None else grid
    return lambda: add[grid, threads](out, a, b)


@pytest.mark.parametrize("threads", [8, 256])
def test_a_sum_is_estimated_as_its_launch_on_a_gpu(threads):
    n = 1 << 25
    found = said(noted(adding(picked(n, 5_000), threads=threads)))
    whole = estimate(Launch(add, n // threads, threads, (Blank(n),) * 3))
    assert found.seconds == pytest.approx(whole.seconds)
    assert f"({n // threads:,} blocks of {threads} threads)" in found.row()
    assert "not measured" in found.head() and "an H200" in found.head()


def test_a_grid_of_fixed_size_loops_over_the_arrays_of_a_gpus_size():
    n = 1 << 25
    small = picked(n, 5_000)
    out, a = zeros(small), zeros(small)
    found = said(noted(lambda: in_strides[64, 256](out, a)))
    whole = estimate(
        lambda size: Launch(in_strides, 64, 256, (Blank(size), Blank(size))),
        size=n,
        small=(1 << 16, 1 << 17, 1 << 18),
    )
    assert found.seconds == pytest.approx(whole.seconds, rel=0.05)
    assert found.launch() == "64 blocks of 256 threads"


def test_axes_and_grid_grow_together():
    side = picked(1024, 32)
    a, b, c = zeros(side, side), zeros(side, side), zeros(side, side)
    tiles = side // 16, side // 16
    found = said(noted(lambda: product[tiles, (16, 16)](c, a, b)))
    arrays = (Blank((1024, 1024)),) * 3

    def whole(inner):
        return Launch(
            product, (64, 64), (16, 16), arrays[:1] + (Blank((1024, inner)), Blank((inner, 1024)))
        )

    assert found.launches[0].args == arrays
    assert found.seconds == pytest.approx(
        estimate(whole, size=1024, small=(32, 64, 96)).seconds, rel=0.05
    )


def test_an_array_of_a_multiple_grows_with_its_size():
    n = picked(1 << 22, 256)
    out, a = zeros(n), zeros(8 * n)
    found = said(noted(lambda: every_eighth[(n + 255) // 256, 256](out, a)))
    assert [arg.shape for arg in found.launches[0].args] == [(1 << 22,), (1 << 25,)]


def test_a_launch_without_sizes_is_estimated_as_it_is():
    found = said(noted(adding(2048)))
    assert found.launch() == "8 blocks of 256 threads, as launched here"
    assert found.seconds == pytest.approx(estimate(Launch(add, 8, 256, (Blank(2048),) * 3)).seconds)


def test_beside_a_recorded_time_no_small_launch_is_estimated(monkeypatch):
    entry = {"value": 0.1, "spread": 0.0, "gpu": "NVIDIA H200", "date": "2026-01-01"}
    told = timing.Timing("a/b", (), recorded={"time": entry}, launches=tuple(noted(adding(2048))))
    assert told.estimate is None and repr(told) == told.clock()
    unclear = tuple(noted(adding(picked(1 << 25, 5_000), grid=20)))
    assert timing.Timing("a/b", (), recorded={"time": entry}, launches=unclear).estimate is None
    assert timing.Timing("a/b", (), launches=unclear).estimate == f"no estimate: {UNCLEAR}"
    scaled = tuple(noted(adding(picked(1 << 25, 5_000))))
    assert timing.Timing("a/b", (), recorded={"time": entry}, launches=scaled).estimate.scaled


def test_a_short_axis_that_another_launch_may_have_picked_has_no_estimate():
    picked(300, 7)
    side = picked(1024, 32)
    a, b, c = zeros(side, 7), zeros(7, side), zeros(side, side)
    with pytest.raises(Unknown, match=UNCLEAR):
        said(noted(lambda: product[(side // 16, side // 16), (16, 16)](c, a, b)))


def test_copies_are_not_in_the_model():
    n = picked(1 << 25, 5_000)
    work, out, host = adding(n), zeros(n), np.zeros(n, np.float32)
    for copying in (
        lambda: (out.copy_to_device(host), work()),
        lambda: (work(), out.copy_to_host()),
    ):
        with pytest.raises(Unknown, match="copies are not in the model"):
            said(noted(copying))
    with pytest.raises(Unknown, match="copies are not in the model"):
        said(noted(lambda: add[(n + 255) // 256, 256](out, host, host)))
    assert benchmark(lambda: out.copy_to_device(host)).estimate is None


def test_a_grid_that_is_typed_by_hand_has_no_estimate():
    with pytest.raises(Unknown, match=UNCLEAR):
        said(noted(adding(picked(1 << 25, 5_000), grid=20)))


@pytest.mark.parametrize(
    "grid, block, known",
    [(64, 256, True), (1, 1, True), (1, 256, True), (5, 256, False), (20, 256, False)],
)
def test_a_plain_grid_of_a_loop_is_taken_where_no_size_can_have_made_it(grid, block, known):
    n = picked(1 << 22, 5_000)
    out, a = zeros(n), zeros(n)
    launches = noted(lambda: in_strides[grid, block](out, a))
    if not known:
        with pytest.raises(Unknown, match=UNCLEAR):
            said(launches)
        return
    assert said(launches).launches[0].blocks == grid


def test_what_depends_on_its_data_has_no_estimate():
    n = picked(1 << 25, 5_000)
    out, a = zeros(n), zeros(n)
    places = cuda.to_device(np.random.default_rng(1).integers(0, n, n))
    with pytest.raises(Unknown, match=DEPENDS):
        said(noted(lambda: gather[(n + 255) // 256, 256](out, a, places)))


def test_two_sizes_that_are_the_same_here_are_not_told_apart():
    picked(1 << 24, 5_000)
    out = zeros(5_000)
    picked(1 << 25, 5_000)
    with pytest.raises(Unknown, match="both 5,000 here"):
        said(noted(lambda: add[20, 256](out, out, out)))


def test_several_launches_are_one_after_the_other():
    work = adding(picked(1 << 25, 5_000))
    once, twice = said(noted(work)), said(noted(lambda: (work(), work())))
    assert once.seconds < twice.seconds < 2 * once.seconds
    assert twice.launch() == "2 launches"


def test_benchmark_tells_the_estimate_and_marks_it(monkeypatch, tmp_path):
    monkeypatch.setenv(results.RECORD, str(tmp_path / "lines.jsonl"))
    told = benchmark(adding(picked(1 << 25, 5_000)), name="no/such")
    first, second = repr(told).splitlines()
    assert first == "no GPU, so no time (nothing is recorded yet for no/such)"
    assert second.startswith("these kernels, estimated for an H200 and not measured (nine")
    assert "limited by the memory's bandwidth" in second
    assert SAID in told._repr_html_() and told.time is None
    assert not (tmp_path / "lines.jsonl").exists()  # never among measurements


def test_work_without_kernels_has_neither_estimate_nor_page():
    told = benchmark(lambda: None)
    assert repr(told) == "no GPU, so no time" and told._repr_html_() is None


def test_compare_tells_each_rivals_estimate_or_why_there_is_none():
    n = picked(1 << 25, 5_000)
    told = compare({"right": adding(n), "by hand": adding(n, grid=20), "none": lambda: None})
    head, right, by_hand = told.estimates.splitlines()
    assert head.endswith(":") and right.startswith("right    about ")
    assert by_hand == f"by hand  no estimate: {UNCLEAR}"
    assert repr(told).endswith(told.estimates)


def test_estimates_of_a_comparison_end_in_time(monkeypatch):
    monkeypatch.setattr(timing, "ESTIMATING", -1)
    told = compare({"late": adding(picked(1 << 25, 5_000))})
    assert told.estimates == "not estimated: the others took too long"


def test_estimates_are_left_out_where_that_is_asked_for(monkeypatch):
    monkeypatch.setenv(timing.NO_ESTIMATES, "1")
    add_many = adding(picked(1 << 25, 5_000))
    assert repr(benchmark(add_many)) == "no GPU, so no time"
    assert compare({"one": add_many}).estimates == ""


def test_one_reason_for_all_rivals_is_told_once():
    n = picked(1 << 25, 5_000)
    told = compare({"a": adding(n, grid=20), "b": adding(n, grid=10), "none": lambda: None})
    assert told.estimates == f"no estimate: {UNCLEAR}"


def test_a_launch_that_is_given_stands_beside_the_clock():
    n = 1 << 25
    launch = Launch(add, n // 256, 256, (Blank(n),) * 3)
    told = timing.Timing("a/b", (0.12, 0.12), launches=(launch,))
    clock, beside = repr(told).splitlines()
    assert clock.startswith("0.12 ms") and "not measured" in beside


@triton.jit
def add_tiles(out, a, b, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n)
    tl.store(out + i, total, mask=i < n)


@triton.jit
def whole_rows(out, x, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + column
    values = tl.load(x + at, mask=column < columns, other=0.0)
    tl.store(out + at, values / tl.sum(values * values, 0), mask=column < columns)


def test_a_triton_launch_is_estimated_at_its_size_on_a_gpu():
    n = picked(1 << 28, 5_000)
    out, a, b = torch.ones(3, n)
    timing = benchmark(lambda: add_tiles[(triton.cdiv(n, 1024),)](out, a, b, n, BLOCK=1024))
    asked = timing.estimate.longest.counts
    assert asked.blocks == (1 << 28) // 1024 and asked.moved["read"] == 2 * 4 << 28
    assert "limited by the memory's bandwidth" in repr(timing)


def test_the_power_of_two_above_a_row_grows_with_the_row():
    rows, columns = picked((4096, 3000), (6, 70))
    x = torch.ones(rows, columns)
    block = triton.next_power_of_2(columns)
    timing = benchmark(lambda: whole_rows[(rows,)](x, x, columns, block, num_warps=8))
    asked = timing.estimate.longest.counts
    assert (asked.blocks, asked.threads) == (4096, 256)
    assert asked.moved == {"read": 4 * 4096 * 3000, "write": 4 * 4096 * 3000}


def test_a_triton_launch_with_what_is_not_counted_says_so():
    a = torch.ones(64, 64)
    multiply = products.with_descriptors(32, 32, 32)
    assert "no estimate: tensor descriptors are not counted" in repr(
        benchmark(lambda: multiply(torch.empty_like(a), a, a))
    )
