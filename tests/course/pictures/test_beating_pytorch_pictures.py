"""Chapter 17's tables and pictures, from recorded entries and without any."""

import numpy as np
import pytest

from course.pictures import beating_pytorch
from utils import engine, results


def entry(name, value, unit="µs", gpu="G", date="2026-01-31T12:00:00Z", spread=1.0):
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "spread": spread,
        "gpu": gpu,
        "driver": "580",
        "date": date,
        "versions": {"torch": "9.9"},
    }


ENTRIES = [
    *(entry(f"mnist/step/{batch}/pytorch/eager_fp32", 10.0 * batch) for batch in (64, 256)),
    *(entry(f"mnist/step/{batch}/pytorch/graph_tf32", 4.0 * batch) for batch in (64, 256)),
    *(entry(f"mnist/step/{batch}/ours/bf16", 1.0 * batch) for batch in (64, 256)),
    *(
        entry(f"mnist/step/{batch}/speedup_over_pytorch_best", 4.0, "1", spread=0.1)
        for batch in (64, 256)
    ),
    entry("mnist/step/64/ours/bf16", 1.0, gpu="another", date="2025-01-31T12:00:00Z"),
]


@pytest.fixture
def some(monkeypatch):
    monkeypatch.setattr(results, "load", lambda: ENTRIES)
    monkeypatch.setattr(engine, "gpu", lambda: None)


@pytest.fixture
def none(monkeypatch):
    monkeypatch.setattr(results, "load", lambda: [])


def test_without_a_gpu_the_last_recorded_one_counts(some):
    found = beating_pytorch.recorded("mnist/step/64/")
    assert set(found) == {
        "pytorch/eager_fp32",
        "pytorch/graph_tf32",
        "ours/bf16",
        "speedup_over_pytorch_best",
    }
    assert (
        found["ours/bf16"]["value"] == 64
        and beating_pytorch.origin(found) == "G, 2026-01-31, PyTorch 9.9"
    )


def test_this_gpu_comes_first(some, monkeypatch):
    class Gpu:
        name = "another"

    monkeypatch.setattr(engine, "gpu", lambda: Gpu)
    assert {e["gpu"] for e in beating_pytorch.recorded("mnist/").values()} == {"another"}


def test_the_table_marks_the_best_mode(some):
    table = beating_pytorch.race_table()
    assert table.head == ["µs a step", "batch 64", "batch 256"]
    assert table.rows[0] == ["PyTorch eager fp32", "640.0 ± 1.0", "2,560.0 ± 1.0"]
    assert table.rows[1] == ["PyTorch graph tf32", "**256.0 ± 1.0**", "**1,024.0 ± 1.0**"]
    assert table.rows[-1] == ["PyTorch's best ÷ ours", "**4.00×**", "**4.00×**"]
    assert (
        "| PyTorch graph tf32 | **256.0 ± 1.0** |" in table._repr_markdown_()
        and "G, 2026" in repr(table)
    )


def test_the_chart_says_what_it_shows(some):
    fig = beating_pytorch.race_chart()
    assert "4.0 at batch 64" in fig.alt and len(fig.axes[0].lines) == 3


def test_nothing_recorded_is_said(none):
    assert "nothing is recorded yet" in repr(beating_pytorch.race_table())
    for fig in (
        beating_pytorch.race_chart(),
        beating_pytorch.bars({}, title="", what="times"),
        beating_pytorch.waterfall({}, title=""),
    ):
        assert "nothing recorded yet" in fig.alt and fig._repr_mimebundle_()["text/html"]


def test_the_waterfall_shows_each_change(some):
    fig = beating_pytorch.waterfall(
        {"first": 100.0, "better": 25.0, "worse": 30.0}, title="", predicted={"better": 20.0}
    )
    assert "first 100 µs, then better 25 µs, then worse 30 µs" in fig.alt
    texts = [text.get_text() for text in fig.axes[0].texts]
    assert texts == [" 100 µs", " 25 µs · 4.00× · predicted 20", " 30 µs · 0.83×"]


def test_owners_are_drawn_for_every_cell():
    fig = beating_pytorch.owners(np.arange(32).reshape(4, 8), "lanes")
    assert (
        len(fig.axes[0].patches) == len(fig.axes[0].texts) == 32 and "lane 6 is marked" in fig.alt
    )
