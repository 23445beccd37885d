"""The pictures of Memory say in words what they show."""

import pytest

from course.pictures import memory
from tests.needs import without_gpu
from utils import hardware, plots


@without_gpu("asks for the data sheet that stands in for a GPU")
def test_without_a_gpu_the_sizes_are_a_data_sheets_and_say_so():
    whose, sizes = hardware.memories()
    assert "data sheet" in whose
    assert sizes["registers"] == 132 * 65536 * 4
    assert list(sizes.values()) == sorted(sizes.values())


@pytest.mark.parametrize(
    "size, text",
    [(96, "96 bytes"), (228 << 10, "228 KiB"), (50 << 20, "50 MiB"), (141e9, "141 GB")],
)
def test_sizes_are_said_as_readers_like_them(size, text):
    assert memory.size_text(size) == text


def test_the_occupancy_chart_shows_what_the_rules_say():
    figure = memory.occupancy_chart((9, 0), 256, 40, 0)
    assert "6 blocks = 48 warps" in figure.alt
    places, bars = figure.axes
    taken = [
        patch
        for patch in places.patches
        if patch.get_facecolor()[:3] != pytest.approx((238 / 255,) * 3)
    ]
    assert (len(places.patches), len(taken)) == (64, 48)
    assert [bar.get_width() for bar in bars.patches] == [8, 32, 6, 228]


def test_a_launch_that_cannot_be_still_draws():
    assert "0 blocks" in memory.occupancy_chart((9, 0), 1024, 255, 0).alt


def test_the_roofline_bends_where_the_roofs_meet():
    roofs = {"copy": 4e12}, {"fp32": 60e12}, "a GPU"
    figure = plots.roofline(roofs, {"add": (1 / 12, 3e11), "matmul": (100, None)})
    assert "4 TB/s" in figure.alt and "60 TFLOP/s" in figure.alt
    flat, slope = figure.axes[0].lines[:2]
    assert flat.get_xdata()[0] == slope.get_xdata()[1] == 15
    assert set(flat.get_ydata()) == {60}
    assert slope.get_ydata()[1] == 60
    assert slope.get_ydata()[0] == pytest.approx(4 * slope.get_xdata()[0])


def test_the_latency_chart_names_each_size():
    figure = memory.latency_chart({1 << 14: 40.0, 1 << 24: 270.0, 1 << 28: 800.0}, 30.0, 50 << 20)
    assert "16 KiB 40, 16 MiB 270, 256 MiB 800" in figure.alt


@without_gpu("draws what was recorded, for want of a GPU")
def test_without_a_gpu_the_latencies_are_recorded_ones_and_say_whose():
    figure = memory.latencies({}, [])
    assert "16 KiB" in figure.alt and "256 MiB" in figure.alt
    title = figure.axes[0].get_title(loc="left")
    assert title.startswith("no GPU here; recorded on NVIDIA")


def test_constants_take_a_turn_for_each_address():
    drawing = memory.turns({"the same": [2] * 32, "five": [lane % 5 for lane in range(32)]})
    assert drawing.alt == "32 lanes ask for constants: the same takes 1 turn; five takes 5 turns."
    boxes = drawing.svg().count("<rect")
    assert boxes == 32 * 6
    assert drawing.svg().count(">2</text>") == 32 + 6  # lanes 2, 7, ... 27
