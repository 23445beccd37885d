"""What every test shares: a test run, the notebooks included, leaves the learner's own progress
alone.
"""

import os
import tempfile
from pathlib import Path

import utils  # noqa: F401    before any test imports numba: it chooses the GPU or the CPU engines
from tests.browser import MISSING as NO_BROWSER
from tests.browser import browser, page  # noqa: F401    fixtures

if (
    "PYTEST_XDIST_WORKER" not in os.environ
):  # a worker inherits the folder from the run it belongs to
    _scratch = tempfile.TemporaryDirectory(prefix="cuda-course-")  # removed when the run ends
    os.environ["CUDA_COURSE_PROGRESS"] = str(Path(_scratch.name) / "progress.json")


if "PYTEST_XDIST_WORKER" in os.environ:  # a core each: OpenMP's threads would wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_terminal_summary(terminalreporter):
    """One line says that tests were left out for want of a browser, and how to get one."""
    skipped = terminalreporter.stats.get("skipped", [])
    without = [report for report in skipped if NO_BROWSER in str(report.longrepr)]
    if without:
        terminalreporter.write_line(f"{len(without)} tests left out: {NO_BROWSER}")
