"""The grid of shapes: which they are, what is raced again, and what is made of the times."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from course.kernels.bench.report import Report
from course.kernels.row_kernels import grid
from course.kernels.row_kernels.grid_race import Job, Turn, raced
from course.kernels.row_kernels.grid_shapes import LONGEST, MANY, TUNING, GridShape, drawn
from course.kernels.row_kernels.grid_sweep import chosen, others
from course.kernels.row_kernels.operations import OPERATIONS
from course.kernels.row_kernels.shapes import Split
from tests.needs import without_gpu

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}


def options(**changed):
    usual = {"seed": 1, "operations": ["softmax"], "dtypes": ["float32"]}
    return SimpleNamespace(**usual | {"in_turn": False, "sweep": False} | changed)


@pytest.fixture
def report(tmp_path):
    return Report(tmp_path / "grid.json", budget=60)


def test_a_third_of_sixty_shapes_is_held_out():
    held_out = drawn(1)
    assert held_out == drawn(1) != drawn(2)
    assert len(held_out) == len(set(held_out)) == len(TUNING) / 2 >= 20
    assert not set(held_out) & set(TUNING)
    for shape in (*TUNING, *held_out):
        assert 1 <= shape.columns <= LONGEST and shape.rows * shape.columns <= 1.01 * MANY


def test_types_in_turn_have_each_shape_once():
    raced_in = [grid.shapes_of(TUNING, "rmsnorm", dtype, True) for dtype in SIZES]
    assert sorted(map(str, sum(raced_in, []))) == sorted(map(str, TUNING))


@pytest.mark.parametrize("name", grid.SWEPT)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_other_ways_to_deal_a_shape_hold_its_rows(name, dtype):
    for shape in (*TUNING, *drawn(3)):
        ways = others(OPERATIONS[name], shape, SIZES[dtype])
        assert len(ways) == len(set(ways))
        assert chosen(OPERATIONS[name], shape, SIZES[dtype]) not in ways
        for way in ways:
            if isinstance(way, Split):
                assert way.columns == shape.columns
                continue
            assert way.columns == shape.columns and way.threads <= 1024, way
            assert (way.shared_bytes + 1024) * way.blocks <= 228 << 10 or way.blocks == 1, way


def test_a_summary_names_the_worst_shape(report, monkeypatch):
    first, second, third = TUNING[:3]
    monkeypatch.setattr(grid, "sets_of", lambda seed: {"": (first, second), "/held_out": (third,)})
    times = {
        first: {"torch": 4.0, "compile": 2.0, "ours": 1.0},
        second: {"torch": 1.0, "ours": 2.0},
        third: {"compile": 3.0, "ours": 3.0},
    }
    for shape, entry in times.items():
        report.put("races", str(Job("softmax", "float32", shape)), entry | {"wrong": {}})
    found = grid.summaries(report, options())
    told = found["softmax/grid/float32"]
    assert told.mean == 1.0 and told.ratios == {first: 2.0, second: 0.5}
    assert (told.worst, told.best) == (second, first)
    assert found["softmax/grid/float32/held_out"].ratios == {third: 1.0}
    assert f"0.50 at {second}" in grid.table(report, found)


def test_only_what_is_dealt_in_another_way_is_raced_again(report, monkeypatch):
    jobs = [Job("softmax", "float32", shape) for shape in TUNING[:3]]
    report.put("races", str(jobs[0]), {"wrong": {}, "dealt": grid.dealt(jobs[0])})
    report.put("races", str(jobs[1]), {"wrong": {}, "dealt": "otherwise"})
    asked = []

    class Pool:
        def __init__(self, count):
            self.jobs = SimpleNamespace(put=asked.append)
            self.results = SimpleNamespace(get=lambda timeout: (asked[0], {"wrong": {}}))

        def alive(self):
            return True

        def stop(self):
            pass

    monkeypatch.setattr(grid, "Pool", Pool)
    grid.race_all(report, jobs, 1)
    assert asked == jobs[1:]
    assert report.entries["races"][str(jobs[1])]["dealt"] == grid.dealt(jobs[1])


@without_gpu("proves the kernels that run everywhere")
def test_a_wrong_kernel_is_not_timed(monkeypatch):
    lock = SimpleNamespace(acquire=lambda: None, release=lambda: None)
    job = Job("softmax", "float32", GridShape(3, 33, gap=1))
    assert raced(job, Turn(lock))["wrong"] == {}
    wrong = replace(OPERATIONS["softmax"], function=lambda x, shape: x * 0)
    monkeypatch.setitem(OPERATIONS, "softmax", wrong)
    assert "largest error" in raced(job, Turn(lock))["wrong"]["ours"]
