"""The pictures of chapter 10, and what it reads from recorded results."""

import json

import pytest

from course.pictures import matmul
from course.pictures.matmul import Measured
from utils import has_gpu, results


def entry(name, value, unit="1", gpu="NVIDIA Test", date="2026-01-02T03:04:05Z"):
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "spread": 0.0,
        "gpu": gpu,
        "driver": "1",
        "versions": {"python": "3"},
        "date": date,
    }


@pytest.fixture
def one_ladder(tmp_path):
    """A results file with two rungs, one of them without an error."""
    entries = [
        entry("matmul/fp32/4096/naive/share_of_cublas", 0.01),
        entry("matmul/fp32/4096/naive/rate", 5e11, "FLOP/s"),
        entry("matmul/fp32/4096/naive/error", 1e-5),
        entry("matmul/fp32/4096/cublas/rate", 5e13, "FLOP/s"),
        entry("matmul/fp32/256/tile/share_of_cublas", 0.5),
        entry("matmul/fp32/256/tile/rate", 1e12, "FLOP/s"),
        entry("matmul/fp32/4096/share_of_cublas", 0.9),
        entry("copy/rate", 1.0, "B/s"),
    ]
    gpu = {
        "name": "NVIDIA Test",
        "compute_capability": "9.0",
        "sms": 132,
        "memory_bytes": 1,
        "driver": "1",
        "cuda": "13.0",
    }
    content = {
        "schema": 1,
        "gpu": gpu,
        "date": "2026-01-02T03:04:05Z",
        "versions": {"python": "3"},
        "results": entries,
    }
    (tmp_path / "nvidia-test.json").write_text(json.dumps(content))
    return tmp_path


def test_a_recorded_ladder_is_read_rung_by_rung(one_ladder):
    whose, found = matmul.recorded(one_ladder)
    assert whose == "NVIDIA Test, 2026-01-02"
    assert found["fp32", 4096, "naive"] == Measured(5e11, 0.01, 1e-5)
    assert found["fp32", 256, "tile"] == Measured(1e12, 0.5, None)
    assert found["fp32", 4096, "cuBLAS"].rate == 5e13
    assert "share_of_cublas" not in {rung for _, _, rung in found}


def test_nothing_recorded_is_said(tmp_path, monkeypatch):
    assert matmul.recorded(tmp_path) == ("", {})
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert "nothing is recorded" in matmul.recorded_line("matmul/fp32/4096/naive")


def test_a_line_says_gpu_date_share_and_error(one_ladder, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", one_ladder)
    line = matmul.recorded_line("matmul/fp32/4096/naive")
    assert (
        "NVIDIA Test, 2026-01-02" in line and "0.50 TFLOP/s, 1.0% of cuBLAS; error 1.0e-05" in line
    )


def test_the_table_has_only_rungs_whose_error_is_known(one_ladder):
    lines = matmul.table(matmul.recorded(one_ladder)[1]).splitlines()
    assert len(lines) == 1 and "naive" in lines[0] and "1.0e-05" in lines[0]


@pytest.mark.skipif(has_gpu(), reason="asks for the data sheet that stands in for a GPU")
def test_without_a_gpu_the_roofs_are_a_data_sheets_and_say_so():
    whose, peak, bandwidth = matmul.fp32_roofs()
    assert "data sheet" in whose and 60e12 < peak < 70e12 and 4e12 < bandwidth < 5e12


def test_the_ladder_has_a_bar_a_rung_and_says_its_share():
    figure = matmul.ladder_chart({"naive": 0.012, "tile": 0.17}, "a GPU")
    assert "naive 1.2%, tile 17.0%" in figure.alt
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx([1.2, 17.0])


def test_the_size_chart_has_a_line_a_rung():
    figure = matmul.size_chart({"tile": {256: 1e12, 512: 2e12}, "cuBLAS": {256: 3e12}}, "a GPU")
    assert "tile 256: 1, 512: 2; cuBLAS 256: 3" in figure.alt
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "--"]


def test_the_roofline_bends_where_the_roofs_meet():
    figure = matmul.roofline(
        60e12, 4e12, {"tile": (0.25, 5e11), "banks": (32, 36e12), "vector": (32, 36.1e12)}, "a GPU"
    )
    assert "meeting at 15.0 FLOPs a byte" in figure.alt
    assert max(figure.axes[0].lines[0].get_ydata()) == 60
    heights = [
        text.xyann[1] for text in figure.axes[0].texts if text.get_text() in ("banks", "vector")
    ]
    assert max(heights) > 1.3 * min(heights)  # names of equals do not lie on each other


def test_the_search_map_leaves_what_did_not_run_empty():
    figure = matmul.search_map(
        {("64", "3"): 1e12, ("64", "4"): 3e12, ("128", "3"): 2e12}, "tile", "stages", "a GPU"
    )
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(shown) == ["1.0", "2.0", "3.0"]
    bold = [text.get_text() for text in figure.axes[0].texts if text.get_fontweight() == "bold"]
    assert bold == ["3.0"]
