"""The diagrams show the counts and sizes that their facts say."""

import re
from collections import Counter

import pytest

from course.pictures import diagrams
from utils.occupancy import limits

SIZES = {
    "registers": 8 << 20,
    "shared memory": 4 << 20,
    "L2 cache": 6 << 20,
    "global memory": 16 * 10**9,
}
SMALL = diagrams.Facts("a GPU made up for this test", 40, (7, 5), SIZES)


def boxes(sheet, colour):
    """How many boxes have this colour."""
    return sheet.svg().count(f"fill:{colour}")


def words(sheet):
    """All text of a picture."""
    return " · ".join(re.findall(r">([^<>]+)</text>", sheet.svg()))


def test_every_sm_of_the_gpu_is_drawn():
    sheet = diagrams.gpu(SMALL)
    assert boxes(sheet, diagrams.YELLOW) + boxes(sheet, diagrams.ORANGE) == 40
    assert "40 SMs" in words(sheet) and "6 MiB" in words(sheet) and "16 GB" in words(sheet)
    assert SMALL.whose in words(sheet) and SMALL.whose in sheet.alt


def test_an_sm_has_the_lanes_and_places_of_its_capability():
    sheet = diagrams.sm(SMALL)
    assert boxes(sheet, diagrams.YELLOW) == 64  # fp32 lanes of Turing
    assert boxes(sheet, diagrams.FAINT) == limits((7, 5)).warps
    assert "L1 cache and shared memory, up to 102 KiB shared" in words(sheet)


def test_memories_stand_from_near_to_far_with_their_sizes():
    text = words(diagrams.hierarchy(SMALL))
    places = [text.index(size) for size in ("8 MiB", "4 MiB", "6 MiB", "16 GB")]
    assert places == sorted(places)


def test_without_a_gpu_a_data_sheet_is_named():
    this = diagrams.facts()
    assert "data sheet" in this.whose or "driver" in this.whose
    assert f"{this.sms} SMs" in diagrams.gpu().alt


@pytest.mark.parametrize(
    "blocks, sms, at_once, turns", [(20, 4, 2, 3), (16, 4, 2, 2), (1, 3, 1, 1)]
)
def test_each_block_runs_once_and_turns_are_counted(blocks, sms, at_once, turns):
    sheet = diagrams.grid_on_sms(blocks, sms, at_once)
    numbers = [int(word) for word in words(sheet).split(" · ") if word.isdigit()]
    assert sorted(numbers) == list(range(blocks))
    assert boxes(sheet, diagrams.FAINT) == turns * sms * at_once - blocks
    assert f"{turns} " in sheet.alt


def test_more_sms_than_anybody_could_read_are_refused():
    with pytest.raises(ValueError, match="too many to draw"):
        diagrams.grid_on_sms(100, 132)


@pytest.mark.parametrize("at_once", range(1, 7))
def test_a_blocks_warps_do_all_that_a_warp_does_and_one_issues_at_a_time(at_once):
    blocks = 6
    told = diagrams.lives(at_once, blocks)
    done = Counter(what for *_, what, _ in told if what in diagrams.INSTRUCTIONS)
    each = Counter(what for what in diagrams.LIFE if what in diagrams.INSTRUCTIONS)
    assert done == {what: n * blocks * diagrams.WARPS for what, n in each.items()}
    issued = [cycle for *_, what, cycle in told if what in diagrams.INSTRUCTIONS]
    assert len(issued) == len(set(issued))
    cycles = {}
    for place, block, *_, cycle in told:
        cycles.setdefault((place, cycle), set()).add(block)
        assert place < at_once
    assert all(len(there) == 1 for there in cycles.values()), "a place has one block at a time"


def test_more_blocks_at_once_hide_more_of_the_waiting():
    lengths = [max(cycle for *_, cycle in diagrams.lives(n, 6)) for n in (1, 2, 3, 6)]
    assert lengths == sorted(set(lengths), reverse=True)
    sheet = diagrams.block_lives(2)
    assert f"after {lengths[1] + 1} cycles" in sheet.alt
    assert all(f"block {block}" in words(sheet) for block in range(6))


def test_host_and_device_names_the_three_steps():
    assert all(step in words(diagrams.host_and_device()) for step in diagrams.STEPS)


def test_every_thread_of_a_grid_has_its_place_and_index():
    sheet = diagrams.places([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 2, 3])
    drawn = words(sheet).split(" · ")
    assert [drawn.count(name) for name in ("block 0", "block 1")] == [1, 1]
    assert [drawn.count(str(number)) for number in range(4)] == [3, 3, 1, 1]
    assert "from 0 to 3" in sheet.alt


def test_as_many_sms_are_coloured_as_have_a_block():
    sheet = diagrams.with_work({"few": 3, "many": 50}, sms=40)
    assert "Of 40 SMs have a block: few: 3; many: 40." in sheet.alt
    drawn = re.findall(r'<path d="([^"]*)" style="fill:([^"]*)"', sheet.svg())
    counts = [(path.count("z"), colour == diagrams.ORANGE) for path, colour in drawn]
    assert counts == [(3, True), (37, False), (40, True)]


def test_an_error_is_told_after_the_launch_was_said_to_be_fine():
    drawn = words(diagrams.late_error())
    assert "no error" in drawn and "illegal memory access" in drawn
    asked = drawn.index("cudaGetLastError()"), drawn.index("cudaDeviceSynchronize()")
    assert asked == tuple(sorted(asked))


def test_every_allowed_call_has_an_arrow():
    sheet = diagrams.who_calls_whom()
    assert "__host__ calls __global__ (<<< >>>)" in sheet.alt
    assert sheet.svg().count("<polygon") == len(diagrams.CALLS) + 3  # and to what is on both sides


def test_a_drivers_own_machine_code_is_made_from_ptx():
    sheet = diagrams.from_c_to_chip(SMALL)
    assert "SASS for sm_75" in sheet.alt and "SASS for sm_75" in sheet.svg()


def test_an_array_is_in_registers_or_far_away():
    sheet = diagrams.local_memory(SMALL)
    for number in range(diagrams.NUMBERS):
        assert f">r{number}<" in sheet.svg() and f">{number}<" in sheet.svg()
    assert f"{4 * diagrams.NUMBERS} bytes of local memory" in sheet.alt


def test_a_road_is_as_wide_as_it_is_fast():
    card, module = {"bandwidth_gb_s": 1200}, {"bandwidth_gb_s": 3000}
    sheet = diagrams.roads(card, module, pcie=60, nvlink=480)
    assert "3,000 GB/s to its own memory, 480 GB/s over NVLink" in sheet.alt
    road = rf'<rect [^>]*width="([^"]*)" height="([^"]*)" style="fill:{re.escape(diagrams.ARROW)}"'
    sizes = [tuple(map(float, size)) for size in re.findall(road, sheet.svg())]
    each = {(8, 44), (1, 44), (diagrams.BETWEEN_THEM, 50)}
    assert set(sizes[:3]) == {(0, 44), (1, 44), (diagrams.BETWEEN_THEM, 20)}  # the card's
    assert sizes[3:] and set(sizes[3:]) == each
