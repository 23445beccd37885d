"""What the player draws at each step is what the tracer recorded: of 20 kernels in three languages.

Five of them race, three copy without waiting.
"""

import numpy as np
import pytest

from course.checking import engines
from course.checking.films import LANES, tensor_of
from course.checking.trials import cases
from course.exercises import EXERCISES
from tests.needs import cpp_compiler
from utils import cuda_c, has_gpu
from utils.cpu import numba_cuda
from utils.tracer import trace
from utils.tracer.film_order import BARRIERS, STUCK
from utils.tracer.record import ACCESSES, ATOMIC

MOST = 60  # steps of each film
RIGHT = (
    "first_kernels.scale_guard",
    "first_kernels.max_pool",
    "memory.rotate_tile",
    "synchronization.rotate_left",
    "synchronization.count",
    "reductions.any_block",
    "reductions.scan",
    "fusion.add_norm",
    "fourier.exchange",
)
RACES = (
    "synchronization.rotate_left",
    "reductions.scan",
    "matmul.tile",
    "fourier.exchange",
    "fusion.add_norm",
)
TRITON = "triton.blend", "triton.log_sum"
CUDA_C = """
#include <cuda_pipeline.h>
#include <cuda/barrier>
#include <cuda/pipeline>

__global__ void turned(float* out, const float* a) {
    __shared__ float tile[64];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[(2 * threadIdx.x) % 64];
}
__global__ void staged(float* out, const float* a) {  // cp.async, in groups
    __shared__ float tile[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[0][t], &a[t], 4);
    __pipeline_commit();
    for (int k = 0; k < 3; ++k) {
        if (k < 2) __pipeline_memcpy_async(&tile[(k + 1) & 1][t], &a[64 * (k + 1) + t], 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[64 * k + t] = tile[k & 1][63 - t];
        __syncthreads();
    }
}
__global__ void piped(float* out, const float* a) {  // cuda::pipeline
    __shared__ float tile[64];
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[threadIdx.x], &a[threadIdx.x], sizeof(float), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
    pipe.consumer_release();
}
__global__ void awaited(float* out, const float* a) {  // the copy engine and an mbarrier
    __shared__ alignas(16) float tile[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
    if (threadIdx.x == 0)
        init(&arrived, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0)
        cuda::memcpy_async(tile, a, cuda::aligned_size_t<16>(sizeof(tile)), arrived);
    arrived.arrive_and_wait();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
"""
#: Every step, one after the other, as the player has drawn it: asked of the page at once
ALL = """async ([box, most]) => {
    const scrub = box.querySelector("input[type=range]");
    const steps = [];
    for (let step = 0; step < Math.min(most, +scrub.max + 1); step++) {
        scrub.value = step;
        scrub.dispatchEvent(new Event("input"));
        const line = box.querySelector("li[aria-current]").querySelector("i").textContent;
        const said = box.querySelector("[role=status]").textContent;
        steps.push({...box.drawn[0], line: +line, said});
    }
    return steps;
}"""


def smallest(exercise):
    """(launch, arrays) of the smallest case of more than one thread."""
    tried = [case for case in cases(exercise, 3) if np.prod(case[1].threads) > 1]
    _, launch, arguments, expected = min(tried, key=lambda case: np.prod(case[1].threads))
    return launch, engines.host_arrays(arguments, expected, np.random.default_rng(3))


def of_numba(name, answer, seed=None):
    """The trace of an answer in the exercise's smallest case; seed: an order of its threads."""
    launch, arrays = smallest(EXERCISES[name])
    with numba_cuda.schedule(seed):
        return trace(answer, launch.grid, launch.block, *arrays.values())


def of_triton(name):
    exercise = EXERCISES[name]
    rng = np.random.default_rng(3)
    shape, block = exercise.shapes[-1], exercise.blocks[0]
    given = [tensor_of(value) for value in exercise.inputs(rng, shape).values()]
    return trace(exercise.solution, exercise.grid(shape, block), LANES, *given, block)


@pytest.fixture(scope="module")
def in_cuda_c(tmp_path_factory):
    """The kernels of the text above."""
    cpp_compiler()
    if has_gpu():
        pytest.skip("CUDA C is traced where no GPU is")
    file = tmp_path_factory.mktemp("kernels") / "kernels.cu"
    file.write_text(CUDA_C)
    return cuda_c.load(str(file))


def expected(film, number):
    """What a picture of a step must show, from the record alone."""
    step, events = film.all_steps[number], film.events
    own = list(step.events)
    lanes = sorted(events.lane[own].tolist())
    shown = {"said": film.describe(number), "line": film.trace.source[film.row_of(step)][1]}
    if step.kind in (*BARRIERS, STUCK):
        return shown
    shown["lit"] = lanes
    if step.kind in ACCESSES:
        memory = events.memory_of(own[0])
        cells = {
            np.ravel_multi_index(memory.index(int(events.offset[i])), memory.shape) for i in own
        }
        shown["now"] = cells
        if memory.space == "global" and step.kind != ATOMIC:
            shown["sectors"] = step.sectors
        elif memory.space == "shared" and events.size[own[0]] <= 4 and step.kind != ATOMIC:
            shown["passes"] = step.passes
    return shown


def assert_drawn(page, tmp_path, traced):
    """The picture at every step, as the browser has drawn it, is the record's."""
    player = traced.play(most=2_000)
    film = player.films[0]
    page.goto(player.share(tmp_path / "film.html").as_uri())
    page.locator(".film").wait_for()
    page.wait_for_function(
        "document.querySelector('.kernel-film').shadowRoot.querySelector('.film').drawn"
    )
    box = page.evaluate_handle(
        "document.querySelector('.kernel-film').shadowRoot.querySelector('.film')"
    )
    steps = page.evaluate(ALL, [box, MOST])
    assert len(steps) == min(MOST, len(film))
    arrays = film.data["arrays"]
    for number, drawn in enumerate(steps):
        for name, value in expected(film, number).items():
            found = drawn[name]
            if name == "lit":
                found = sorted(found)
            if name == "now":
                shown = np.prod([array["shape"] for array in arrays][found[0][0]]) if found else 0
                found = {cell for _, cell in found}
                value = {cell for cell in value if cell < shown}
                assert found <= value and (found or not value), (number, name)
                continue
            assert found == value, (number, name, film.describe(number))
    return film


OTHERS = pytest.mark.nightly("by day one in each language, and one that races")
BY_DAY = "memory.rotate_tile", "reductions.scan", "triton.blend", "staged"


def one_by_day(names):
    """pytest.param(name) of each, marked but for one."""
    by_day = next(name for name in names if name in BY_DAY)
    return [pytest.param(name, marks=[] if name == by_day else [OTHERS]) for name in names]


@pytest.mark.parametrize("name", one_by_day(RIGHT))
def test_a_right_kernel_is_drawn_as_recorded(page, tmp_path, name):
    film = assert_drawn(page, tmp_path, of_numba(name, EXERCISES[name].solution))
    assert film.stop is None


@pytest.mark.parametrize("name", one_by_day(RACES))
def test_a_race_is_drawn_as_recorded(page, tmp_path, name):
    wrong = next(wrong for wrong in EXERCISES[name].wrong if wrong.reason == "race")
    film = assert_drawn(page, tmp_path, of_numba(name, wrong.answer, seed=1))
    assert "RACE" in film.describe(film.numbers.index(film.stop))


@pytest.mark.parametrize("name", one_by_day(TRITON))
def test_a_triton_kernel_is_drawn_as_recorded(page, tmp_path, name):
    if has_gpu():
        pytest.skip("Triton is traced where no GPU is")
    assert assert_drawn(page, tmp_path, of_triton(name)).trace.unit == "program"


@pytest.mark.parametrize("name", one_by_day(["turned", "staged", "piped", "awaited"]))
def test_a_cuda_c_kernel_is_drawn_as_recorded(page, tmp_path, in_cuda_c, name):
    a = np.arange(192, dtype=np.float32)
    traced = trace(getattr(in_cuda_c, name), 1, 64, np.zeros_like(a), a)
    film = assert_drawn(page, tmp_path, traced)
    assert film.stop is None
    told = " ".join(map(film.describe, range(len(film))))
    assert ("begin" in told and "has arrived" in told) == (name != "turned")
