"""What the chapter runs on one GPU or none."""

import os
import sys

import numpy as np
import pytest

from course.kernels.many_gpus import trying
from course.kernels.many_gpus.choices import ALGORITHMS
from tests.needs import without_gpu
from tests.processes import completed
from utils.files import ROOT
from utils.tools import yours

APART = """
import numpy as np
from course.kernels.many_gpus import choices, communicator, trying
assert communicator.library().comm_devices() == 8
for ranks, algorithms in ((4, choices.ALGORITHMS), (8, ("push",))):
    arrays = [np.random.default_rng(r).normal(size=500).astype(np.float32) for r in range(ranks)]
    for algorithm in algorithms:
        sums = trying.apart(algorithm, arrays)
        error = np.abs(sums[0] - np.sum(arrays, axis=0, dtype=np.float64)).max()
        same = all(np.array_equal(sums[0], other) for other in sums)
        print(algorithm, ranks, error < 1e-5, same)
try:
    communicator.apart(9, heap=1024)
except communicator.CannotReach as error:
    print(error)
"""


def test_sums_of_three_ranks():
    arrays = [np.random.default_rng(rank).normal(size=50).astype(np.float32) for rank in range(3)]
    sums = trying.all_reduce("one_shot", arrays)
    np.testing.assert_allclose(sums[1], np.sum(arrays, axis=0), rtol=1e-5, atol=1e-6)
    assert np.array_equal(sums[0], sums[2])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_ranks_have_the_same_sum(algorithm):
    arrays = [np.random.default_rng(rank).normal(size=400).astype(np.float32) for rank in range(4)]
    sums = trying.together(algorithm, arrays)
    exact = np.sum(arrays, axis=0, dtype=np.float64)
    np.testing.assert_allclose(sums[0], exact, rtol=1e-5, atol=1e-5)
    assert all(np.array_equal(sums[0], other) for other in sums)


def test_who_was_waited_for_is_named():
    assert trying.call_alone().startswith("rank 0 waited in vain for data words of rank 1")


SHIFTED = "one_shot", "peers.after(k)", "peers.rank", "waited in vain for data words"


@without_gpu("the CPU runtime names the mistake")
@pytest.mark.parametrize(
    "name, old, new, says",
    [
        ("leave_flags", "    __syncthreads();\n", "", "before the fence a __syncthreads()"),
        ("leave_flags", "__syncthreads", "__threadfence", "a fence alone does not do"),
        pytest.param(*SHIFTED, marks=pytest.mark.nightly("by day it is called without a cell")),
        ("one_shot", "i * each, count, sum.two()", "i * each, count, mine", "wrong: "),
    ],
)
def test_a_mistake_in_a_cell_is_named(capsys, tmp_path, monkeypatch, name, old, new, says):
    monkeypatch.chdir(tmp_path)
    region = yours.Region(trying.TOGETHER.with_name("all_reduce.cuh"), name)
    text = region.of(region.file.read_text())
    assert text.count(old) == 1
    try:
        yours.put(region, text.replace(old, new))
        trying.tried("one_shot" if name == "one_shot" else "push", ranks=2)
    finally:
        yours.reset(region)
    assert says in capsys.readouterr().out
    trying.tried("one_shot", ranks=2)
    assert "✓ right" in capsys.readouterr().out


@without_gpu("the CPU runtime plays the devices")
def test_each_rank_on_a_device_of_its_own():
    done = completed(
        [sys.executable, "-c", APART], cwd=ROOT, env={**os.environ, "CUDA_CPU_DEVICES": "8"}
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 7 and all(line.endswith("True True") for line in lines[:6]), done.stderr
    assert lines[6] == "9 ranks need as many devices that reach each other, not 8"
