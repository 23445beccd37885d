"""Programs that meet in memory: atomics, locks, and orders between them."""

import torch

import triton
import triton.language as tl


@triton.jit
def sum_atomically(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))


def check_atomic_sum():
    x, out = torch.randn(500), torch.zeros(1)
    sum_atomically[(8,)](x, out, 500, B=64)
    torch.testing.assert_close(out[0], x.sum(), atol=1e-4, rtol=1e-4)


def check_relaxed_atomics_need_no_order():
    @triton.jit
    def count(out):
        tl.atomic_add(out, 1, sem="relaxed")

    out = torch.zeros(1, dtype=torch.int32)
    count[(20,)](out)
    assert out[0] == 20


def check_exchange_of_floats():
    @triton.jit
    def exchange(old, out, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(old + i, tl.atomic_xchg(out + i, 0.5 + i, mask=i < 10))

    before = torch.randn(16)
    old, out = torch.zeros(16), before.clone()
    exchange[(1,)](old, out, B=16)
    assert torch.equal(old[:10], before[:10])
    assert torch.equal(out, torch.where(torch.arange(16) < 10, torch.arange(16) + 0.5, before))


@triton.jit
def histogram(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    bins = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(out + bins, 1, mask=i < n)


def check_atomics_of_many_lanes_on_one_place():
    x = torch.randint(0, 5, (200,))
    out = torch.zeros(5, dtype=torch.int32)
    histogram[(4,)](x, out, 200, B=64)
    assert torch.equal(out, torch.bincount(x, minlength=5).int())


def check_atomics_of_one_program_on_its_own_places():
    @triton.jit
    def histograms(x, out, n, bins, B: tl.constexpr):
        mine = tl.program_id(0)
        i = tl.arange(0, B)
        here = tl.load(x + mine * n + i, mask=i < n, other=0)
        tl.atomic_add(out + mine * bins + here, 1, mask=i < n, scope="cta")

    x = torch.randint(0, 5, (3, 40))
    out = torch.zeros((3, 5), dtype=torch.int32)
    histograms[(3,)](x, out, 40, 5, B=64)
    assert torch.equal(out, torch.stack([torch.bincount(row, minlength=5) for row in x]).int())


@triton.jit
def largest(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_max(out, tl.max(tl.load(x + i, mask=i < n, other=-1000), 0))


def check_atomic_max():
    x = torch.randint(-99, 99, (100,), dtype=torch.int32)
    out = torch.full((1,), -1000, dtype=torch.int32)
    largest[(4,)](x, out, 100, B=32)
    assert out[0] == x.max()


@triton.jit
def add_under_lock(lock, out, B: tl.constexpr):
    i = tl.arange(0, B)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + i, tl.load(out + i) + 1.0)
    tl.atomic_xchg(lock, 0)


def check_lock():
    lock, out = torch.zeros(1, dtype=torch.int32), torch.zeros(8)
    add_under_lock[(6,)](lock, out, B=8)
    assert torch.equal(out, torch.full((8,), 6.0)) and lock[0] == 0


@triton.jit
def last_one_adds(x, parts, done, out, n, B: tl.constexpr, P: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(parts + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))
    before = tl.atomic_add(done, 1)  # acquire and release: the parts lie before it
    if before == tl.num_programs(0) - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, P)), 0))


def check_last_program_adds_the_parts():
    x, parts, out = torch.randn(256), torch.empty(4), torch.empty(1)
    done = torch.zeros(1, dtype=torch.int32)
    last_one_adds[(4,)](x, parts, done, out, 256, B=64, P=4)
    torch.testing.assert_close(out[0], x.sum(), atol=1e-4, rtol=1e-4)


@triton.jit
def hand_on(flags, data):
    me = tl.program_id(0)
    if me > 0:
        while tl.atomic_add(flags + me - 1, 0) == 0:
            pass
        tl.store(data + me, tl.load(data + me - 1) + 1)
    tl.atomic_xchg(flags + me, 1)


def check_chain_of_programs():
    flags, data = torch.zeros(6, dtype=torch.int32), torch.zeros(6)
    hand_on[(6,)](flags, data)
    assert torch.equal(data, torch.arange(6.0))


@triton.jit
def grid_of_three(out, X: tl.constexpr, Y: tl.constexpr, Z: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out + (z * Y + y) * X + x, x + 10 * y + 100 * z)


def check_three_axes():
    out = torch.empty(2, 3, 4, dtype=torch.int32)
    grid_of_three[(4, 3, 2)](out, X=4, Y=3, Z=2)
    z, y, x = torch.meshgrid(torch.arange(2), torch.arange(3), torch.arange(4), indexing="ij")
    assert torch.equal(out, (x + 10 * y + 100 * z).int())


@triton.jit
def in_place(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def check_in_place():
    x = torch.randn(100)
    wanted = x * 2
    in_place[(4,)](x, 100, B=32)
    assert torch.equal(x, wanted)


def check_two_launches_may_write_one_place():
    x = torch.ones(32)
    for _ in range(3):
        in_place[(1,)](x, 32, B=32)
    assert torch.equal(x, torch.full((32,), 8.0))


@triton.jit
def neighbours(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0.0)
    right = tl.load(x + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(out + i, left + right, mask=i < n)


def check_reading_what_others_read():
    x, out = torch.randn(90), torch.empty(90)
    neighbours[(3,)](x, out, 90, B=32)
    wanted = torch.zeros(90)
    wanted[1:] += x[:-1]
    wanted[:-1] += x[1:]
    assert torch.equal(out, wanted)


@triton.jit
def filled(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 1.0)


def check_memory_of_torch_empty_once_written():
    x, out = torch.empty(16), torch.empty(16)
    filled[(1,)](x, B=16)
    out.copy_(x)
    in_place[(1,)](out, 16, B=16)
    assert torch.equal(out, torch.full((16,), 2.0))


@triton.jit
def twice(x):
    return x + x


@triton.jit
def with_a_helper(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, twice(tl.load(x + i)))


def check_device_function():
    x, out = torch.randn(8), torch.empty(8)
    with_a_helper[(1,)](x, out, B=8)
    assert torch.equal(out, x + x)


@triton.autotune(configs=[triton.Config({"B": 16}), triton.Config({"B": 64})], key=["n"])
@triton.jit
def tuned(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def check_autotune():
    x, out = torch.randn(100), torch.empty(100)
    tuned[lambda meta: (triton.cdiv(100, meta["B"]),)](x, out, 100)
    assert torch.equal(out, x + 1)
