"""Recorded outputs: brought in, shown with GPU and date, and never where there are none."""

import ast

import pytest

from course.kernels.bench.report import Report
from course.libraries import bench, recorded

SNIPPETS = sorted(path.stem for path in recorded.SNIPPETS.glob("*.py"))
ENTRY = {
    "gpu": "NVIDIA H200",
    "driver": "580",
    "date": "2026-11-22T05:00:00Z",
    "versions": {},
    "text": "all right\n",
}


def test_what_was_added_is_shown_with_gpu_and_date(tmp_path):
    file = tmp_path / "libraries.json"
    recorded.add({"one": ENTRY}, file)
    recorded.add({"another": {**ENTRY, "text": "new"}}, file)
    head = "[recorded on NVIDIA H200, 2026-11-22]"
    assert recorded.recorded_text("one", file) == f"{head}\nall right"
    assert recorded.recorded_text("another", file) == f"{head}\nnew"
    assert recorded.recorded_text("none", file) == "none: not recorded yet; it needs a GPU"


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_is_python_with_a_description(name):
    tree = ast.parse((recorded.SNIPPETS / f"{name}.py").read_text())
    assert ast.get_docstring(tree)
    assert str(recorded.code(name)).startswith("import") or name in recorded.code(name)


def test_a_piece_of_a_snippet_is_cut_at_its_words():
    piece = recorded.code("two_streams", start="def sum_by_cupy", end="theirs")
    assert piece.startswith("def sum_by_cupy") and "theirs" not in piece
    with pytest.raises(ValueError, match="no line holds"):
        recorded.code("two_streams", start="nothing of the kind")


def test_times_do_not_stand_in_a_kept_output(tmp_path):
    report = Report(tmp_path / "out.json", 10)
    bench.keep(report, "gemm", "gemm: right\nTIME gemm 1 0\n")
    assert report.entries["outputs"]["gemm"]["text"] == "gemm: right"


def test_a_share_of_the_roof_is_recorded(tmp_path):
    report = Report(tmp_path / "out.json", 10)
    task = next(task for task in bench.TASKS if task.key == "fft")
    bench.note(report, task, "cuda_c", 2.0, 0.1, {"copy": 1e12})
    names = {name: value for name, (value, *_) in report.entries["found"].items()}
    assert names["library/fft/cuda_c/time"] == 2.0
    share = names["library/fft/cuda_c/share_of_copy"]
    assert share == pytest.approx(task.amount / 2e-3 / 1e12)
