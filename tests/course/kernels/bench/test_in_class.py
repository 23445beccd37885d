"""The bench for classes plays its parts with the CPU engines, too."""

import json
import sys

import pytest

from tests.needs import without_gpu
from tests.processes import completed
from utils.files import ROOT


@pytest.mark.nightly("starts processes for what the queue's own tests hold")
@without_gpu("there it is run to measure")
def test_a_class_of_three_takes_turns(tmp_path):
    out = tmp_path / "in_class.json"
    command = [sys.executable, "-m", "course.kernels.bench.in_class", "--learners", "3"]
    done = completed([*command, "--out", str(out)], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert found["errors"] == {}
    assert found["notes"]["turns"].startswith("18, one at a time, as they came")
    assert "2 others timed on" in found["checks"]["a broken context"]
    assert found["found"] == {}  # nothing is recorded of what was not measured
