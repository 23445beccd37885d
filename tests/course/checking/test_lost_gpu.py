"""A GPU takes no more work after a kernel's wild access: that is avoided, and told."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import numpy as np
import pytest

from course.checking import engines, numba_kernels
from course.checking.rejected import Rejected
from course.checking.trials import cases
from course.exercises import EXERCISES
from tests.needs import without_gpu
from utils.cpu.numba_cuda import cpu_jit

SCALE = EXERCISES["first_kernels.scale_guard"]
KERNEL = cpu_jit(SCALE.solution)


def test_a_gpu_that_takes_no_more_work_is_told(monkeypatch):
    def refuses():
        raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(engines.cuda, "synchronize", refuses)
    with pytest.raises(Rejected) as no:
        numba_kernels.check_numba(SCALE, KERNEL, seed=1)
    assert no.value.reason == "not_checked"
    assert "Restart Kernel" in no.value.lines[-1]


@pytest.mark.parametrize("watched", [True, False])
def test_what_was_not_watched_is_not_launched_on_a_gpu_first(watched, monkeypatch):
    launched = []

    def stops(kernel, *rest):
        launched.append(kernel)
        raise engines.Stopped(IndexError())

    monkeypatch.setattr(engines, "has_gpu", lambda: True)
    monkeypatch.setattr(engines, "launch_between_zones", stops)
    case = next(iter(cases(SCALE, 1)))
    with pytest.raises(engines.Stopped):
        engines.run_guarded(KERNEL, *case, np.random.default_rng(1), None, watched)
    assert launched == [KERNEL if watched else engines.on_cpu_engine(KERNEL)]


@without_gpu("its kernel runs on the CPU engine alone")
def test_what_rehearses_sees_what_the_gpu_will(monkeypatch):
    monkeypatch.setattr(engines, "has_gpu", lambda: True)
    case = next(iter(cases(SCALE, 1)))
    run = engines.run_guarded(KERNEL, *case, np.random.default_rng(1), None, watched=False)
    np.testing.assert_array_equal(run.actual, run.expected)
