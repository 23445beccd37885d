"""The pictures of the chapter Say it before you run it show what is so."""

import pytest

from course.kernels.machine import profiled
from course.pictures import estimates
from utils.cpu.numba_cuda import cuda
from utils.data_sheets import data_sheet
from utils.estimate import Blank, Launch, estimate
from utils.estimate.gpus import gpu


@cuda.jit
def copy(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i]


def test_each_resource_has_a_bar_and_the_whole_is_called_an_estimate():
    n = 1 << 24
    made = estimate(Launch(copy, n // 32, 32, (Blank(n), Blank(n))))
    sheet = estimates.resources(made, "A copy")
    assert "A copy on an H200, estimated: the start of blocks" in sheet.alt
    assert "the launch 2.69 µs; together" in sheet.alt and "an estimate" in sheet.svg()


def test_changes_stand_one_on_top_of_the_other_with_what_somebody_expected():
    n = 1 << 24
    made = estimate(Launch(copy, n // 32, 32, (Blank(n), Blank(n)))).waterfall()
    sheet = estimates.waterfall(made, "A copy", said=0.5)
    assert "A copy on an H200, estimated: as it is" in sheet.alt
    assert "; in blocks of 256 threads" in sheet.alt and "you said 0.5 ms" in sheet.alt
    assert "you: 0.5 ms" in sheet.svg()
    assert "you" not in estimates.waterfall(made).svg()


def test_what_changes_brought_is_told_with_how_far_off_it_was(capsys):
    estimates.changes()
    *rows, last = capsys.readouterr().out.splitlines()
    assert all("said" in row and "brought" in row for row in rows)
    assert last.startswith(f"{len(rows)} changes on an H200: ")


def test_what_was_said_stands_beside_what_was_measured():
    fig = estimates.beside_clock({"256 threads": (0.1, estimates.clock("vector_add/numba"))})
    axes = fig.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["256 threads"]
    (ratio,) = [one.get_text() for one in axes.texts]
    assert ratio.startswith("× 0.")


def test_the_worst_come_first_and_each_has_a_reason(capsys):
    estimates.worst(10)
    lines = capsys.readouterr().out.splitlines()
    names, reasons = lines[::2], lines[1::2]
    assert len(names) == 10 and names[0].startswith(" 1 histogram/numba_global_atomics")
    assert all(reason.strip() for reason in reasons)
    assert estimates.reason_of("vector_add/numba") == ""


def test_the_worst_have_numbers_in_the_picture():
    page = estimates.judged()._repr_html_()
    assert all(f">{number}</text>" in page for number in (1, 10))


def test_limits_are_told_where_they_differ(capsys):
    estimates.limits()
    first, *lines = capsys.readouterr().out.splitlines()
    rows = profiled.recorded("H200")
    assert first == f"{sum(row['agrees'] for row in rows)} of {len(rows)} kernels: the same limit"
    assert sum(int(line.split()[0]) for line in lines) == sum(not row["agrees"] for row in rows)


def test_every_unit_has_words():
    assert set(estimates.UNITS) == {*profiled.UNITS, profiled.IDLE}


def test_a_report_is_read_as_numbers():
    rows = estimates.counters("vector_adds")
    assert [row["kernel"] for row in rows] == ["one_thread", "one_block", "many_blocks"]
    many = rows[-1]
    rate = many["bytes from and to memory"] / many["time"]  # bytes in a nanosecond
    peak = data_sheet("H200")["bandwidth_gb_s"]
    assert 100 * rate / peak == pytest.approx(many["memory throughput"], rel=0.02)


def test_a_timeline_is_read_in_order():
    events = estimates.timeline("mlp")
    assert len(events) > 50 and events == sorted(events)
    assert all(duration > 0 for _, duration in events)


def test_the_judged_kernels_are_described():
    assert "H200: " in repr(estimates.judged()) and "median error" in repr(estimates.judged())
    assert "<svg" in estimates.judged()._repr_html_()


def test_all_block_sizes_are_drawn():
    fig = estimates.units(gpu("H200"))
    assert len(fig.axes[0].patches) == 6
