"""The table: its lines are counted, its shares are computed, its recorded names are there."""

import pytest

from course.libraries import table
from course.libraries.tasks import NOT_RACED, TASKS, inputs_of
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


def test_a_share_is_the_amount_a_second_by_the_roof(monkeypatch):
    known = {
        "library/random/cuda_c/time": {"value": 2.0},
        "library/roof/copy": {"value": 1e12},
    }
    monkeypatch.setattr(results, "find", known.get)
    random = next(task for task in TASKS if task.key == "random")
    assert table.share(random, "cuda_c") == pytest.approx(random.amount / 2e-3 / 1e12)
    assert table.share(random, "python") is None


@pytest.mark.parametrize("minute, marked", [("05", False), ("25", True)])
def test_a_time_of_another_run_is_marked(monkeypatch, minute, marked):
    known = {
        "library/random/cuda_c/time": {"value": 2.0, "date": "2026-11-22T06:00:00Z"},
        "library/random/python/time": {"value": 3.0, "date": f"2026-11-22T06:{minute}:00Z"},
        "library/roof/copy": {"value": 1e12},
    }
    monkeypatch.setattr(results, "find", known.get)
    random = next(task for task in TASKS if task.key == "random")
    assert ("Python" in table.row(random).apart) is marked
    assert "library" not in table.row(random).apart


def test_nothing_recorded_is_said(monkeypatch, capsys):
    monkeypatch.setattr(results, "find", lambda name: None)
    table.show()
    assert "nothing recorded yet" in capsys.readouterr().out
    assert table.ratio("a", "b") == "a: not recorded yet"


def test_a_ratio_says_both_times_and_whose_they_are(monkeypatch):
    entry = {"gpu": "NVIDIA H200", "date": "2026-11-22T00:00:00Z"}
    known = {
        "library/slow/time": {"value": 3.0, **entry},
        "library/fast/time": {"value": 2.0, **entry},
    }
    monkeypatch.setattr(results, "find", known.get)
    words = "slow (3 ms) takes 1.50 times as long as fast (2 ms) · NVIDIA H200, 2026-11-22"
    assert table.ratio("slow", "fast") == words


def test_a_small_task_runs_in_python():
    task = next(task for task in TASKS if task.key == "gemm_small")
    a, b = inputs_of(task.key)
    assert task.python(a, b).shape == (256, 256)
