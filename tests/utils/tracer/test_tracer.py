"""The tracer's counts, on kernels whose answers are known by arithmetic, and what it says of broken
ones.
"""

import utils  # noqa: F401  first: it puts Numba on this machine's engine
from tests.needs import without_gpu
from tests.processes import completed

# isort: split
import sys
from array import array
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda, float32, float64, int32

from utils import has_gpu
from utils.cpu.numba_cuda import KernelTimeout
from utils.tracer import TooManyEvents, TraceError, counts, trace
from utils.tracer.record import READ, Memory, Site, prepare

F4 = np.float32


def floats(*shape, dtype=F4):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


@cuda.jit
def several_arrays(x):
    a, b = cuda.shared.array(8, float32), cuda.shared.array(8, int32)
    (c, d), e = (
        (cuda.shared.array(8, float32), cuda.local.array(2, float32)),
        cuda.shared.array(8, float32),
    )
    f = g = cuda.shared.array(8, float32)
    h: float32 = cuda.shared.array(8, float32)
    i = cuda.threadIdx.x
    a[i] = b[i] = c[i] = d[0] = e[i] = f[i] = h[i] = x[i]
    x[i] = g[i]


def test_arrays_have_the_names_that_they_are_assigned_to():
    memories = trace(several_arrays, 1, 1, floats(8)).events.memories
    assert [memory.name for memory in memories] == list("xabcdefh")


# ---- global memory: sectors


@cuda.jit
def copy_strided(out, a, stride, offset):
    i = cuda.grid(1)
    out[i] = a[i * stride + offset]


@pytest.mark.parametrize(
    "dtype, stride, offset, sectors, fewest",
    [  # 32 lanes; sectors of 32 bytes
        (np.float32, 1, 0, 4, 4),
        (np.float32, 1, 1, 5, 4),  # 128 bytes from byte 4 on touch a fifth sector
        (np.float32, 1, 8, 4, 4),  # one whole sector later
        (np.float32, 2, 0, 8, 4),
        (np.float32, 3, 0, 12, 4),
        (np.float32, 8, 0, 32, 4),
        (np.float32, 32, 0, 32, 4),
        (np.float32, 0, 0, 1, 1),  # broadcast
        (np.float64, 1, 0, 8, 8),
        (np.float64, 2, 0, 16, 8),
        (np.float64, 32, 0, 32, 8),
        (np.float64, 1, 1, 9, 8),
        (np.int8, 1, 0, 1, 1),
        (np.int8, 1, 1, 2, 1),
        (np.float16, 1, 0, 2, 2),
    ],
)
def test_sectors_of_a_strided_copy(dtype, stride, offset, sectors, fewest):
    a = np.ones(32 * 4 * max(stride, 1) + offset, dtype)
    t = trace(copy_strided, 4, 32, np.zeros(128, dtype), a, stride, offset)
    (read,) = [row for row in t.coalescing if row.array == "a"]
    assert (read.requests, read.accesses) == (4, 128)
    assert (read.sectors, read.fewest) == (4 * sectors, 4 * fewest)
    assert t.efficiency("a") == pytest.approx(100 * fewest / sectors)
    assert t.efficiency("out") == 100
    assert read.code == "out[i] = a[i * stride + offset]"
    assert not t.problems


def test_a_complex_number_is_two_accesses():
    t = trace(copy_strided, 1, 32, np.zeros(32, np.complex128), np.ones(32, np.complex128), 1, 0)
    (row,) = [row for row in t.coalescing if row.array == "a"]
    assert (row.requests, row.sectors, row.fewest) == (2, 32, 16)
    assert t.results["out"].tolist() == [1] * 32


@pytest.mark.parametrize("stride, lines", [(1, 1), (2, 2), (8, 8), (32, 32), (64, 32)])
def test_cache_lines_of_a_strided_copy(stride, lines):
    t = trace(copy_strided, 1, 32, floats(32), floats(32 * stride), stride, 0)
    assert [row.cache_lines for row in t.coalescing if row.array == "a"] == [lines]


def test_a_slice_of_a_device_array_is_where_it_is_in_its_allocation():
    a = cuda.to_device(floats(64))
    t = trace(copy_strided, 1, 32, floats(32), a[1:33], 1, 0)
    assert t.sectors("a") == 5
    assert trace(copy_strided, 1, 32, floats(32), a[8:40], 1, 0).sectors("a") == 4


def test_a_slice_of_a_tensor_is_where_it_is_in_its_storage():
    torch = pytest.importorskip("torch")
    a = torch.arange(64, dtype=torch.float32)
    start = a.data_ptr() % 32 // 4
    t = trace(copy_strided, 1, 32, floats(32), a[8 - start + 1 : 8 - start + 33], 1, 0)
    assert t.sectors("a") == 5


def test_an_address_that_every_lane_shares_is_one_sector():
    t = trace(copy_strided, 1, 32, floats(32), floats(8), 0, 3)
    assert t.sectors("a") == 1 and t.efficiency("a") == 100


@cuda.jit
def gather(out, a, index):
    i = cuda.grid(1)
    out[i] = a[index[i]]


def test_a_permutation_within_128_bytes_costs_nothing():
    index = np.random.default_rng(1).permutation(32).astype(np.int32)
    assert trace(gather, 1, 32, floats(32), floats(32), index).efficiency("a") == 100


@cuda.jit
def aos_columns(out, p):
    i = cuda.grid(1)
    out[i] = p[i, 0] + p[i, 1] + p[i, 2] + p[i, 3]


@cuda.jit
def soa_columns(out, p):
    i = cuda.grid(1)
    out[i] = p[0, i] + p[1, i] + p[2, i] + p[3, i]


@cuda.jit
def aos_records(out, p):
    i = cuda.grid(1)
    out[i] = p[i].x


@cuda.jit
def aos_records_write(p, a):
    i = cuda.grid(1)
    p[i].x = a[i]
    p[i]["w"] = a[i] + 1


def test_array_of_structures_against_structure_of_arrays():
    aos = trace(aos_columns, 1, 32, floats(32), floats(32, 4))
    soa = trace(soa_columns, 1, 32, floats(32), floats(4, 32))
    (row,) = [row for row in aos.coalescing if row.array == "p"]
    assert (row.requests, row.sectors, row.fewest) == (4, 4 * 16, 4 * 4)
    assert aos.efficiency("p") == 25 and soa.efficiency("p") == 100


def test_only_the_field_of_a_record_is_loaded():
    particle = np.dtype([("x", F4), ("y", F4), ("z", F4), ("w", F4)])
    p = np.zeros(32, particle)
    p["x"] = np.arange(32)
    t = trace(aos_records, 1, 32, floats(32) - 1, p)
    assert t.efficiency("p") == 25 and t.sectors("p") == 16
    np.testing.assert_array_equal(t.results["out"], p["x"])
    t = trace(aos_records_write, 1, 32, p, floats(32))
    assert [(row.operation, row.sectors) for row in t.coalescing if row.array == "p"] == [
        ("write", 16)
    ] * 2
    assert t.results["p"]["w"].tolist() == list(range(1, 33))
    assert p["w"].max() == 0, "the arguments are not changed"


# ---- shared memory: banks


def read_shared(dtype):
    @cuda.jit
    def read(out, stride):
        sh = cuda.shared.array(32 * 64, dtype)
        t = cuda.threadIdx.x
        for k in range(t, 32 * 64, 32):
            sh[k] = k
        cuda.syncthreads()
        out[t] = sh[t * stride]

    return read


@pytest.mark.parametrize(
    "dtype, stride, ways, passes, fewest",
    [
        (float32, 0, 1, 1, 1),  # broadcast
        (float32, 1, 1, 1, 1),
        (float32, 2, 2, 2, 1),
        (float32, 3, 1, 1, 1),  # odd strides meet every bank once
        (float32, 8, 8, 8, 1),
        (float32, 32, 32, 32, 1),
        (float32, 33, 1, 1, 1),  # padded
        (float64, 0, 1, 2, 2),  # half a warp at a time
        (float64, 1, 1, 2, 2),
        (float64, 2, 2, 4, 2),
        (float64, 16, 16, 32, 2),
        (float64, 17, 1, 2, 2),
    ],
)
def test_bank_conflicts_by_stride(dtype, stride, ways, passes, fewest):
    t = trace(read_shared(dtype), 1, 32, np.zeros(32), stride)
    (row,) = [row for row in t.banks if row.operation == "read"]
    assert (row.requests, row.ways, row.wavefronts, row.fewest) == (1, ways, passes, fewest)
    assert row.conflicts == passes - fewest
    assert t.ways(operation="write") == 1
    assert not t.problems


@pytest.mark.parametrize(
    "stride, ways, passes",
    [
        (0, 1, 4),
        (1, 1, 4),
        (2, 2, 8),
        (3, 1, 4),
        (8, 8, 32),
        (9, 1, 4),
    ],  # a quarter of a warp at a time
)
def test_bank_conflicts_of_16_byte_accesses(stride, ways, passes):
    """No access of a Numba kernel is that wide, so the events are written by hand."""
    sh = Memory("sh", "shared", (4096,), (16,), np.dtype("V16"), 0, 0)
    events = array("q", [n for t in range(32) for n in (READ, t, 0, 0, 16 * stride * t, 16, 0)])
    recorder = SimpleNamespace(
        events=events, sites=[Site("none", 1, 0)], memories=[sh], outside=[], stages=None
    )
    (row,) = counts.banks(
        counts.Events(SimpleNamespace(recorder=recorder, block=(32, 1, 1), function=None))
    )
    assert (row.ways, row.wavefronts, row.fewest) == (ways, passes, 4)


@cuda.jit
def byte_banks(out):
    sh = cuda.shared.array(128, np.int8)
    t = cuda.threadIdx.x
    sh[t] = t
    cuda.syncthreads()
    out[t] = sh[t]


def test_bytes_of_one_word_share_its_bank_without_conflict():
    assert trace(byte_banks, 1, 32, np.zeros(32, np.int8)).ways() == 1


TILE = 32


@cuda.jit
def transpose_naive(out, a):
    x, y = cuda.grid(2)
    out[x, y] = a[y, x]


def transpose_tiled(pitch, swizzle):
    @cuda.jit
    def transpose(out, a):
        tile = cuda.shared.array((TILE, pitch), float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        tile[ty, tx ^ swizzle * ty] = a[y, x]
        cuda.syncthreads()
        out[cuda.blockIdx.x * TILE + ty, cuda.blockIdx.y * TILE + tx] = tile[tx, ty ^ swizzle * tx]

    return transpose


@pytest.mark.parametrize(
    "kernel, written, ways",
    [
        (transpose_naive, 12.5, None),
        (transpose_tiled(TILE, 0), 100, 32),
        (transpose_tiled(TILE + 1, 0), 100, 1),
        (transpose_tiled(TILE, 1), 100, 1),
    ],
)
def test_transposes(kernel, written, ways):
    a = floats(64, 64)
    t = trace(kernel, (2, 2), (32, 32), np.zeros_like(a), a)
    np.testing.assert_array_equal(t.results["out"], a.T)
    assert t.efficiency("a") == 100 and t.efficiency("out") == written
    if ways:
        assert t.ways("tile", "read") == ways and t.ways("tile", "write") == 1
        assert t.conflicts("tile", "read") == 4 * 32 * (ways - 1)
    assert not t.problems


@cuda.jit
def atomic_add(h, a):
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(h, a[i], 1)


@pytest.mark.parametrize("bins, lanes", [(1, 32), (2, 16), (32, 1)])
def test_contention_of_atomics(bins, lanes):
    t = trace(atomic_add, 2, 64, np.zeros(32, np.int32), np.arange(128) % bins)
    (row,) = t.contention
    assert (row.lanes, row.requests, row.accesses, row.space) == (lanes, 4, 128, "global")
    assert t.results["h"].sum() == 128 and not t.problems


CONSTANTS = np.arange(64, dtype=F4)


@cuda.jit
def constants(out, same):
    table = cuda.const.array_like(CONSTANTS)
    i = cuda.grid(1)
    if same:
        out[i] = table[3]
    else:
        out[i] = table[i]


@pytest.mark.parametrize("same, words", [(True, 1), (False, 32)])
def test_different_constants_of_a_warp(same, words):
    t = trace(constants, 1, 32, floats(32), same)
    assert [(row.space, row.words) for row in t.others] == [("constant", words)]


@cuda.jit
def scratch(out):
    mine = cuda.local.array(4, int32)
    i = cuda.grid(1)
    for k in range(4):
        mine[k] = k + i
    out[i] = mine[3]


def test_local_arrays_are_each_threads_own():
    t = trace(scratch, 2, 32, np.zeros(64, np.int32))
    assert [(row.operation, row.accesses) for row in t.others] == [("write", 256), ("read", 64)]
    assert not t.problems


# ---- divergence


@cuda.jit
def in_turn(a, width):
    i = cuda.grid(1)
    if i // width % 2 == 0:
        a[i] = 1
    else:
        a[i] = 2


@cuda.jit
def triangle(a):
    i = cuda.threadIdx.x
    k = 0
    while k < i:
        a[i] += 1
        k += 1


def active(t, code):
    (row,) = [row for row in t.activity if row.code == code]
    return row


def test_lanes_that_disagree():
    t = trace(in_turn, 2, 64, floats(128), 1)
    assert [(row.runs, row.diverged, row.taken, row.not_taken) for row in t.branches] == [
        (4, 4, 64, 64)
    ]
    assert active(t, "a[i] = 1").active == active(t, "a[i] = 2").active == 16
    assert active(t, "a[i] = 1").runs == 4 and active(t, "if i // width % 2 == 0:").active == 32


def test_warps_that_agree():
    t = trace(in_turn, 2, 64, floats(128), 32)
    assert [(row.runs, row.diverged) for row in t.branches] == [(4, 0)]
    assert active(t, "a[i] = 1").active == 32 and active(t, "a[i] = 1").runs == 2


def test_a_loop_of_unequal_length():
    t = trace(triangle, 1, 32, floats(32))
    body = active(t, "a[i] += 1")
    assert body.runs == 31 and body.active == pytest.approx(sum(range(32)) / 31)
    (loop,) = t.branches
    assert (loop.runs, loop.diverged, loop.taken, loop.not_taken) == (32, 31, sum(range(32)), 32)


@cuda.jit
def every_other_iteration(a):
    i = cuda.threadIdx.x
    for k in range(8):
        if (i + k) % 2 == 0:
            a[i] += 1


@cuda.jit
def every_other_iteration_skipped(a):
    i = cuda.threadIdx.x
    for k in range(8):
        if (i + k) % 2 == 0:
            continue  # noqa: E701
        a[i] += 1


@cuda.jit
def unequal_inner_loops(a):
    i = cuda.threadIdx.x
    for k in range(2):
        j = 0
        while j < (i + k) % 2:
            a[i] += 1
            j += 1


def test_lanes_are_compared_iteration_by_iteration():
    kernels = {every_other_iteration: 8, every_other_iteration_skipped: 8, unequal_inner_loops: 2}
    for kernel, runs in kernels.items():
        t = trace(kernel, 1, 32, floats(32))
        body = active(t, "a[i] += 1")
        assert (body.runs, body.active) == (runs, 16), kernel.__name__
        assert all(row.diverged == row.runs for row in t.branches if row.code.startswith("if"))
        (read, write) = sorted(t.coalescing, key=lambda row: row.operation)
        assert read.requests == write.requests == runs and t.efficiency() == pytest.approx(50)


def test_a_warp_that_is_not_full():
    t = trace(in_turn, 1, 40, floats(40), 32)
    assert active(t, "i = cuda.grid(1)").active == 20  # 32 and 8


# ---- races


@cuda.jit
def shift_left(out, a, barrier):
    sh = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    sh[t] = a[i]
    if barrier:
        cuda.syncthreads()
    out[i] = sh[t + 1] if t + 1 < 64 else a[i]


def test_shift_left_needs_its_barrier():
    assert not trace(shift_left, 2, 64, floats(128), floats(128), True).problems
    t = trace(shift_left, 2, 64, floats(128), floats(128), False)
    (race,) = t.races
    assert (race.code, race.operation) == ("sh[t] = a[i]", "write")
    assert race.other.code.startswith("out[i] = sh[t + 1]") and race.other_operation == "read"
    assert race.elements == 2 * 63 and race.array == "sh"
    assert race.within_blocks and not race.between_blocks
    assert race.threads == (1, 0) and race.element == "sh[1]"
    (early,) = t.mistakes
    assert early.what == "uninitialised" and len(early.threads) == 2 * 63


@cuda.jit
def matmul(c, a, b, first, second):
    sa = cuda.shared.array((8, 8), float32)
    sb = cuda.shared.array((8, 8), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(0, a.shape[1], 8):
        sa[ty, tx] = a[y, k + tx]
        sb[ty, tx] = b[k + ty, x]
        if first:
            cuda.syncthreads()
        for j in range(8):
            total += sa[ty, j] * sb[j, tx]
        if second:
            cuda.syncthreads()
    c[y, x] = total


@pytest.mark.parametrize("first, second", [(True, True), (False, True), (True, False)])
def test_matmul_needs_both_barriers(first, second):
    rng = np.random.default_rng(3)
    a, b = rng.random((16, 16), F4), rng.random((16, 16), F4)
    t = trace(matmul, (2, 2), (8, 8), np.zeros_like(a), a, b, first, second)
    both = first and second
    assert {race.array for race in t.races} == (set() if both else {"sa", "sb"})
    if both:
        np.testing.assert_allclose(t.results["c"], a @ b, rtol=1e-5)
        assert not t.problems


@cuda.jit
def histogram_racing(h, a):
    i = cuda.grid(1)
    if i < a.size:
        h[a[i]] += 1


@cuda.jit
def histogram_private(h, a, barrier, atomic):
    mine = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        mine[t] = 0
    if barrier:
        cuda.syncthreads()
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(mine, a[i], 1)
    cuda.syncthreads()
    if t < 8:
        if atomic:
            cuda.atomic.add(h, t, mine[t])
        else:
            h[t] += mine[t]


def test_histograms():
    values = np.arange(128, dtype=np.int32) * 7 % 8
    h = np.zeros(8, np.int32)
    for right, *flags in ((atomic_add,), (histogram_private, True, True)):
        t = trace(right, 2, 64, h, values, *flags)
        assert not t.problems and t.results["h"].tolist() == [16] * 8
    (race,) = trace(histogram_racing, 2, 64, h, values).races
    assert race.elements == 8 and race.within_blocks and race.between_blocks
    assert {race.operation, race.other_operation} <= {
        "read",
        "write",
    } and race.line == race.other.line
    assert race.updates
    assert "If each change is to count, use an atomic operation" in str(
        trace(histogram_racing, 2, 64, h, values)
    )
    (race,) = trace(histogram_private, 2, 64, h, values, False, True).races
    assert race.array == "mine" and {race.operation, race.other_operation} == {"write", "atomic"}
    (race,) = trace(histogram_private, 2, 64, h, values, True, False).races
    assert race.array == "h" and race.between_blocks and not race.within_blocks


@cuda.jit
def neighbours(a):
    i = cuda.grid(1)
    if i + 1 < a.size:
        a[i] = a[i + 1]


def test_a_race_between_blocks():
    t = trace(neighbours, 4, 1, floats(4))
    (race,) = t.races
    assert race.between_blocks and not race.within_blocks and race.elements == 2
    assert "no syncthreads() helps" in str(t) and not race.updates


BEFORE_READING, IN_WARPS, BEFORE_WRITING = range(3)  # where `pass_on` has a barrier


@cuda.jit
def pass_on(out, a, rounds, barrier):
    sh = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    sh[t] = a[t]
    for _ in range(rounds):
        if barrier == BEFORE_READING:
            cuda.syncthreads()
        elif barrier == IN_WARPS:
            cuda.syncwarp()
        mine = sh[63 - t]
        if barrier == BEFORE_WRITING:
            cuda.syncthreads()
        sh[t] = mine + 1
    out[t] = sh[t]


def test_a_race_with_another_round_of_the_loop_says_so():
    later = "they are in different rounds of the loop"
    said = str(trace(pass_on, 1, 64, floats(64), floats(64), 2, BEFORE_WRITING))
    assert "RACE" in said and later in said
    said = str(trace(pass_on, 1, 64, floats(64), floats(64), 1, BEFORE_READING))
    assert "RACE" in said and later not in said


def test_a_race_between_warps_says_that_a_syncwarp_is_not_enough():
    said = str(trace(pass_on, 1, 64, floats(64), floats(64), 1, IN_WARPS))
    assert "A syncwarp() waits for one warp only" in said
    said = str(trace(pass_on, 1, 64, floats(64), floats(64), 1, BEFORE_READING))
    assert "RACE" in said and "A syncwarp() waits" not in said


@cuda.jit
def warp_shift(out, a, far, barrier):
    sh = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    sh[t] = a[t]
    if barrier:
        cuda.syncwarp()
    out[t] = sh[t ^ far]


@cuda.jit
def half_warp_shift(out, a, far):
    sh = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    sh[t] = a[t]
    if t % 32 < 16:
        cuda.syncwarp(0xFFFF)
        out[t] = sh[t ^ far]


def test_syncwarp_is_a_barrier_for_its_warp_only():
    assert not trace(warp_shift, 1, 64, floats(64), floats(64), 1, True).problems
    (race,) = trace(warp_shift, 1, 64, floats(64), floats(64), 32, True).races
    assert race.elements == 64
    assert trace(warp_shift, 1, 64, floats(64), floats(64), 1, False).races


def test_syncwarp_orders_only_the_lanes_in_its_mask():
    assert not trace(half_warp_shift, 1, 64, floats(64), floats(64), 1).races
    (race,) = trace(half_warp_shift, 1, 64, floats(64), floats(64), 16).races
    assert race.elements == 32


@cuda.jit
def last_block(out, partial, counter, a, told, learnt):
    done = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        partial[cuda.blockIdx.x] = a[cuda.blockIdx.x]
        if told:
            cuda.threadfence()
        done[0] = cuda.atomic.add(counter, 0, 1)
        if learnt == 1:
            cuda.threadfence()
        if learnt == 2:
            cuda.threadfence_block()
    cuda.syncthreads()
    if done[0] == cuda.gridDim.x - 1:
        if learnt == 3:
            cuda.threadfence()
        if t < partial.size:
            out[t] = partial[t]


def test_two_fences_and_a_counter_order_blocks():
    def arguments():
        return floats(4), floats(4), np.zeros(1, np.int32), floats(4)

    for learnt in (1, 3):  # by who counted, before the barrier; by each that reads
        assert not trace(last_block, 4, 32, *arguments(), True, learnt).races
    (race,) = trace(last_block, 4, 32, *arguments(), False, 1).races
    assert race.array == "partial" and race.between_blocks and not race.unfenced
    for learnt in (0, 2):
        t = trace(last_block, 4, 32, *arguments(), True, learnt)
        assert [(race.array, race.unfenced) for race in t.races] == [("partial", True)]
        assert "threadfence() of its own" in str(t)


@cuda.jit
def lock_in_one_line(total, mutex, taken, left):
    while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
        pass  # noqa: E701
    if taken:
        cuda.threadfence()  # noqa: E701
    total[0] += 1  # threadfence() is missing here
    if left:
        cuda.threadfence()  # noqa: E701
    cuda.atomic.exch(mutex, 0, 0)


@cuda.jit
def lock(total, mutex, taken, left):
    while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
        pass
    if taken:
        cuda.threadfence()
    total[0] += 1
    if left:
        cuda.threadfence()
    cuda.atomic.exch(mutex, 0, 0)


def test_a_lock_with_both_its_fences_orders_what_it_guards():
    for kernel in (lock, lock_in_one_line):
        for taken in (True, False):
            for left in (True, False):
                t = trace(kernel, 4, 1, floats(1), np.zeros(1, np.int32), taken, left)
                assert bool(t.races) == (not (taken and left))


@without_gpu("the allocation of numba-cuda's array cannot be seen")
def test_two_arguments_over_one_device_array_can_race():
    a = cuda.to_device(floats(65))
    (race,) = trace(copy_strided, 1, 64, a[1:], a[:-1], 1, 0).races
    assert race.elements == 63


def test_two_views_of_one_tensor_can_race():
    torch = pytest.importorskip("torch")
    a = torch.zeros(65, device="cuda" if has_gpu() else "cpu")
    (race,) = trace(copy_strided, 1, 64, a[1:], a[:-1], 1, 0).races
    assert race.elements == 63


def test_a_view_of_a_tensor_is_read_where_it_lies():
    torch = pytest.importorskip("torch")
    a = torch.arange(24.0).reshape(4, 6)[1:, 2:5].T
    copy = prepare(a, {})
    np.testing.assert_array_equal(copy.copy_to_host(), a.numpy())


# ---- barriers


@cuda.jit
def barrier_in_a_branch(a):
    t = cuda.threadIdx.x
    a[t] = t
    if t < 60:
        cuda.syncthreads()
    a[t] += 1


def test_threads_that_skip_a_barrier_are_named():
    t = trace(barrier_in_a_branch, 1, 64, floats(64))
    (row,) = t.barriers
    assert row.skipped == (60, 61, 62, 63) and row.code == "cuda.syncthreads()"
    assert row.reached.tolist() == [[1] * 60 + [0] * 4]
    assert t.error is not None
    text = str(t)
    assert "STOPPED" in text and "BARRIER SKIPPED" in text and "thread 60 of block 0" in text


def test_barriers_that_all_threads_reach():
    a = floats(16, 16)
    t = trace(matmul, (2, 2), (8, 8), np.zeros_like(a), a, a, True, True)
    assert [row.reached.tolist() for row in t.barriers] == [[[2] * 64] * 4] * 2
    assert not any(row.skipped for row in t.barriers)


# ---- mistakes


@cuda.jit
def no_guard(out, a):
    i = cuda.grid(1)
    out[i] = a[i]


def test_accesses_outside_are_listed_and_the_rest_goes_on():
    t = trace(no_guard, 4, 32, floats(100) * 0, floats(100))
    assert [(row.what, row.array, row.operation, len(row.threads)) for row in t.mistakes] == [
        ("outside", "a", "read", 28),
        ("outside", "out", "write", 28),
    ]
    assert t.mistakes[0].threads[0] == 100 and t.mistakes[0].indices[0] == (100,)
    assert t.results["out"].tolist() == list(range(100)) and t.error is None
    assert "OUT OF BOUNDS" in str(t) and "thread 4 of block 3 reads a[100]" in str(t)


@cuda.jit
def column_too_far(a):
    i = cuda.grid(1)
    a[i, 4] = i


def test_what_is_outside_is_no_race_besides():
    t = trace(column_too_far, 1, 4, floats(4, 4))
    assert len(t.mistakes) == 1 and not t.races and t.sectors("a") == 3  # bytes 16 to 79


@cuda.jit
def look_left(out, a):
    i = cuda.grid(1)
    out[i] = a[i - 1]


@cuda.jit
def last_one(out, a):
    i = cuda.grid(1)
    out[i] = a[-1]


def test_negative_indices():
    (row,) = trace(look_left, 1, 32, floats(32), floats(32)).mistakes
    assert (row.what, row.threads, row.indices) == ("negative", (0,), ((-1,),))
    t = trace(last_one, 1, 32, floats(32), floats(32))
    assert not t.problems and t.results["out"].tolist() == [31] * 32


@cuda.jit
def outside_in_two_dimensions(a):
    x, y = cuda.grid(2)
    a[y, x] = 1


def test_a_column_too_far_is_outside():
    t = trace(outside_in_two_dimensions, 1, (8, 4), floats(4, 6))
    (row,) = t.mistakes
    assert len(row.threads) == 8 and row.indices[:2] == ((0, 6), (0, 7))


@cuda.jit
def atomic_outside(h):
    cuda.atomic.add(h, cuda.grid(1), 1)


def test_an_atomic_outside_ends_the_launch_and_is_reported():
    t = trace(atomic_outside, 1, 32, np.zeros(8, np.int32))
    assert "index 8 is outside 'h'" in str(t.error) and "STOPPED" in str(t)


@cuda.jit
def dynamic(out):
    sh = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    if t > 0:
        sh[t] = t
    cuda.syncthreads()
    out[t] = sh[t]


@cuda.jit
def unset_sum(out):
    sh = cuda.shared.array(1, int32)
    cuda.atomic.add(sh, 0, 1)
    cuda.syncthreads()
    out[cuda.threadIdx.x] = sh[0]


def test_unwritten_shared_memory_dynamic_too():
    t = trace(dynamic, 1, 32, floats(32), shared_bytes=128)
    (row,) = t.mistakes
    assert (row.what, row.threads, row.indices) == ("uninitialised", (0,), ((0,),))
    (row,) = trace(unset_sum, 1, 32, np.zeros(32, np.int32)).mistakes
    assert (row.what, row.operation) == ("uninitialised", "atomic")


# ---- what is refused, what is stopped


@cuda.jit
def endless(a):
    i = cuda.grid(1)
    while a[0] >= 0:
        a[i] = i


@cuda.jit(device=True)
def helper(x):
    return x + 1


@cuda.jit
def calls_helper(a):
    i = cuda.grid(1)
    a[i] = helper(a[i])


def test_an_endless_loop_is_stopped():
    with pytest.raises(
        TooManyEvents, match=r"stopped after 50,000 events[\s\S]*test_tracer.py[\s\S]*never ends"
    ):
        trace(endless, 1, 32, floats(32), limit=50_000)
    with pytest.raises(KernelTimeout, match="longer than its time limit"):
        trace(endless, 1, 32, floats(32), seconds=0.2)


@pytest.mark.parametrize(
    "kernel, says",
    [
        (3, "no kernel"),
        (np.sin, "no kernel"),
        (len, "no kernel"),
        (helper, "device function"),
        (no_guard[1, 32], "apart"),
        (np.ndarray, "no kernel"),
    ],
)
def test_what_is_no_kernel_is_refused(kernel, says):
    with pytest.raises(TraceError, match=says):
        trace(kernel, 1, 32, floats(32), floats(32))


def test_too_many_threads_are_refused():
    with pytest.raises(TraceError, match="1,048,576 threads; a trace takes 16,384 at most"):
        trace(no_guard, 1024, 1024, floats(4), floats(4))


@pytest.mark.parametrize(
    "grid, block", [(0, 32), (1, 2048), (1.5, 32), (1, "x"), ((1, 1, 1, 1), 32)]
)
def test_bad_launch_shapes_are_refused(grid, block):
    with pytest.raises(Exception, match="grid|block|threads"):
        trace(no_guard, grid, block, floats(4), floats(4))


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="not enough arguments"):
        trace(no_guard, 1, 32, floats(4))
    with pytest.raises(TypeError, match="a kernel cannot take a list"):
        trace(no_guard, 1, 32, floats(4), [1, 2])


def test_asking_for_an_access_that_is_not_there_says_which_are():
    t = trace(no_guard, 1, 32, floats(32), floats(32))
    with pytest.raises(TraceError, match="no such access: array 'b'.*read a"):
        t.efficiency("b")
    with pytest.raises(TraceError, match="there are: none"):
        t.ways()


def test_device_functions_are_traced_at_their_own_lines():
    t = trace(calls_helper, 1, 32, floats(32))
    assert active(t, "return x + 1").active == 32
    assert t.results["a"].tolist() == list(range(1, 33))


def test_arguments_are_left_alone():
    a, out = floats(32), floats(32) * 0
    t = trace(no_guard, 1, 32, out, a)
    assert out.max() == 0 and t.results["out"].tolist() == a.tolist()


REAL_NUMBA = """
from numba import cuda, float32, int32  # before utils: numba.cuda itself, as on a machine with a \
GPU
import warnings
warnings.simplefilter("ignore")
import numpy as np
from utils.tracer import TraceError, trace

@cuda.jit(device=True)
def twice(x):
    return x * float32(2)

@cuda.jit
def kernel(out, a, count):
    tile = cuda.shared.array((32, 32), dtype=float32)
    t = cuda.threadIdx.x
    for k in range(32):
        tile[k, t] = twice(a[k, t])
    cuda.syncthreads()
    cuda.atomic.add(count, 0, int32(1))
    for k in range(32):
        out[k, t] = tile[t, k]

a = np.arange(1024, dtype=np.float32).reshape(32, 32)
t = trace(kernel, 1, 32, np.zeros_like(a), a, np.zeros(1, np.int32))
assert type(kernel).__module__ != "utils.cpu.numba_cuda.dispatcher", type(kernel)
assert (t.results["out"] == 2 * a.T).all() and t.results["count"][0] == 32
assert t.efficiency() == 100 and t.ways("tile", "read") == 32 and not t.problems
for wrong in (twice, kernel[1, 32]):
    try:
        trace(wrong, 1, 32, a)
    except TraceError as error:
        print(error)
"""


def test_kernels_of_numba_cuda_itself_are_traced_too(tmp_path):
    (tmp_path / "real.py").write_text(REAL_NUMBA)
    done = completed([sys.executable, tmp_path / "real.py"], timeout=600)
    assert done.returncode == 0, done.stderr
    assert "twice is a device function" in done.stdout and "apart: trace(kernel" in done.stdout


SOURCELESS = """
def nowhere(a):
    i = cuda.grid(1)
    if i < 16:
        a[i] = i
"""


def test_a_kernel_without_source_is_counted_and_says_what_is_missing():
    names = {"cuda": cuda}
    exec(compile(SOURCELESS, "<nowhere>", "exec"), names)
    t = trace(cuda.jit(names["nowhere"]), 1, 32, floats(32))
    assert t.sectors("a") == 2 and not t.activity
    assert "source was not found" in str(t) and "source was not found" in t._repr_html_()


# ---- the report


def test_the_report_shows_each_line_with_its_number_and_its_costs(capsys):
    kernel = transpose_tiled(TILE, 0)
    t = trace(kernel, (2, 2), (32, 32), floats(64, 64), floats(64, 64))
    t.report()
    text = capsys.readouterr().out
    first = kernel.py_func.__code__.co_firstlineno
    assert f"{first + 5:>5}      tile[ty, tx ^ swizzle * ty] = a[y, x]" in text
    assert "32-way bank conflict, 32 passes instead of 1" in text
    assert "read a: 4 sectors, 4 would do = 100 %" in text
    assert "No races" in text
    page = t._repr_html_()
    assert "tile[ty, tx ^ swizzle * ty] = a[y, x]" in page and "32-way bank conflict" in page


# ---- speed


@cuda.jit
def ten_accesses(out, a):
    i = cuda.grid(1)
    total = a[i]
    for k in range(1, 9):
        total += a[(i + k) % a.size]
    out[i] = total


def test_a_launch_of_4096_threads_with_10_accesses_each_is_traced_whole():
    a = floats(4096)
    t = trace(ten_accesses, 16, 256, a, a)
    text = str(t)
    assert sum(row.accesses for row in t.coalescing) == 40_960 and "No races" in text
