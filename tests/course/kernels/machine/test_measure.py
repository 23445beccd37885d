"""The microbenchmarks: each kernel runs, small, where there is no GPU, and nothing is recorded."""

import pytest

from course.kernels.bench.report import Report
from course.kernels.machine import measure
from tests.needs import cpp_compiler, without_gpu
from utils import results
from utils.estimate.gpus import MEASURED, Constants, measured

pytestmark = without_gpu("on a GPU they are measured")


def test_kernels_run_and_record_nothing_without_a_gpu(tmp_path, monkeypatch):
    cpp_compiler()
    monkeypatch.setenv(results.RECORD, str(tmp_path / "lines.jsonl"))
    bench = measure.Bench(Report(tmp_path / "machine.json", 60))
    for name in ("clock", "caches", "blocks"):
        measure.PARTS[name](bench)
    assert len(bench.report.entries["lines"]) > 10
    assert bench.report.entries["found"] == {}
    assert not (tmp_path / "lines.jsonl").exists()


def test_what_the_model_asks_for_is_recorded():
    card = measured("H200", MEASURED)
    assert card.clock > 1e9 and card.rates["issue"] > 1e11
    with pytest.raises(LookupError, match="not recorded"):
        Constants(MEASURED)["made of cheese"]
