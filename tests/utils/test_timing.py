"""Times are honest: none without a GPU, medians and rates that follow from the samples, rivals
taken in turn.
"""

import json
import random
from itertools import permutations

import pytest
from numba import cuda

from utils import engine, results, timing


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(timing, "has_gpu", lambda: False)


@pytest.fixture
def gpu(monkeypatch):
    """A GPU whose clock is ours: each call of fn appends to `order`, and takes as long as the label
    says.
    """
    found = engine.GPU("Test GPU", (9, 0), 80 << 30, "580.1", (13, 0), "GPU-x")
    monkeypatch.setattr(timing, "has_gpu", lambda: True)
    monkeypatch.setattr(engine, "gpu", lambda: found)
    monkeypatch.setattr(timing, "copy_bandwidth", lambda: 4e12)
    monkeypatch.setattr(timing, "matmul_rate", lambda dtype: 50e12)

    def measure(work, stream, clean=False):
        for fn in work.values():
            fn()
        return {
            label: [float(label or 2) * scale for scale in (1.0, 1.0, 1.1, 0.9)] for label in work
        }

    monkeypatch.setattr(timing, "_measure", measure)


def test_no_time_without_gpu_but_the_work_runs(no_gpu):
    ran = []
    result = timing.benchmark(lambda: ran.append(1), bytes=100, name="no/such/result")
    assert ran == [1]
    assert result.median is None and result.spread is None and result.bytes_per_second is None
    assert repr(result) == "no GPU, so no time (nothing is recorded yet for no/such/result)"


def test_recorded_result_is_shown_with_gpu_and_date(no_gpu, monkeypatch):
    def entry(name, value, unit):
        return {
            "name": name,
            "value": value,
            "unit": unit,
            "spread": value / 100,
            "gpu": "NVIDIA Test",
            "driver": "1",
            "versions": {"numpy": "2"},
            "date": "2026-01-31T12:00:00Z",
        }

    known = {
        "a/b/time": entry("a/b/time", 0.094, "ms"),
        "a/b/bandwidth": entry("a/b/bandwidth", 4.28e12, "B/s"),
        "a/b/share_of_copy": entry("a/b/share_of_copy", 0.99, "1"),
    }
    monkeypatch.setattr(results, "find", lambda name, gpu=None: known.get(name))
    text = repr(timing.benchmark(lambda: None, name="a/b"))
    assert "recorded on NVIDIA Test, 2026-01-31: 94 µs" in text or "0.094 ms" in text
    assert "4,280 GB/s" in text and "99% of its copy speed" in text


def test_median_spread_and_rates(gpu):
    result = timing.benchmark(lambda: None, bytes=4e9, flops=1e11, dtype="float32")
    assert result.median == 2.0
    assert 0 < result.spread < 0.2
    assert result.bytes_per_second == pytest.approx(2e12)
    assert result.share_of_copy == pytest.approx(0.5)
    assert result.flops_per_second == pytest.approx(5e13)
    assert result.share_of_matmul == pytest.approx(1.0)
    assert (
        "2,000 GB/s · 50% of this GPU's copy speed · 50.00 TFLOP/s · 100% of the library's matmul"
        in repr(result)
    )


def test_compare_shows_ratios_to_the_fastest(gpu):
    table = timing.compare({"1": lambda: None, "3": lambda: None}).table().splitlines()
    assert "1.00×" in table[0] and "3.00×" in table[1]


def test_no_rival_always_follows_the_same_one():
    draw = random.Random(0)
    rounds = [timing._drawn(draw, dict.fromkeys("abc")) for _ in range(50)]
    assert all(sorted(labels) == ["a", "b", "c"] for labels in rounds)
    assert {tuple(labels) for labels in rounds} == set(permutations("abc"))


def test_l2_is_left_written_or_read_as_asked(monkeypatch):
    flushed = []
    monkeypatch.setattr(timing, "_l2_flush", lambda: lambda stream: flushed.append("written"))
    monkeypatch.setattr(timing, "_clean_l2", lambda: lambda stream: flushed.append("read"))
    for clean, state in {False: "written", True: "read"}.items():
        timing._measure({"": lambda: None}, 0, clean)
        assert set(flushed) == {state}
        flushed.clear()


def test_a_clean_flush_writes_and_then_reads_something_else(monkeypatch):
    large, written = [], []

    def beyond_l2():
        large.append(cuda.device_array(5000, dtype="float32"))
        return large[-1]

    monkeypatch.setattr(timing, "_beyond_l2", beyond_l2)
    monkeypatch.setattr(timing, "_l2_flush", lambda: written.append)
    timing._clean_l2.__wrapped__()(stream := cuda.default_stream())
    assert written == [stream]
    assert (large[0].copy_to_host() == 1).all()


def test_a_comparison_asks_for_a_clean_l2(gpu, monkeypatch):
    asked = []

    def measure(work, stream, clean):
        asked.append(clean)
        return {label: [1.0, 1.0] for label in work}

    monkeypatch.setattr(timing, "_measure", measure)
    for given in ({}, {"clean": True}):
        timing.compare({"": lambda: None}, **given)
    assert asked == [False, True]


def test_compare_without_gpu_runs_each_once_and_names_them(no_gpu):
    ran = []
    text = repr(
        timing.compare({"ours": lambda: ran.append("ours"), "theirs": lambda: ran.append("theirs")})
    )
    assert ran == ["ours", "theirs"]
    assert text == "no GPU, so no times; each of these ran once: ours; theirs"


def test_results_are_recorded_when_asked(gpu, monkeypatch, tmp_path):
    lines = tmp_path / "lines.jsonl"
    monkeypatch.setenv(results.RECORD, str(lines))
    timing.compare({"2": lambda: None}, name="thing", bytes=1e9)
    entries = {e["name"]: e for e in map(json.loads, lines.read_text().splitlines())}
    assert set(entries) == {"thing/2/time", "thing/2/bandwidth", "thing/2/share_of_copy"}
    assert entries["thing/2/time"]["value"] == 2.0 and entries["thing/2/time"]["gpu"] == "Test GPU"


def test_labels_become_names(gpu, monkeypatch, tmp_path):
    lines = tmp_path / "lines.jsonl"
    monkeypatch.setenv(results.RECORD, str(lines))
    monkeypatch.setattr(timing, "_measure", lambda work, *_: {label: [1.0, 1.0] for label in work})
    timing.compare({"CUDA C, 64 blocks": lambda: None}, name="axpy")
    assert json.loads(lines.read_text())["name"] == "axpy/cuda_c_64_blocks/time"


@pytest.mark.parametrize(
    "value, text",
    [(0.0042, "4.2 µs"), (0.094, "0.094 ms"), (12.3456, "12.3 ms"), (2500, "2.5 s"), (0, "0 µs")],
)
def test_milliseconds(value, text):
    assert timing.format_ms(value) == text


def test_rivals_without_a_gpu_are_compared_by_their_recorded_times(no_gpu, monkeypatch):
    place = {"gpu": "NVIDIA Test", "date": "2026-01-31T12:00:00Z"}
    times = {"a/slow/time": 3.0, "a/fast/time": 1.5}

    def find(name):
        if name not in times:
            return None
        return {"name": name, "value": times[name], "unit": "ms", "spread": 0.1, **place}

    monkeypatch.setattr("utils.results.find", find)
    rivals = dict.fromkeys(("slow", "fast", "new"), lambda: None)
    shown = timing.compare(rivals, name="a")
    head, *rows = repr(shown).splitlines()
    assert head == "no GPU here; recorded on NVIDIA Test, 2026-01-31:"
    assert [row.split()[:2] for row in rows] == [
        ["slow", "2.00×"],
        ["fast", "1.00×"],
        ["new", "not"],
    ]
    assert shown.timings["slow"].median is None  # nothing was measured here
    assert shown.timings["slow"].time == (3.0, 0.1)


def test_a_slow_rate_is_no_zero():
    timed = timing.Timing("a", (56.9, 56.9), bytes=12 << 20, copy_bytes_per_second=4e12)
    assert " 0.22 GB/s" in repr(timed)
