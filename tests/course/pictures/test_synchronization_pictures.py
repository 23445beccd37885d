"""What Synchronization prints of a launch: on a GPU measured, without one recorded."""

import pytest
from numba import cuda

from course.pictures import synchronization
from utils import results


def test_without_a_gpu_a_recorded_launch_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(synchronization, "has_gpu", lambda: False)
    entry = {"value": 0.5, "gpu": "NVIDIA X"}
    monkeypatch.setattr(results, "find", lambda name: entry)
    synchronization.launch_cost(lambda: pytest.fail("nothing is launched"))
    assert "on NVIDIA X PyTorch took 2.5 µs for each of 200 tiny kernels" in capsys.readouterr().out


def test_launches_are_counted(monkeypatch, capsys):
    launched = []
    monkeypatch.setattr(synchronization, "has_gpu", lambda: True)
    monkeypatch.setattr(cuda, "synchronize", lambda: launched.append("wait"))
    ticks = iter([1.0, 1.002, 1.005])
    monkeypatch.setattr(synchronization.time, "perf_counter", lambda: next(ticks))
    synchronization.launch_cost(lambda: launched.append("launch"), launches=100)
    assert launched == ["wait", *["launch"] * 100, "wait"]
    assert "20.00 µs to queue, 50.00 µs in all" in capsys.readouterr().out


def test_the_tree_of_shuffles_follows_the_lanes_that_count():
    sheet = synchronization.shuffle_tree([[1, 2, 3, 4], [4, 6, 6, 8], [10, 12, 12, 16]])
    drawn = sheet.svg()
    assert drawn.count("<polygon") == 2 + 1  # arrows
    assert drawn.count(f"fill:{synchronization.BLOCK_COLOURS[1]}") == 4 + 2 + 1
    assert "+2" in drawn and "+1" in drawn and "lane 0 holds 10" in sheet.alt


@pytest.mark.parametrize("engines", [2, 3])
def test_the_timeline_has_rows_for_the_engines_that_work(engines):
    pieces = synchronization.schedule(4, 2, copy_in=8, compute=8, copy_out=8)
    figure = synchronization.timeline([piece for piece in pieces if piece[0] < engines])
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["copy in", "compute", "copy out"][:engines]


def test_the_legacy_default_stream_meets_all_others():
    launches = ("a", "b", "default", "b", "a", "a")
    assert synchronization.started(launches, legacy=True) == [0, 0, 1, 2, 2, 3]
    assert synchronization.started(launches, legacy=False) == [0, 0, 0, 1, 1, 2]
    sheet = synchronization.default_stream(launches)
    assert "legacy: done after 4 steps; per-thread: done after 3" in sheet.alt
    assert sheet.svg().count("<rect") == 2 * len(launches)


def test_after_the_exchanges_all_lanes_hold_the_same():
    sheet = synchronization.butterfly([[0, 1, 4, 9], [1, 1, 13, 13], [14, 14, 14, 14]])
    assert "4 different values at first, 1 at last" in sheet.alt
    assert sheet.svg().count("<polygon") == 2 * 4  # arrows
    assert "lane ^ 1" in sheet.svg() and "lane ^ 2" in sheet.svg()


def test_the_order_of_a_sum_says_where_bits_are_lost():
    sheet = synchronization.orders([2**24, 1, 1, 1])
    assert "exactly 16777219. one after the other: 16777216; in pairs: 16777218." in sheet.alt
    rounded = f"fill:{synchronization.BLOCK_COLOURS[4]}"
    assert sheet.svg().count(rounded) == 3 + 1
    assert rounded not in synchronization.orders([1, 2, 3, 4]).svg()


def test_children_are_as_many_blocks_as_their_row_needs():
    sheet = synchronization.children([3, 0, 100, 40, 7], 32)
    assert "thread 0: 1, thread 1: 0, thread 2: 4, thread 3: 2, thread 4: 1." in sheet.alt
    assert sheet.svg().count("<polygon") == 4  # the row without numbers launches nothing
