"""CUDA C kernels are traced as their twins in Numba are."""

import numpy as np
import pytest
from numba import cuda

from tests.needs import cpp_compiler, without_gpu
from utils import cuda_c
from utils.tracer import TooManyEvents, trace
from utils.tracer.film import Film

pytestmark = without_gpu("CUDA C is traced on the CPU runtime")

SOURCE = """
__global__ void transpose(float* out, const float* a, int n) {
    __shared__ float tile[32][32];
    int x = 32 * blockIdx.x, y = 32 * blockIdx.y;
    int tx = threadIdx.x, ty = threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[ty + j][tx] = a[(y + ty + j) * n + x + tx];
    __syncthreads();
    for (int j = 0; j < 32; j += 8)
        out[(x + ty + j) * n + y + tx] = tile[tx][ty + j];
}
__global__ void hasty(float* out, const float* a) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = a[t];
    out[t] = tile[63 - t];
}
__global__ void count(int* counts, const int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&counts[values[i]], 1);
}
__global__ void in_warp(int* out) {
    __shared__ int tile[32];
    int t = threadIdx.x;
    tile[t] = t;
    __syncwarp();
    out[t] = tile[31 - t];
}
"""


@cuda.jit
def transpose(out, a, n):
    tile = cuda.shared.array((32, 32), np.float32)
    x = 32 * cuda.blockIdx.x
    y = 32 * cuda.blockIdx.y
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    for j in range(0, 32, 8):
        tile[ty + j, tx] = a[(y + ty + j) * n + x + tx]
    cuda.syncthreads()
    for j in range(0, 32, 8):
        out[(x + ty + j) * n + y + tx] = tile[tx, ty + j]


@cuda.jit
def hasty(out, a):
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    tile[t] = a[t]
    out[t] = tile[63 - t]


@cuda.jit
def count(counts, values, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(counts, values[i], 1)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    cpp_compiler()
    file = tmp_path_factory.mktemp("traced") / "kernels.cu"
    file.write_text(SOURCE)
    return cuda_c.load(file)


numbers = np.arange(64, dtype=np.float32)
square = np.arange(64 * 64, dtype=np.float32)
values = (np.arange(100) ** 2 % 16).astype(np.int32)
LAUNCHES = {
    "transpose": (transpose, (2, 2), (32, 8), (np.zeros_like(square), square, 64)),
    "hasty": (hasty, 1, 64, (np.zeros_like(numbers), numbers)),
    "count": (count, 2, 64, (np.zeros(16, np.int32), values, 100)),
}


def in_numbers(rows, *fields):
    """What the report counts, without lines."""
    return sorted(
        (row.array, getattr(row, "operation", ""), *(getattr(row, f) for f in fields))
        for row in rows
    )


@pytest.fixture(scope="module", params=LAUNCHES)
def twins(kernels, request):
    """(trace of the CUDA C kernel, of the Numba kernel)."""
    twin, grid, block, arguments = LAUNCHES[request.param]
    kernel = getattr(kernels, request.param)
    return trace(kernel, grid, block, *arguments), trace(twin, grid, block, *arguments)


def test_the_counts_are_those_of_the_twin(twins):
    c, numba = twins
    for rows, fields in (
        ("coalescing", ("requests", "accesses", "sectors", "fewest", "cache_lines")),
        ("banks", ("requests", "accesses", "ways", "wavefronts", "fewest")),
        ("contention", ("requests", "accesses", "lanes")),
    ):
        both = [in_numbers(getattr(t, rows), *fields) for t in twins]
        assert both[0] == both[1]
    assert len(c.races) == len(numba.races)
    assert [race.elements for race in c.races] == [race.elements for race in numba.races]


def test_its_film_makes_the_accesses_of_the_twin(twins):
    films = [Film(t) for t in twins]
    accesses = [[s for s in f.data["steps"] if "a" in s] for f in films]
    kinds = [[(s["k"], s["w"], s["m"], s["p"]) for s in steps] for steps in accesses]
    if films[0].race is None:
        assert sorted(map(str, kinds[0])) == sorted(map(str, kinds[1]))
    ends = [film.data["steps"][-1]["c"][1:] for film in films]
    assert ends[0] == ends[1] or films[0].race is not None


def test_it_works_on_copies_and_gives_results(kernels):
    out = np.zeros_like(square)
    t = trace(kernels.transpose, (2, 2), (32, 8), out, square, 64)
    assert not out.any()
    right = square.reshape(64, 64).T.ravel()
    assert np.array_equal(t.results["out"], right)


def test_a_race_is_found_named_and_filmed(kernels):
    t = trace(kernels.hasty, 1, 64, np.zeros_like(numbers), numbers)
    assert t.races[0].array == "tile"
    film = Film(t)
    assert "RACE: thread" in film.describe(film.data["stop"])
    assert "has not written yet" in film.describe(film.data["stop"])


def test_lines_and_values_are_those_of_the_source(kernels):
    t = trace(kernels.hasty, 1, 64, np.zeros_like(numbers), numbers)
    film = Film(t)
    first = next(s for s in film.data["steps"] if s["k"] == "read")
    assert film.data["source"][first["r"]][1].strip() == "tile[t] = a[t];"
    assert first["v"] == {"from": 0, "by": 1}


def test_lanes_that_meet_do_not_race(kernels):
    t = trace(kernels.in_warp, 1, 32, np.zeros(32, np.int32))
    assert not t.races and t.error is None


def test_the_report_says_what_it_does_not_see(kernels):
    t = trace(kernels.count, 2, 64, np.zeros(16, np.int32), values, 100)
    assert "no statements and no branches" in str(t)
    assert "lanes of a warp wait for one element" in str(t)


def test_too_many_events_are_said(kernels):
    with pytest.raises(TooManyEvents, match="after 50 events"):
        trace(kernels.transpose, (2, 2), (32, 8), square.copy(), square, 64, limit=50)
