"""Counts from a few blocks, against the tracer's of a whole launch and against arithmetic."""

import numpy as np
import pytest
from numba import cuda, float32

from tests.needs import cpp_compiler, without_gpu
from utils import cuda_c
from utils.estimate import Blank, Launch, Unknown, sampling
from utils.estimate.totals import count
from utils.tracer import trace

THREADS = 64


@cuda.jit
def strided(out, a, stride, shift):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i * stride + shift]


@cuda.jit
def turned(out, a):
    tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = a[y, x]
    cuda.syncthreads()
    out[y, x] = tile[x, y]


@cuda.jit
def product(c, a, b):
    x, y = cuda.grid(2)
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[y, k] * b[k, x]
    c[y, x] = total


@cuda.jit
def jumpy(out, a):
    i = cuda.grid(1)
    for _ in range(a.size % 7):
        out[i] += a[i]


@cuda.jit
def add_to(counters, spread):
    i = cuda.grid(1)
    cuda.atomic.add(counters, i % spread, 1)


@cuda.jit
def wait_for(flag):
    while cuda.atomic.add(flag, 0, 0) == 0:
        pass


@cuda.jit
def all_meet(a):
    cuda.cg.this_grid().sync()
    a[cuda.grid(1)] = 1


ADD = """
__global__ void add(float* out, const float* a, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? a[i] : 0;
    __syncthreads();
    if (i < n)
        out[i] = tile[2 * threadIdx.x % 64];
}
"""


def totals_of_trace(t):
    """(read sectors, write sectors, read requests, shared passes) of a whole launch."""
    sectors = {"read": 0, "write": 0}
    requests = {"read": 0, "write": 0}
    for row in t.coalescing:
        sectors[row.operation] += row.sectors
        requests[row.operation] += row.requests
    passes = sum(row.wavefronts for row in t.banks)
    return sectors["read"], sectors["write"], requests["read"], passes


@pytest.mark.parametrize("seed", range(4))
def test_three_blocks_count_like_the_whole_launch(seed):
    rng = np.random.default_rng(seed)
    stride, blocks = int(rng.integers(1, 9)), int(rng.integers(4, 12))
    shift = 8 * int(rng.integers(0, 4))
    n = blocks * THREADS
    arrays = np.zeros(n, np.float32), np.zeros(n * stride + shift, np.float32)
    counted = count(Launch(strided, blocks, THREADS, (*arrays, stride, shift))).amounts
    whole = totals_of_trace(trace(strided, blocks, THREADS, *arrays, stride, shift))
    names = "read_sectors", "write_sectors", "read_requests", "shared_passes"
    assert tuple(counted[name] for name in names) == whole


def test_the_last_block_may_be_smaller():
    n = 5 * THREADS - 20
    arrays = np.zeros(n, np.float32), np.zeros(n, np.float32)
    counted = count(Launch(strided, 5, THREADS, (*arrays, 1, 0))).amounts
    whole = totals_of_trace(trace(strided, 5, THREADS, *arrays, 1, 0))
    assert (counted["read_sectors"], counted["write_sectors"]) == whole[:2]


def test_a_launch_of_millions_takes_the_real_grid_and_no_room():
    n = 1 << 30
    counted = count(Launch(strided, n // THREADS, THREADS, (Blank(n), Blank(n), 1, 0)))
    assert counted.amounts["read_sectors"] == n // 8
    assert counted.moved == {"read": 4 * n, "write": 4 * n}


def test_lonely_sectors_move_twice_their_size():
    n = 1 << 20
    counted = count(Launch(strided, n // THREADS, THREADS, (Blank(n), Blank(32 * n), 32, 0)))
    assert counted.moved["read"] == 64 * n


def test_conflicts_are_counted_beside_the_fewest_passes():
    counted = count(Launch(turned, 1, (32, 32), (Blank((32, 32)), Blank((32, 32))))).amounts
    assert counted["shared_passes"] == 32 + 32 * 32
    assert counted["shared_fewest"] == 64
    assert counted["barriers"] == 32  # warps that arrive


def test_arrays_of_the_caller_are_left_alone():
    out, a = np.full(THREADS, 7, np.float32), np.ones(THREADS, np.float32)
    count(Launch(strided, 1, THREADS, (out, a, 1, 0)))
    assert (out == 7).all()


def test_small_sizes_are_carried_on_to_what_the_real_one_counts():
    def make(inner):
        return Launch(
            product, (2, 2), (8, 8), (Blank((16, 16)), Blank((16, inner)), Blank((inner, 16)))
        )

    direct = count(make(160))
    grown = count(make, 160, (32, 64, 96))
    for name in ("read_requests", "read_sectors", "read_lines", "fp32", "integer", "access"):
        assert grown.amounts[name] == pytest.approx(direct.amounts[name], rel=0.02), name
    assert grown.moved == direct.moved


def test_uneven_growth_has_no_estimate():
    def make(size):
        return Launch(jumpy, 1, 32, (Blank(size), Blank(size)))

    with pytest.raises(Unknown, match="does not grow evenly with the size"):
        count(make, 1 << 20, (33, 40, 50))


def test_waiting_for_another_block_has_no_estimate(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_EVENTS", 2000)
    with pytest.raises(Unknown, match="too much to be followed"):
        count(Launch(wait_for, 4, 1, (Blank(1, np.int32),)))


def test_a_grid_wide_barrier_has_no_estimate():
    with pytest.raises(Unknown, match="does not come to its end"):
        count(Launch(all_meet, 4, 32, (Blank(128),)))


@pytest.mark.parametrize("spread", [1, 32])
def test_counters_that_all_blocks_add_to(spread):
    blocks = 1000
    counted = count(Launch(add_to, blocks, THREADS, (Blank(1 << 16, np.int32), spread)))
    adds, elements, dtype = counted.hottest["counters"]
    assert (adds, elements, dtype) == (blocks * THREADS / spread, spread, "int")


def test_counters_of_its_own_for_each():
    blocks = 1000
    n = blocks * THREADS
    counted = count(Launch(add_to, blocks, THREADS, (Blank(n, np.int32), n)))
    adds, elements, _ = counted.hottest["counters"]
    assert (adds, elements) == (1, n)


@without_gpu("CUDA C is traced on the CPU runtime only")
def test_cuda_c_is_counted_as_it_grows(tmp_path):
    cpp_compiler()
    path = tmp_path / "add.cu"
    path.write_text(ADD)
    add = cuda_c.load(path).add

    def make(n):
        return Launch(add, n // THREADS, THREADS, (Blank(n), Blank(n), np.int32(n)))

    n = 1 << 24
    counted = count(make, n, (4 * THREADS, 8 * THREADS, 12 * THREADS))
    blocks = n // THREADS
    assert counted.moved == {"read": 4 * n, "write": 4 * n}
    assert counted.amounts["read_sectors"] == counted.amounts["write_sectors"] == n // 8
    assert counted.amounts["shared_passes"] == blocks * (2 + 2 * 2)  # two ways when read
    assert counted.amounts["barriers"] == 2 * blocks
    assert counted.waits["barriers"] == 1


@pytest.mark.parametrize(
    "line, what",
    [
        ("nvcuda::wmma::mma_sync(c, a, b, c);", "tensor cores"),
        ('asm volatile("mma.sync.aligned.m16n8k8.row.col.f32" :);', "tensor cores"),
        ('asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :);', "asynchronous copies"),
        ("__pipeline_commit();", "asynchronous copies"),
        ("cooperative_groups::memcpy_async(block, to, from, 64);", "asynchronous copies"),
        ("// no wmma, no cp.async", None),
        ("float gamma_sync = 0;", None),
    ],
)
def test_what_the_model_has_no_term_for_is_refused_by_its_name(tmp_path, line, what):
    (tmp_path / "part.cuh").write_text(f"__device__ void part() {{ {line} }}\n")
    path = tmp_path / "k.cu"
    path.write_text('#include "part.cuh"\n__global__ void k(float* a) { part(); }\n')
    found = [
        name
        for name, words in sampling.NOT_MODELLED.items()
        if words.search(sampling.text_of(path))
    ]
    assert found == ([what] if what else [])


@without_gpu("CUDA C is traced on the CPU runtime only")
def test_a_kernel_of_tensor_cores_has_no_estimate(tmp_path):
    cpp_compiler()
    path = tmp_path / "copy.cu"
    path.write_text(
        "__global__ void copy(float* c, const float* a) { c[threadIdx.x] = a[threadIdx.x]; }\n"
    )
    kernel = cuda_c.load(path).copy
    path.write_text(
        path.read_text() + "// ...\n__device__ void f() { wmma::mma_sync(c, a, b, c); }\n"
    )
    with pytest.raises(Unknown, match="copy.cu uses tensor cores, for which the model has no term"):
        count(lambda n: Launch(kernel, n, 32, (Blank(32), Blank(32))), 64, (1, 2, 3))
