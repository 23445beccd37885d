"""The table: its lines are counted, its shares are computed, its recorded names are there."""

import pytest

from course.libraries import table
from course.libraries.tasks import NOT_RACED, TASKS, inputs_of
from tests import recorded
from utils import results


def test_lines_are_counted_without_comments():
    assert table.code_lines("// one\n\nint x;\n    # two\n  int y;  // three\n") == 2


def test_every_task_has_its_function_in_c():
    for row in table.rows():
        assert 4 <= row.c_lines <= 40, row.task.key
        assert row.python_lines == 2, row.task.key


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.key)
def test_what_was_recorded_elsewhere_is_there(task):
    for name in (task.cuda_c, task.ours, task.in_python.strip(NOT_RACED)):
        if name and not name.startswith("library/"):
            assert results.find(name) is not None, name


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Where results are looked for: nothing is recorded yet."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return tmp_path


def test_a_share_is_the_amount_a_second_by_the_roof(folder):
    known = {"library/random/cuda_c/time": 2.0, "library/roof/copy": 1e12}
    recorded.write(folder, "NVIDIA H200", known)
    random = next(task for task in TASKS if task.key == "random")
    assert table.share(random, "cuda_c") == pytest.approx(random.amount / 2e-3 / 1e12)
    assert table.share(random, "python") is None


@pytest.mark.parametrize("minute, marked", [("05", False), ("25", True)])
def test_a_time_of_another_run_is_marked(folder, minute, marked):
    ways = {f"library/random/{way}/time": 2.0 for way in ("cuda_c", "python")}
    days = dict(zip(ways, ("2026-11-22T06:00:00Z", f"2026-11-22T06:{minute}:00Z"), strict=True))
    recorded.write(folder, "NVIDIA H200", {**ways, "library/roof/copy": 1e12}, dates=days)
    random = next(task for task in TASKS if task.key == "random")
    assert ("Python" in table.row(random).apart) is marked
    assert "library" not in table.row(random).apart


def test_a_library_that_was_faster_alone_is_said(folder):
    task = next(task for task in TASKS if task.key == "gemm_large")
    known = {task.cuda_c: 2.0, task.alone: 1.0, "library/roof/tensor": task.amount * 1e3}
    recorded.write(folder, "NVIDIA H200", {**known, "library/roof/copy": 1e12})
    words = "† 50% in the race with ours; 100% alone, in a run of its own"
    assert table.alone_too(table.row(task)) == words


def test_nothing_recorded_is_said(folder, capsys):
    table.show()
    assert "nothing recorded yet" in capsys.readouterr().out
    assert table.ratio("a", "b") == "a: not recorded yet"


def test_a_ratio_says_both_times_and_whose_they_are(folder):
    known = {"library/slow/time": 3.0, "library/fast/time": 2.0}
    recorded.write(folder, "NVIDIA H200", known)
    words = "slow (3 ms) takes 1.50 times as long as fast (2 ms) · NVIDIA H200, 2026-01-31"
    assert table.ratio("slow", "fast") == words


def test_no_ratio_and_no_row_mixes_two_gpus(folder):
    """A GPU that was recorded without the libraries has some of the times, and no roof."""
    task = next(task for task in TASKS if task.key == "sum")
    known = {task.cuda_c: 3.0, task.ours: 2.0, "library/roof/copy": 1e12, "library/xt/time": 1.0}
    recorded.write(folder, "NVIDIA H200", known)
    recorded.write(folder, "NVIDIA B200", {task.ours: 0.5, task.in_python: 0.1}, "10.0")
    assert table.time_of(task, "ours")["value"] == 2.0
    assert table.time_of(task, "python") is None
    ours = task.ours.removesuffix("/time")
    assert table.ratio("xt", ours).endswith("(2 ms) · NVIDIA H200, 2026-01-31")
    assert "not recorded yet" in table.ratio("xt", task.in_python.removesuffix("/time"))


def test_a_small_task_runs_in_python():
    task = next(task for task in TASKS if task.key == "gemm_small")
    a, b = inputs_of(task.key)
    assert task.python(a, b).shape == (256, 256)
