"""What to change next: a change counts as the changed kernel does, and the best comes first."""

import numpy as np
import pytest
from numba import cuda, float32

from utils.estimate import Blank, Launch, estimate
from utils.estimate.gpus import gpu
from utils.estimate.improving import CHANGES, WORTH_SAYING
from utils.estimate.totals import count

N = 1 << 22
SIDE = 1 << 10


@cuda.jit
def copy(out, a, stride):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i * stride]


@cuda.jit
def copy_four(out, a, stride):
    i = 4 * cuda.grid(1)
    for k in range(4):
        if i + k < out.size:
            out[i + k] = a[i + k]


@cuda.jit
def halves(out, a, half):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * half


@cuda.jit
def add_up(total, a):
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(total, 0, a[i])


@cuda.jit
def tree(out, a):
    parts = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    parts[t] = a[cuda.grid(1)]
    cuda.syncthreads()
    step = 128
    while step > 0:
        if t < step:
            parts[t] += parts[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = parts[0]


def turning(width):
    @cuda.jit
    def turn(out, a):
        tile = cuda.shared.array((32, width), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        tile[y, x] = a[y, x]
        cuda.syncthreads()
        out[y, x] = tile[x, y]

    return count(Launch(turn, 1, (32, 32), (Blank((32, 32)), Blank((32, 32)))))


@cuda.jit
def product(c, a, b):
    row, column = cuda.grid(2)
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[row, k] * b[k, column]
    c[row, column] = total


def copying(kernel, stride, threads=256, each=1):
    blocks = N // (threads * each)
    return count(Launch(kernel, blocks, threads, (Blank(N), Blank(N * stride), stride)))


def changed(counts, words):
    return CHANGES[words](counts, gpu("H200"))


def test_side_by_side_counts_as_a_kernel_without_a_stride():
    is_so = copying(copy, 1)
    said = changed(copying(copy, 8), "with its global accesses side by side")
    for name in ("read_lines", "read_sectors", "l2_read_0", "write_sectors", "whole_written"):
        assert said.amounts[name] == is_so.amounts[name], name
    assert said.moved == is_so.moved
    assert changed(is_so, "with its global accesses side by side") is None


def test_larger_blocks_count_as_larger_blocks():
    is_so = copying(copy, 1)
    said = changed(copying(copy, 1, 32), "in blocks of 256 threads")
    assert (said.blocks, said.threads) == (is_so.blocks, is_so.threads)
    assert said.amounts == is_so.amounts
    assert changed(is_so, "in blocks of 256 threads") is None


def test_four_numbers_each_take_a_quarter_of_the_blocks_and_of_the_accesses():
    one, words = copying(copy, 1), "with four numbers for each thread, 16 bytes at once"
    said = changed(one, words)
    assert said.blocks == copying(copy_four, 1, each=4).blocks
    assert said.amounts["access"] == one.amounts["access"] / 4
    assert said.amounts["read_sectors"] == one.amounts["read_sectors"]
    assert changed(copying(copy, 2), words) is None


def test_float32_counts_as_float32():
    arrays = Blank(N), Blank(N)
    wide, narrow = (
        count(Launch(halves, N // 256, 256, (*arrays, half))) for half in (0.5, np.float32(0.5))
    )
    said = changed(wide, "with float32 in place of float64")
    assert said.amounts["fp64"] == 0 and said.amounts["fp32"] >= narrow.amounts["fp32"]
    assert changed(narrow, "with float32 in place of float64") is None


def test_without_conflicts_it_counts_as_with_padding():
    words = "without its bank conflicts"
    is_so, said = turning(33), changed(turning(32), words)
    assert said.amounts["shared_passes"] == is_so.amounts["shared_passes"]
    assert changed(is_so, words) is None


def test_a_sum_adds_once_for_each_block():
    words = "with sums in each block first, and one addition of each"
    launch = Launch(add_up, N // 256, 256, (Blank(1), Blank(N)))
    counts = count(launch)
    said = changed(counts, words)
    assert counts.hottest["total"][0] == N and said.hottest["total"][0] == N // 256
    (first, *_) = estimate(launch).waterfall().steps
    assert first.words == words
    assert first.seconds < estimate(launch).seconds / 20
    assert changed(said, words) is None


def test_shuffles_leave_two_barriers():
    counts = count(Launch(tree, N // 256, 256, (Blank(N // 256), Blank(N))))
    said = changed(counts, "with shuffles, and two barriers")
    assert counts.waits["barriers"] == 9 and said.waits["barriers"] == 2
    assert said.amounts["shared_passes"] < counts.amounts["shared_passes"]
    assert changed(said, "with shuffles, and two barriers") is None


def test_a_product_is_told_of_order_and_reuse_and_a_copy_is_not():
    def multiplying(inner):
        arrays = Blank((SIDE, SIDE)), Blank((SIDE, inner)), Blank((inner, SIDE))
        return Launch(product, (SIDE // 16, SIDE // 16), (16, 16), arrays)

    made = estimate(multiplying, size=SIDE, small=(32, 64, 96)).waterfall()
    assert made.steps[0].words == "with its global accesses side by side"
    assert "with two by two results for each thread" in [step.words for step in made.steps]
    assert changed(copying(copy, 1), "with two by two results for each thread") is None


@pytest.mark.parametrize("name", ["H200", "T4"])
def test_steps_bring_less_and_less_time_and_never_less_than_the_bytes_need(name):
    made = estimate(Launch(copy, N // 32, 32, (Blank(N), Blank(8 * N), 8)), name).waterfall()
    times = [made.seconds, *(step.seconds for step in made.steps)]
    assert len(times) > 2
    assert all(
        after < WORTH_SAYING * before for before, after in zip(times, times[1:], strict=False)
    )
    assert 0 < made.least <= times[-1]
    text = repr(made)
    assert "estimated" in text and made.steps[0].words in text
    assert ("nine in ten" in text) == (name == "H200")
    assert len(estimate(Launch(copy, 1, 32, (Blank(32), Blank(32), 1))).waterfall(1).steps) <= 1
