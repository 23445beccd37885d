"""What a bench keeps, and how it comes into assets/results."""

import json
import os

import pytest

from course.kernels.bench import command, report
from tests import recorded
from utils import results


def test_a_bench_keeps_results_beside_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "has_gpu", lambda: True)
    monkeypatch.setattr(report, "gpu", lambda: type("Gpu", (), recorded.GPU)())
    monkeypatch.delenv(results.RECORD, raising=False)
    report.Report(tmp_path / "rows.json", budget=1)
    assert os.environ.pop(results.RECORD) == str(tmp_path / "rows.jsonl")


def test_a_report_is_not_written_over_the_entries_beside_it(capsys):
    parser = command.command_line("A bench.", budget=1)
    assert parser.parse_args(["--out", "rows.json"]).out.name == "rows.json"
    with pytest.raises(SystemExit):
        parser.parse_args(["--out", "rows.jsonl"])
    assert "rows.jsonl: entries for assets/results go there; say .json" in capsys.readouterr().err


def test_without_a_gpu_a_bench_records_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "has_gpu", lambda: False)
    monkeypatch.delenv(results.RECORD, raising=False)
    report.Report(tmp_path / "rows.json", budget=1)
    assert results.RECORD not in os.environ


def test_lines_come_into_the_gpus_file_and_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    recorded.write(tmp_path, "Example GPU 9000", {"rows/old": 1.0, "rows/new": 1.0})
    lines = tmp_path / "bench.jsonl"
    lines.write_text(json.dumps(recorded.entry("rows/new", 2.0)) + "\n")
    written = report.merge(lines)
    found = json.loads(written.read_text())
    values = {entry["name"]: entry["value"] for entry in found["results"]}
    assert values == {"rows/old": 1.0, "rows/new": 2.0}
    assert found["gpu"] == recorded.GPU


def test_a_bench_without_a_result_is_named(tmp_path):
    (tmp_path / "bench.jsonl").touch()
    with pytest.raises(ValueError, match="bench.jsonl holds no result"):
        report.merge(tmp_path / "bench.jsonl")


def test_a_result_is_in_the_file_at_once_and_the_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "has_gpu", lambda: False)
    kept = report.Report(tmp_path / "new" / "rows.json", budget=1)
    kept.put("checks", "rows", True)
    assert json.loads(kept.path.read_text())["checks"] == {"rows": True}
    assert list(kept.path.parent.iterdir()) == [kept.path]


def test_an_error_is_written_down_and_does_not_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "has_gpu", lambda: False)
    kept = report.Report(tmp_path / "out.json", budget=1)
    assert kept.attempt("this", lambda: 1 / 0) is None
    assert kept.attempt("that", lambda: 7) == 7
    assert list(kept.entries["errors"]) == ["this"]
    assert "ZeroDivisionError" in kept.path.read_text()
