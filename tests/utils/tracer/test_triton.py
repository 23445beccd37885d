"""A Triton kernel is traced as its interpreter runs it: programs, elements dealt to lanes."""

import pytest
import torch
import triton
import triton.language as tl

from utils import has_gpu
from utils.tracer import TraceError, trace

pytestmark = pytest.mark.skipif(has_gpu(), reason="Triton is traced where no GPU is")


@triton.jit
def strided(out, x, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i * STEP, mask=i < n, other=0)
    tl.store(out + i, 2 * values, mask=i < n)


@triton.jit
def shifted(a, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n - 1
    tl.store(a + i, tl.load(a + i + 1, mask=inside, other=0), mask=inside)


@triton.jit
def counted(total, x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + i), 0))


@triton.jit
def too_far(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0))


def floats(count):
    return torch.arange(float(count))


@pytest.mark.parametrize("step", [1, 4])
def test_sectors_are_those_of_the_addresses(step):
    traced = trace(strided, 2, 32, torch.zeros(100), floats(400), 100, STEP=step, BLOCK=64)
    assert traced.sectors("x") == sum(
        len({i * step // 8 for i in range(k, min(k + 32, 100))}) for k in range(0, 100, 32)
    )
    assert traced.sectors("out", "write") == 13
    assert (traced.results["out"] == 2 * step * floats(100).numpy()).all()
    assert not traced.problems


def test_an_operation_is_over_before_the_next_begins_and_programs_race():
    alone = trace(shifted, 1, 32, floats(64), 64, BLOCK=64)
    assert not alone.races
    (race, *_) = trace(shifted, 2, 32, floats(100), 100, BLOCK=64).races
    assert race.between_blocks and not race.within_blocks
    assert race.element == "a[64]"


def test_a_films_steps_are_passes_over_the_lanes():
    film = trace(strided, 2, 32, torch.zeros(100), floats(100), 100, STEP=1, BLOCK=64).play()
    (film,) = film.films
    assert len(film) == 2 * (2 + 2)
    assert "all 32 lanes read x[0] … x[31]: 4 sectors" in film.describe(0)
    assert film.describe(1).startswith("Program 1")
    assert "4 of 32 lanes write out[96] … out[99]" in film.describe(7)


def test_atomic_additions_do_not_race():
    traced = trace(counted, 4, 32, torch.zeros(1), floats(128), BLOCK=32)
    assert not traced.races and traced.results["total"][0] == 127 * 64


def test_what_leaves_its_tensor_is_named_and_stops_the_film():
    traced = trace(too_far, 2, 32, torch.zeros(50), floats(50), 50, BLOCK=32)
    (row,) = traced.mistakes
    assert (row.what, row.array, row.indices[0]) == ("outside", "out", (50,))
    film = traced.play().films[0]
    assert "OUTSIDE" in film.describe(film.numbers.index(film.stop))


def test_a_numba_launch_has_no_named_arguments():
    from numba import cuda

    @cuda.jit
    def nothing(a):
        pass

    with pytest.raises(TraceError, match="BLOCK"):
        trace(nothing, 1, 32, floats(1).numpy(), BLOCK=3)
