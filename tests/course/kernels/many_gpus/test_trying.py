"""What the chapter runs on one GPU or none."""

import os
import sys

import numpy as np

from course.kernels.many_gpus import trying
from tests.needs import without_gpu
from tests.processes import completed
from utils.files import ROOT

APART = """
import numpy as np
from course.kernels.many_gpus import choices, communicator, trying
assert communicator.library().comm_devices() == 8
for ranks, algorithms in ((4, choices.ALGORITHMS), (8, ("push",))):
    arrays = [np.random.default_rng(r).normal(size=500).astype(np.float32) for r in range(ranks)]
    for algorithm in algorithms:
        sums = trying.all_reduce(algorithm, arrays)
        error = np.abs(sums[0] - np.sum(arrays, axis=0, dtype=np.float64)).max()
        same = all(np.array_equal(sums[0], other) for other in sums)
        print(algorithm, ranks, error < 1e-5, same)
try:
    communicator.apart(9, heap=1024)
except communicator.CommunicatorError as error:
    print(error)
"""


def test_sums_of_three_ranks():
    arrays = [np.random.default_rng(rank).normal(size=50).astype(np.float32) for rank in range(3)]
    sums = trying.all_reduce("one_shot", arrays)
    np.testing.assert_allclose(sums[1], np.sum(arrays, axis=0), rtol=1e-5, atol=1e-6)
    assert np.array_equal(sums[0], sums[2])


def test_who_was_waited_for_is_named():
    assert "of rank 1" in trying.call_alone()


@without_gpu("the CPU runtime plays the devices")
def test_each_rank_on_a_device_of_its_own():
    done = completed(
        [sys.executable, "-c", APART], cwd=ROOT, env={**os.environ, "CUDA_CPU_DEVICES": "8"}
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 7 and all(line.endswith("True True") for line in lines[:6]), done.stderr
    assert lines[6] == "9 ranks need as many devices that reach each other, not 8"
