"""The tables in README.md and in the instructors' guide are those of the list of chapters."""

import re

import pytest

from course.pictures import front
from course.publish import platforms, records, tables
from utils.files import ROOT
from utils.setup import install
from utils.setup.colab import repository

PAGE = (
    "before\n<!-- timings: made -->\n| a | b |\n|---|---|\n| old | 1 |\n<!-- /timings -->\nafter\n"
)


def test_the_tables_are_those_of_the_chapters():
    outdated = [path.name for path in tables.outdated()]
    assert outdated == [], "`make tables` writes them"


def test_every_platform_starts_with_a_python_that_the_installer_takes():
    newest = ".".join(map(str, install.NEWEST))
    for each in platforms.PLATFORMS:
        typed = platforms.commands(each)
        assert f"git clone {repository()} " in typed and typed.endswith(each.then)
        for version in re.findall(r"python@?(3\.\d+)", typed):
            assert version == newest
    assert "python3-venv" in platforms.PACKAGES, "install.py asks for it"


def test_only_the_rows_are_replaced():
    page = tables.with_table(PAGE, "timings", ["| new | 2 |", "| newer | 3 |"])
    assert page == PAGE.replace("| old | 1 |", "| new | 2 |\n| newer | 3 |")


@pytest.mark.parametrize("text", ["", PAGE + PAGE])
def test_a_missing_or_second_table_is_an_error(text):
    with pytest.raises(ValueError, match="one table marked timings"):
        tables.with_table(text, "timings", [])


def test_make_tables_writes_what_check_names(tmp_path, monkeypatch, capsys):
    path = tmp_path / "README.md"
    path.write_text(PAGE)
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "INKS", {})
    monkeypatch.setattr(tables, "MAPS", ())
    monkeypatch.setattr(tables, "TABLES", {path: {"timings": lambda: ["| new | 2 |"]}})
    assert tables.main(["--check"]) == 1
    assert path.read_text() == PAGE
    assert tables.main([]) == 0
    assert "| new | 2 |" in path.read_text()
    assert tables.main(["--check"]) == 0


def test_the_result_is_the_recorded_one_and_stands_once():
    text = "a\n<!-- race: made -->\nold\n<!-- /race -->\nb\n"
    new = tables.with_result(text)
    least, most = front.lead()
    assert f"{least:.1f} to {most:.1f} times" in new and "old" not in new
    assert tables.with_result(new) == new
    with pytest.raises(ValueError, match="one block marked race"):
        tables.with_result(text + text)


def test_the_races_picture_holds_every_recorded_time():
    steps, whose = front.race_at()
    drawn = tables.race_file("#123456")
    assert len(steps) == len(front.RIVALS) and whose in drawn
    for time in steps.values():
        assert f">{time:,.0f} µs" in drawn
    assert 'style="color:#123456"' in drawn


def test_every_record_has_results_and_its_weakest_shape_is_named():
    for record, row in zip(records.RECORDS, records.rows(), strict=True):
        if isinstance(record, records.Grid):
            assert f"| {records.summary(record).least:.2f} (" in row
            continue
        by_shape = records.ratios(record)
        weakest = min(by_shape.values())
        assert f"| {weakest:.2f} (" in row and f"**{max(by_shape.values()):.2f}**" in row
        assert (ROOT / "chapters" / f"{record.chapter}.ipynb").is_file()


def test_no_record_shows_what_results_call_a_shape():
    """Neither an underscore nor a slash reaches a reader."""
    for record in records.RECORDS:
        shapes = {records.summary(record).weakest}
        if not isinstance(record, records.Grid):
            shapes |= set(records.ratios(record))
        for shape in shapes:
            assert re.fullmatch(r"[\w ,^×]+", told := record.told(shape)) and "_" not in told, shape


def test_a_record_takes_the_best_of_our_kernels_at_a_shape_and_one_gpu(monkeypatch):
    def entry(name, value, gpu="mine"):
        return {"name": name, "value": value, "gpu": gpu}

    entries = [entry("x/8/slow/share", 0.5), entry("x/8/fast/share", 1.1)]
    entries += [entry("x/9/slow/share", 0.7), entry("x/9/fast/share", 3.0, gpu="another")]
    monkeypatch.setattr(records.results, "everything", lambda: entries)
    record = records.Record("X", "them", "11_matmul", r"x/(\d+)/\w+/share")
    assert records.ratios(record, gpu="mine") == {"8": 1.1, "9": 0.7}


def test_a_grids_record_counts_each_shape_once_and_names_its_worst(monkeypatch):
    told = {
        "x/grid/float32": {"geomean_over_best": 2.0, "shapes": 3.0, "worst_over_best": 0.9},
        "x/grid/float16/held_out": {"geomean_over_best": 0.5, "shapes": 1.0},
    }
    told["x/grid/float16/held_out"] |= {"worst_over_best": 0.5}
    for values in told.values():
        values |= {"worst_over_best/rows": 7.0, "worst_over_best/columns": 33.0}
    entries = [
        {"name": f"{start}/{what}", "value": value, "gpu": "mine"}
        for start, values in told.items()
        for what, value in values.items()
    ]
    monkeypatch.setattr(records.results, "everything", lambda: entries)
    summary = records.of_grid(records.Grid("X", "them", "11_matmul", "x/grid/.+"), gpu="mine")
    assert (summary.shapes, summary.weakest, summary.least) == (4, "7x33 float16", 0.5)
    assert summary.mean == pytest.approx(2**0.5) and summary.best is None
