"""The pictures of the chapter on tensor cores: what they count is right."""

import numpy as np
import pytest

from course.kernels.matmul.tensor import KERNELS
from course.pictures import tensor_cores as pictures
from course.pictures.shapes import grouped_order
from utils.tools import source


def test_tiles_have_the_sizes_of_the_kernel():
    sizes = source.constants(KERNELS / "wmma.cu")
    alt = pictures.tiles(sizes, (16, 16), "wmma").alt
    assert "128 × 128, 8 warps of 64 × 32, in products of 16 × 16" in alt


@pytest.mark.parametrize("pitch, passes", [(128, 8), (144, 1), (64, 4), (512, 8), (80, 1)])
def test_rows_in_banks(pitch, passes):
    plural = "pass" if passes == 1 else "passes"
    alt = pictures.rows_in_banks((pitch,)).alt
    assert alt.endswith(f"rows {pitch} bytes apart: {passes} {plural}")


def test_a_step_is_multiplied_after_it_arrived_and_after_the_one_before():
    timeline = pictures.schedule(12, 3, copy=1700, multiply=1024)
    for before, step in zip(timeline, timeline[1:], strict=False):
        assert step.begun == max(step.arrived, before.ended)
    for earlier, later in zip(timeline, timeline[3:], strict=False):
        assert earlier.slot == later.slot
        assert later.asked == earlier.ended  # a slot is free once its step has been multiplied


def test_a_phase_ends_with_the_bytes_and_the_parity_takes_turns():
    drawn = pictures.phases(steps=3).svg()
    at = [drawn.index(f"phase {n}: parity {n % 2}") for n in range(3)]
    assert at == sorted(at)
    assert drawn.count("arrival") == drawn.count(">multiply<") == 3
    assert drawn.count(">wait for 0<") == 2 and drawn.count(">wait for 1<") == 1


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_the_long_run_is_what_the_formula_says(stages):
    timeline = pictures.schedule(400, stages, copy=1658, multiply=1024)
    a_step = (timeline[-1].ended - timeline[99].ended) / 300
    assert a_step == pytest.approx(pictures.cycles_a_step(stages, 1658, 1024), rel=0.01)


def test_tile_numbers_go_down_a_group_first():
    """Every tile once; the last group may be lower."""
    number = grouped_order(5, 3, 2)
    assert number[:, 0].tolist() == [0, 1, 6, 7, 12]
    assert sorted(number.ravel()) == list(range(15))


def test_what_a_patch_wants():
    assert pictures.wanted(32, 16, 1, 132) == (9, 16)
    assert pictures.wanted(64, 32, 16, 132) == (16, 9)


def test_hands_name_the_lanes_and_sums_that_are_not_zero():
    gets = np.zeros((32, 4))
    gets[4, :2] = 1
    gets[31, 3] = 2
    alt = pictures.hands(gets, 6).alt
    assert alt == "Lane 6 gives a one. Sums that are not 0: lane 4: 0 and 1; lane 31: 3"
    assert pictures.hands(0 * gets, 6).alt.endswith("none")


def test_each_way_leads_from_memory_to_the_tensor_core():
    for hops in pictures.WAYS.values():
        starts, ends = [hop[0] for hop in hops], [hop[1] for hop in hops]
        assert starts == [0, *ends[:-1]] and pictures.STOPS[ends[-1]] == "tensor core"
    alt = pictures.ways().alt
    assert "wmma: twice" in alt and "mma.sync: once" in alt and "wgmma: never" in alt


def test_a_block_of_a_cluster_asks_for_two_pieces_and_gets_three():
    for block in range(2):
        asks = [name for name, asks, *_ in pictures.PIECES if asks == block]
        gets = [name for name, *_, goals in pictures.PIECES for x in goals if x // 370 == block]
        assert len(asks) == 2 and len(gets) == 3 and set(asks) < set(gets)


def test_every_picture_is_drawn_and_says_what_it_shows():
    lanes = np.arange(128).reshape(16, 8) % 32
    for figure in (
        pictures.number_formats(),
        pictures.owners(lanes, "lanes"),
        pictures.ldmatrix(),
        pictures.warp_group(),
        pictures.swizzle(),
        pictures.descriptor(),
        pictures.ring(4, 1658, 1024),
        pictures.tile_order(8, 8, (1, 4), 12),
    ):
        assert len(figure.alt) > 20
        assert figure._repr_mimebundle_()["text/html"]
    for drawing in (pictures.hands(lanes.reshape(32, 4), 6), pictures.ways(), pictures.cluster()):
        assert len(drawing.alt) > 20
        assert "<svg" in drawing.svg()
