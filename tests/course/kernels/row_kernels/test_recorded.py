"""What is shown of recorded measurements of the row kernels."""

from course.kernels.row_kernels import drawing, hints
from utils.tools.profilers import Table

LAUNCH = 'softmax_fast,"(1,1,1)","(1,1,1)","501,250 ns","1,073,800,000 byte","1,051,000,000 byte",'


def test_each_launch_has_its_hint_in_front():
    names = ",".join(["kernel", "grid", "block", *hints.METRICS.values()])
    launches = [f"{LAUNCH}{share} %" for share in (86, 80, 89)]
    table = hints.with_hints(Table("ncu", "\n".join([names, *launches])))
    assert [row["hint"] for row in table.rows] == list(hints.HINTS)
    assert table.rows[2] == {
        "hint": "evict last",
        "time": "501.2 µs",
        "read": "1.074 GB",
        "written": "1.051 GB",
        "of memory's peak": "89 %",
    }


def test_a_gpu_without_these_kernels_is_shown_the_recorded_hints(monkeypatch):
    monkeypatch.setattr(hints, "has_gpu", lambda: True)
    monkeypatch.setattr(hints.fast, "available", lambda: False)
    table = hints.counted()
    assert table.recorded and "Hopper" in table.note
    assert [row["hint"] for row in table.rows] == list(hints.HINTS)


def test_what_ncu_did_not_count_has_no_hints():
    assert not hints.with_hints(Table("ncu", note="no GPU"))


def test_choices_stand_between_the_kernel_and_a_copy(monkeypatch):
    rates = {"as_it_is": 4.2e12, "stores_no_hint": 4.1e12, "copy": 4.25e12}

    def find(name):
        rate = rates.get(name.split("/")[2])
        return rate and {"value": rate}

    monkeypatch.setattr(drawing.results, "find", find)
    lines = drawing.choices((1024,)).splitlines()
    assert [line.split()[0] for line in lines] == ["1,024", "as", "stores:", "copy"]
    assert lines[1].endswith("4,200 GB/s")
