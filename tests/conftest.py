"""What every test shares: a test run, the notebooks included, leaves the learner's own progress
alone.
"""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # a core each: threads would wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # OpenBLAS reads it when NumPy is imported

# isort: split
import gc
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

import utils  # noqa: F401    before any test imports numba: it chooses the GPU or the CPU engines
from tests.browser import MISSING as NO_BROWSER
from tests.browser import browser, page, shared_page  # noqa: F401    fixtures
from tests.kernels import SELDOM

if (
    "PYTEST_XDIST_WORKER" not in os.environ
):  # a worker inherits the folder from the run it belongs to
    _scratch = tempfile.TemporaryDirectory(prefix="cuda-course-")  # removed when the run ends
    os.environ["CUDA_COURSE_PROGRESS"] = str(Path(_scratch.name) / "progress.json")


# What NumPy and PyTorch free stays with the process, and with those that it starts: to give it back
# and fetch it anew, a page at a time, is a fifth of a small network's training.
os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(1 << 25))
os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(1 << 28))


# PyTorch's compiler tries the C++ compiler with a program for each kind of vector registers, for as
# long as ten kernels take; which of them the processor has it knows without.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
# And a header that many kernels would share; a test run compiles one or two.
os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")


# Hundreds of tests start Python. Where a machine's setting keeps it from writing down what it has
# compiled, each would compile the course's modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the workers inherit that
sys.dont_write_bytecode = False


# `nohup make test &` hands Ctrl-C over ignored, and what the tests start inherits that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers():
    """A worker more than cores: some tests wait, for a browser, a kernel or a time limit. Each
    imports all of the course first, for ten seconds of a core.
    """
    return (os.cpu_count() or 1) + 1


#: Files with few tests that take long come first, or one worker ends minutes after the others.
LONG = (
    "tests/course/exercises",
    "tests/utils/cpu/test_conformance_cuda_c.py",  # where nothing is compiled yet, the longest
    "tests/chapters",
    "tests/course/publish",
    "chapters",
    "course",
    "tests/course/authoring",
    "tests/course/extensions",
    "tests/course/kernels",
    "tests/course/checking",
    "tests/utils/setup",
    "tests/utils/cpu",
)


@pytest.fixture(autouse=True)
def _gradients_stay_on(request):
    """Whoever is stopped within `torch.no_grad` leaves PyTorch without gradients: not the next."""
    yield
    torch = sys.modules.get("torch")
    if torch and not torch.is_grad_enabled():
        torch.set_grad_enabled(True)
        warnings.warn(f"gradients were off after {request.node.nodeid}", stacklevel=1)


@pytest.fixture
def no_collection():
    """For a test that interrupts once: Hypothesis listens to garbage collections, and Python drops
    what is raised in such a listener, an interrupt too.
    """
    gc.disable()
    yield
    gc.enable()


def pytest_make_parametrize_id(val):
    """A test is named after the file, chapter, exercise or format that it is given."""
    if isinstance(val, Path):
        return val.stem
    name = getattr(val, "id", None) or getattr(val, "name", None)
    return name if isinstance(name, str) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Put the long files first."""

    def rank(item):
        ranks = [i for i, place in enumerate(LONG) if item.nodeid.startswith(place)]
        return ranks[0] if ranks else len(LONG)

    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Thousands of tests and what they import stay to the end: no collection looks at them, then or
    later.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*SELDOM)
        gc.enable()


def pytest_terminal_summary(terminalreporter):
    """One line says that tests were left out for want of a browser, and how to get one."""
    skipped = terminalreporter.stats.get("skipped", [])
    without = [report for report in skipped if NO_BROWSER in str(report.longrepr)]
    if without:
        terminalreporter.write_line(f"{len(without)} tests left out: {NO_BROWSER}")
