"""Trees, scans and look-back are drawn as the kernels add, and nothing twice; the ring, the
photograph and the recorded lines say it all.
"""

import html
import itertools
import re
from functools import partial

import numpy as np
import pytest

from course.kernels.reductions import photo, sum_ladder
from course.pictures import reductions
from utils.tracer import trace

DIGITS = [3, 1, 4, 1, 5, 9, 2, 6]


def texts(fig):
    return [text.get_text() for text in fig.axes[0].texts]


@pytest.mark.parametrize("way", ["divergent", "conflicts", "sequential"])
def test_a_tree_is_drawn_as_its_kernel_adds(way):
    threads = sum_ladder.THREADS
    x, sums = np.ones(threads, np.float32), np.zeros(1, np.float32)
    events = trace(getattr(sum_ladder, f"sum_{way}"), 1, threads, x, sums).events
    for barriers, added in enumerate(reductions.additions(way, threads), 1):
        now = [i for i in events.accesses("shared") if events.epoch[i] == barriers]
        read = {(events.thread[i], events.offset[i] // 4) for i in now}
        drawn = {(thread, place) for thread, *places in added for place in places}
        assert read - {(0, 0)} == drawn - {(0, 0)}  # thread 0 reads the result at last


@pytest.mark.parametrize("way", ["divergent", "conflicts", "sequential"])
def test_a_tree_says_its_sum_and_who_adds(way):
    picture = reductions.tree(way, DIGITS)
    assert f"become one, {sum(DIGITS)}." in picture.alt
    t, place, other = reductions.additions(way, len(DIGITS))[0][-1]
    assert f"thread {t} places {place} and {other}; round 2" in picture.alt
    adders = [thread for added in reductions.additions(way, len(DIGITS)) for thread, *_ in added]
    assert [f"thread {t}<" in picture.svg() for t in range(8)] == [t in adders for t in range(8)]
    assert picture.svg().count("<polygon") == 2 * (len(DIGITS) - 1)


def test_everybody_adds_until_all_have_their_running_sum():
    picture = reductions.hillis_steele(DIGITS)
    assert "running sums, 3 4 8 9 14 23 25 31, in 3 rounds" in picture.alt
    assert picture.svg().count("<polygon") == 7 + 6 + 4


def test_the_tree_down_leaves_what_lies_before():
    picture = reductions.blelloch(DIGITS)
    assert picture.alt.endswith("before each: 0 3 4 8 9 14 23 25.")
    assert picture.svg().count("<polygon") == 7 + 3 * 7


def test_a_tree_is_shown_round_by_round():
    """What is shown of two rounds is what is shown of all, less what comes later."""
    for draw in (partial(reductions.tree, "sequential"), reductions.hillis_steele):
        arrows = [draw(DIGITS, shown).svg().count("<polygon") for shown in range(4)]
        assert arrows[0] == 0 and arrows == sorted(arrows)
        assert draw(DIGITS, 3).svg() == draw(DIGITS).svg()
        assert draw(DIGITS, 1).alt.endswith("Shown after round 1.")
    assert reductions.blelloch(DIGITS, 7).svg() == reductions.blelloch(DIGITS).svg()


def test_a_kept_value_goes_to_its_running_sum_less_one():
    picture = reductions.compact(DIGITS, lambda value: value > 3)
    assert "are kept 4 5 9 6; their running sums, 0 0 1 1 2 3 3 4" in picture.alt
    assert picture.svg().count("<polygon") == 4


@pytest.mark.parametrize("stages", range(reductions.FEWEST, reductions.MOST + 1))
def test_a_ring_never_holds_more_tiles_than_it_has_stages(stages):
    pieces = reductions.ring_schedule(stages)
    begin = {(job, tile): start for job, tile, start, _ in pieces}
    end = {(job, tile): stop for job, tile, _, stop in pieces}
    jobs = list(reductions.JOBS)
    for tile in {tile for _, tile in begin}:
        for before, after in itertools.pairwise(jobs):
            assert end[before, tile] <= begin[after, tile]
        if ("load", tile + stages) in begin:
            assert end["store", tile] <= begin["load", tile + stages]
    for who in {job[0] for job in reductions.JOBS.values()}:
        theirs = sorted(piece[2:] for piece in pieces if reductions.JOBS[piece[0]][0] == who)
        assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(theirs))


def test_the_rings_picture_says_what_each_job_waits_for():
    few, many = reductions.ring(3), reductions.ring(6)
    for who, what, wait, _ in reductions.JOBS.values():
        assert f"the {who} {what} (waits for: {wait})" in few.alt
        assert html.escape(f"waits for: {wait}") in few.svg()
    busy = [float(re.search(r"busy (\d+)%", picture.alt)[1]) for picture in (few, many)]
    assert busy[0] < busy[1]


def test_a_recorded_speed_up_is_said_with_its_gpu_and_day(capsys):
    entry = {"name": "scan/2^22/speedup_over_cub", "value": 1.256, "gpu": "NVIDIA H200"}
    reductions.beside({**entry, "date": "2026-01-31T12:00:00Z"})
    assert capsys.readouterr().out == (
        "scan/2^22        1.26 times CUB's speed (NVIDIA H200, 2026-01-31)\n"
    )
    reductions.beside(None)
    assert capsys.readouterr().out == ""


def test_a_prefix_is_published_when_all_before_have_told_something():
    """Against the rule itself, at each moment: who publishes a prefix has seen enough."""
    last = max(reductions.ARRIVALS) + 1
    before = reductions.published(-1)
    for moment in range(last + 1):
        now = reductions.published(moment)
        for tile, what in enumerate(now):
            began = reductions.ARRIVALS[tile] <= moment
            assert bool(what) == began
            sees = reductions.nearest_prefix(before, tile) is not None
            assert (what == "prefix") == (before[tile] == "prefix" or before[tile] != "" and sees)
        before = now
    assert set(before) == {"prefix"}


def test_looking_back_ends_at_a_prefix_or_waits():
    assert reductions.nearest_prefix(["prefix", "sum", "sum"], 3) == 0
    assert reductions.nearest_prefix(["sum", "sum"], 2) == -1
    assert reductions.nearest_prefix(["prefix", "", "sum"], 3) is None


def test_the_arriving_blocks_are_drawn():
    picture = reductions.arriving(4)
    assert "tile 4 nothing, tile 5 sum" in picture.alt
    assert "waits for 4" in texts(picture)


def test_the_photograph_says_what_can_be_seen():
    whole, mixed = photo.sent(16), photo.received(16)
    right = int((whole == mixed).sum())
    shown = [reductions.photograph(packets) for packets in (whole, mixed, 0 * whole)]
    assert [picture.alt for picture in shown] == [
        "16 × 16 pixels: a planet with a ring, among stars. 256 of them are where they belong.",
        f"16 × 16 pixels: bright and dark, mixed. {right} of them are where they belong.",
        "16 × 16 pixels: all black. 0 of them are where they belong.",
    ]
    (drawn,) = shown[0].axes[0].images
    np.testing.assert_array_equal(drawn.get_array(), photo.taken(16))
