"""The pictures of Profiling show what they are given, and say whose roofs they are."""

from types import SimpleNamespace

import pytest

from course.pictures import profiling
from utils import engine, hardware, plots, results

ROOFS = ({"copy": 2e12}, {"matmul float32": 5e13, "matmul bfloat16": 7e14}, "measured on this GPU")


def event(name, start, end, thread=1, device="CPU"):
    return SimpleNamespace(
        name=name,
        thread=thread,
        time_range=SimpleNamespace(start=start, end=end),
        device_type=SimpleNamespace(name=device),
    )


def test_nested_finds_who_called_whom_on_the_busiest_thread():
    events = [
        event("inner", 2, 4),
        event("outer", 0, 10),
        event("next", 10, 12),
        event("last", 5, 9),
        event("elsewhere", 0, 20, thread=2),
        event("kernel", 3, 6, device="CUDA"),
    ]
    assert profiling.nested(events) == [
        ("outer", 0, 0, 10),
        ("inner", 1, 2, 4),
        ("last", 1, 5, 9),
        ("next", 0, 10, 12),
    ]


def test_flame_draws_each_event_from_its_start_to_its_end():
    fig = profiling.flame([("outer", 0, 100, 1100), ("inner", 1, 200, 700)])
    bars = [
        (b.get_x(), b.get_width(), round(b.get_y() + b.get_height() / 2))
        for b in fig.axes[0].patches
    ]
    assert bars == [(0, 1000, 0), (100, 500, 1)]
    assert [t.get_text() for t in fig.axes[0].texts] == ["outer", "inner"]
    assert "2 operators over 1 ms, in 2 levels" in fig.alt


def test_repeats_marks_median_mean_and_first():
    fig = profiling.repeats([9.0, 1.0, 1.0, 1.0, 3.0])
    assert "median of 1 ms" in fig.alt and "first took 9 ms" in fig.alt
    labels = [t.get_text() for t in fig.axes[0].get_legend().get_texts()]
    assert labels == ["the first repeat", "median 1 ms", "mean 3 ms"]


def points(fig):
    return [
        (line.get_xdata()[0], line.get_ydata()[0], line.get_fillstyle())
        for line in fig.axes[0].lines
        if line.get_marker() == "o"
    ]


def test_roofline_puts_measured_kernels_where_they_are_and_others_hollow_on_the_roof():
    fig = plots.roofline(ROOFS, {"add": (0.25, 4e11), "poly": (1, None), "matmul": (170, None)})
    (x1, y1, how1), (x2, y2, how2), (x3, y3, how3) = points(fig)
    assert (x1, how1) == (0.25, "full") and y1 == pytest.approx(0.4)
    assert (x2, how2) == (1, "none") and y2 == pytest.approx(2)  # 1 FLOP a byte at 2 TB/s
    assert (x3, how3) == (170, "none") and y3 == pytest.approx(50)  # the lower flat roof
    assert "hollow" not in fig.axes[0].get_title("left")
    assert "hollow" in plots.roofline(ROOFS, {"poly": (1, None)}).axes[0].get_title("left")


def test_roofs_without_a_gpu_are_recorded_ones_or_a_datasheets_and_say_so(monkeypatch):
    monkeypatch.setattr(engine, "gpu", lambda: None)
    monkeypatch.setattr(results, "find", lambda name, gpu: None)
    _, peaks, whose = hardware.roofs()
    assert "datasheet" in whose and "nothing measured" in whose and len(peaks) == 2

    values = {
        "roofline/vector_add/bandwidth": 1.8e12,
        "roofline/vector_add/share_of_copy": 0.9,
        "roofline/matmul/rate": 5e12,
        "roofline/matmul/share_of_matmul": 0.1,
    }
    monkeypatch.setattr(
        results,
        "find",
        lambda name, gpu: {"value": values[name], "gpu": "Test", "date": "2026-01-31T12:00:00Z"},
    )
    bandwidths, peaks, whose = hardware.roofs()
    assert bandwidths["copy"] == pytest.approx(2e12) and peaks["matmul float32"] == pytest.approx(
        5e13
    )
    assert whose == "recorded on Test, 2026-01-31"


def test_rate_of_a_timing_is_measured_recorded_or_unknown():
    measured = SimpleNamespace(samples=(1.0,), flops_per_second=3.0, recorded=None)
    recorded = SimpleNamespace(samples=(), recorded={"rate": {"value": 2.0}})
    assert profiling.rate_of(measured) == 3 and profiling.rate_of(recorded) == 2
    assert profiling.rate_of(SimpleNamespace(samples=(), recorded=None)) is None


def names_apart(fig):
    """The fewest pixels between the boxes of any two names in the figure's axes."""
    fig.canvas.draw()
    boxes = [text.get_window_extent() for text in fig.axes[0].texts if text.get_text()]
    return min(
        max(one.x0 - other.x1, other.x0 - one.x1, one.y0 - other.y1, other.y0 - one.y1)
        for n, one in enumerate(boxes)
        for other in boxes[:n]
    )


def test_no_name_of_a_roofline_lies_over_another():
    peaks = {"float32": 51e12, "tf32": 349e12}
    crowded = {"terms, a few hundred": (16, 12e12), "terms, some more of them": (128, 13e12)}
    assert names_apart(plots.roofline(({"copy": 4.3e12}, peaks, "a GPU"), crowded)) > 0
    tiles = {f"tiles of {side}": (side / 4, None) for side in (1, 4, 16, 64, 256)}
    assert names_apart(plots.roofline(({"copy": 4.3e12}, peaks, "a GPU"), tiles)) > 0
