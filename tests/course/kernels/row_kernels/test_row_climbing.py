"""Softmax's judge takes the kernel that it is given, and names the row that is wrong."""

import math
import shutil

import pytest
from numba import cuda, float32

from course.kernels.row_kernels import climbing, numba_softmax
from course.kernels.row_kernels.numba_softmax import block_max, block_sum, larger
from tests.needs import cpp_compiler, without_gpu

cpp_compiler()


@cuda.jit
def begins_at_zero(out, x):
    row = cuda.blockIdx.x
    columns = x.shape[1]
    largest = float32(0)
    for c in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        largest = larger(x[row, c], largest)
    largest = block_max(largest)
    total = float32(0)
    for c in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        total += math.exp(x[row, c] - largest)
    total = block_sum(total)
    for c in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        out[row, c] = math.exp(x[row, c] - largest) / total


@without_gpu("nothing is timed")
@pytest.mark.parametrize("name", ["three_reads", "online", "one_read"])
def test_all_rungs_are_right(name, capsys):
    judge = climbing.Softmax()
    judge.climb(name)
    judge.tried(name)
    judge.tried(name, judge.numba(name))
    said = capsys.readouterr().out
    assert said.count("✓ right") == 2
    assert "yours" not in said


def test_a_maximum_that_begins_at_zero_is_found(capsys):
    climbing.Softmax().tried("three_reads", begins_at_zero)
    said = capsys.readouterr().out
    assert "yours" in said
    assert "row 2 (of numbers far below 0) begins with nan" in said


def test_a_row_of_each_kind_is_named(capsys):
    @cuda.jit
    def half(out, x):
        for c in range(cuda.threadIdx.x, x.shape[1], cuda.blockDim.x):
            out[cuda.blockIdx.x, c] = x[cuda.blockIdx.x, c] / 2

    climbing.Softmax().tried("online", half)
    rows = [line.split(" begins")[0] for line in capsys.readouterr().out.splitlines()[1:]]
    kinds = (
        "0 (with a -inf)",
        "1 (with a NaN)",
        "2 (of numbers far below 0)",
        "3 (an ordinary one)",
    )
    assert rows == [f"Numba: row {kind}" for kind in kinds]


def test_what_stands_for_a_missing_element_shows_where_rows_fill_the_block_too(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(climbing, "pick", lambda gpu, cpu: 320 if cpu == 300 else cpu)
    judge = climbing.Softmax()
    assert judge.columns == judge.kept * judge.threads
    judge.tried("one_read")
    assert "✓ right" in capsys.readouterr().out

    kernels = shutil.copytree(climbing.classic.KERNELS, tmp_path / "kernels")
    text = (kernels / "softmax.cu").read_text()
    assert text.count(": -infinity();") == 1
    (kernels / "softmax.cu").write_text(text.replace(": -infinity();", ": 0;"))
    monkeypatch.setattr(climbing.classic, "KERNELS", kernels)
    judge.tried("one_read")
    assert "CUDA C: row 0 (with a -inf) begins with" in capsys.readouterr().out


def test_the_loss_is_right(capsys):
    climbing.tried_loss()
    assert capsys.readouterr().out.count("✓ right") == 2


def test_a_learners_online_is_asked_for_by_name():
    judge = climbing.Softmax()
    assert judge.numba("online") is numba_softmax.online
