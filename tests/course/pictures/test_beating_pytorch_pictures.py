"""The finale's tables and pictures, from recorded entries and without any."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from course.kernels.mnist_cnn import sockets
from course.pictures import beating_pytorch, front
from tests import recorded
from utils import engine, results
from utils.results.likeness import RECORDED_ON


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


def test_a_pretended_level_has_a_table_of_its_own(monkeypatch):
    old = [
        entry("mnist/step/64/ours/fp16/level_7.5", 2.0),
        entry("mnist/step/64/pytorch/eager_fp16/level_7.5", 8.0),
        entry("mnist/accuracy/ours_fp16/level_7.5", 0.99, "1"),
    ]
    monkeypatch.setattr(results, "load", lambda: [*ENTRIES[:-1], *old])
    monkeypatch.setattr(results, "everything", lambda: [*ENTRIES[:-1], *old])
    monkeypatch.setattr(engine, "gpu", lambda: None)
    assert not any("fp16" in row[0] for row in beating_pytorch.race_table().rows)
    table = beating_pytorch.race_table(level="7.5")
    assert [row[:2] for row in table.rows] == [
        ["PyTorch eager fp16", "**8.0 ± 1.0**"],
        ["ours, fp16", "2.0 ± 1.0"],
    ]
    assert "compiled for compute capability 7.5" in table.note
    assert beating_pytorch.gate_table(level="7.5").rows == [["ours, fp16", "99.00%", "100.00%"]]


def test_this_gpu_comes_first(some, monkeypatch):
    class Gpu:
        name = "another"

    monkeypatch.setattr(engine, "gpu", lambda: Gpu)
    assert {e["gpu"] for e in beating_pytorch.recorded("mnist/").values()} == {"another"}


def test_the_table_marks_the_best_mode(some):
    table = beating_pytorch.race_table()
    assert table.head == ["µs per step", "batch 64", "batch 256"]
    assert table.rows[0] == ["PyTorch eager fp32", "640.0 ± 1.0", "2,560.0 ± 1.0"]
    assert table.rows[1] == ["PyTorch graph tf32", "**256.0 ± 1.0**", "**1,024.0 ± 1.0**"]
    assert table.rows[-1] == ["PyTorch's best ÷ ours", "**4.00×**", "**4.00×**"]
    assert (
        "| PyTorch graph tf32 | **256.0 ± 1.0** |" in table._repr_markdown_()
        and "G, 2026" in repr(table)
    )


def test_the_chart_says_what_it_shows(some):
    fig = beating_pytorch.race_chart()
    assert "4.0 at batch 64" in fig.alt and len(fig.axes[0].lines) == 3 + 1  # of the legend
    legend = [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    assert legend == ["PyTorch, eager, fp32", "ours, bf16", "PyTorch's other modes"]


def test_an_older_gpus_race_is_drawn_with_its_own_precision(monkeypatch):
    old = [{**one, "name": one["name"].replace("bf16", "fp16")} for one in ENTRIES[:-1]]
    monkeypatch.setattr(results, "load", lambda: old)
    monkeypatch.setattr(engine, "gpu", lambda: None)
    texts = {text.get_text(): text.xy for text in beating_pytorch.race_chart().axes[0].texts}
    assert texts["4.0×"] in ((64, 64.0), (256, 256.0))
    assert beating_pytorch.waterfall_rows()["ours"] == 64


def test_nothing_recorded_is_said(none):
    assert "nothing is recorded yet" in repr(beating_pytorch.race_table())
    for fig in (
        beating_pytorch.race_chart(),
        beating_pytorch.bars({}, title="", what="times"),
        beating_pytorch.waterfall({}, title=""),
        beating_pytorch.fused_alone(),
        beating_pytorch.ablation(),
        beating_pytorch.beside_limits(FORWARD),
    ):
        assert "nothing recorded yet" in fig.alt and fig._repr_mimebundle_()["text/html"]


def test_the_solved_trainer_stands_beside_pytorchs_best(some, monkeypatch):
    monkeypatch.setattr(results, "everything", lambda: ENTRIES)
    assert "nothing is recorded yet" in repr(beating_pytorch.solved_table())
    solved = [
        entry("mnist/yours/64/time", 128.0),
        entry("mnist/yours/64/ours", 60.0),
        entry("mnist/yours/64/only_head", 62.0),
        entry("mnist/yours/4096/time", 9.0),  # where the race has no batch of this size
        entry("mnist/yours/4096/ours", 9.0),
        entry("mnist/yours/accuracy", 0.9897, "1"),
    ]
    monkeypatch.setattr(results, "everything", lambda: [*ENTRIES, *solved])
    # the others' tables are of a GPU on which it was not measured: then all rows are of its own
    monkeypatch.setattr(results, "load", lambda: ENTRIES[-1:])
    table = beating_pytorch.solved_table()
    assert table.head == ["µs per step", "batch 64"]
    assert [row[1] for row in table.rows] == ["256.0", "60.0", "128.0", "62.0", "**2.00×**"]
    assert "98.97%" in table.note and "G, 2026-01-31" in table.note


def test_the_gate_has_a_row_of_the_solved_trainer_of_its_gpu(monkeypatch):
    gate = [entry("mnist/accuracy/pytorch", 0.99, "1"), entry("mnist/accuracy/ours", 0.98, "1")]
    solved = entry("mnist/yours/accuracy", 0.97, "1")
    monkeypatch.setattr(engine, "gpu", lambda: None)
    for gpu, rows in ("G", 3), ("another", 2):
        found = [*gate, {**solved, "gpu": gpu}]
        monkeypatch.setattr(results, "load", lambda found=found: found)
        monkeypatch.setattr(results, "everything", lambda found=found: found)
        table = beating_pytorch.gate_table()
        assert len(table.rows) == rows
        assert ("97.00%" in repr(table)) == (gpu == "G")


def test_the_waterfall_shows_each_change(some):
    fig = beating_pytorch.waterfall(
        {"first": 100.0, "better": 25.0, "worse": 30.0}, title="", predicted={"better": 20.0}
    )
    assert "first 100 µs, then better 25 µs, then worse 30 µs" in fig.alt
    texts = [text.get_text() for text in fig.axes[0].texts]
    assert texts == [" 100 µs", " 25 µs · 4.00× · predicted 20", " 30 µs · 0.83×"]


def test_the_fused_step_stands_beside_the_plain_one_and_pytorchs_best(monkeypatch):
    profile = "mnist/profile/64/eager_fp32"
    ours = [
        entry("mnist/naive/step_64", 1000.0),
        entry("mnist/waterfall/0_ordinary_units_fp32", 900.0),
        entry("mnist/waterfall/1_tensor_cores_tf32", 200.0),
        entry(f"{profile}/launches", 45.0, "1"),
        entry(f"{profile}/matmul", 24.0),
        entry(f"{profile}/update", 18.0),
    ]
    monkeypatch.setattr(results, "load", lambda: [*ENTRIES[:-1], *ours])
    monkeypatch.setattr(engine, "gpu", lambda: None)
    alt = beating_pytorch.fused_alone().alt
    fused = "ours, fused, tensor cores imitated 900 µs"
    assert alt.endswith(f"ours, plain 1,000 µs, {fused}, PyTorch's best 256 µs")
    assert beating_pytorch.eager_kernels() == (45, 42.0)


FORWARD = {"conv1": 0, "conv2": 0, "fc1": 0, "fc2": 1e6}


def test_kernels_stand_beside_the_larger_of_their_limits(monkeypatch):
    """At 1 TB/s and 100 TFLOP/s: 64 · 3e6 FLOP take 1.92 µs, 14 bytes of each weight 5.9 µs."""
    ours = [entry("mnist/kernel/64/head", 5.0), entry("mnist/kernel/64/update", 9.0)]
    monkeypatch.setattr(results, "load", lambda: ours)
    monkeypatch.setattr(engine, "gpu", lambda: None)
    monkeypatch.setattr(beating_pytorch, "limits", lambda: (1e12, 1e14, "here"))
    fig = beating_pytorch.beside_limits(FORWARD)
    assert "update 9.0 µs, limit 5.9; head 5.0 µs, limit 1.9. Together 14 µs, their limi" in fig.alt
    assert [round(bar.get_width(), 1) for bar in fig.axes[0].patches] == [9, 5.9, 5, 1.9]
    table = beating_pytorch.limits_table(FORWARD, batch=64)
    rows = {row[0]: row[1:] for row in table.rows}
    assert len(rows) == len(beating_pytorch.KERNELS)
    assert rows["head"] == ["1.9", "0.0", "5.0", "38%"]
    assert rows["update"] == ["0.0", "5.9", "9.0", "66%"]
    assert rows["fc1_forward"][2:] == ["–", "–"]
    monkeypatch.setattr(beating_pytorch, "limits", lambda: (math.nan, math.nan, "nobody"))
    assert "head 5.0 µs. Together 14 µs." in beating_pytorch.beside_limits(FORWARD).alt
    assert beating_pytorch.PARAMETERS == sockets.PARAMETERS


def test_owners_are_drawn_for_every_cell():
    fig = beating_pytorch.owners(np.arange(32).reshape(4, 8), "lanes")
    assert (
        len(fig.axes[0].patches) == len(fig.axes[0].texts) == 32 and "lane 6 is marked" in fig.alt
    )


TIMES = {"mnist/kernel/4096/conv1": 10.0, "mnist/step/64/ours/bf16": 64.0}
ROOFS = {
    "roofline/vector_add/bandwidth": 1.8e12,
    "roofline/vector_add/share_of_copy": 0.9,
    "roofline/matmul/rate": 5e12,
    "roofline/matmul/share_of_matmul": 0.1,
    "matmul/cublas/4096/bf16/rate": 6e14,
}


def test_limits_are_those_of_the_gpu_whose_times_stand_beside_them(monkeypatch, tmp_path):
    """Here is a B200 with roofs of its own; the race was on an H200, whose limits are recorded."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    recorded.write(tmp_path, "NVIDIA H200", TIMES | ROOFS)
    recorded.write(tmp_path, "NVIDIA B200", {name: 3 * value for name, value in ROOFS.items()})
    here = engine.GPU("NVIDIA B200", (10, 0), 1 << 30, "600.1", (13, 0), "GPU-0")
    monkeypatch.setattr(engine, "gpu", lambda: here)
    bandwidth, rate, whose = beating_pytorch.limits()
    assert (bandwidth, rate) == (pytest.approx(2e12), 6e14)
    assert whose == "recorded on NVIDIA H200, 2026-01-31"


@pytest.mark.parametrize("gpu, says", [("NVIDIA H100 PCIe", "datasheet"), ("Odd", "no limits are")])
def test_limits_of_a_gpu_without_roofs_are_nobody_elses(monkeypatch, tmp_path, gpu, says):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(engine, "gpu", lambda: None)
    recorded.write(tmp_path, gpu, TIMES)
    recorded.write(tmp_path, "NVIDIA H200", ROOFS)
    bandwidth, rate, whose = beating_pytorch.limits()
    assert says in whose and "H200" not in whose and (says == "datasheet") == (rate < 2e15)
    assert math.isnan(bandwidth) == (gpu == "Odd")


def test_the_front_pages_race_is_of_one_gpu_everywhere(monkeypatch):
    """Whoever has recorded a GPU of their own makes the same README.md."""
    mine = [
        entry("mnist/step/64/ours/bf16", 1.0, gpu="mine"),
        entry("mnist/step/64/pytorch/eager_fp32", 99.0, gpu="mine"),
    ]
    theirs = [
        entry("mnist/step/64/ours/bf16", 2.0, gpu=RECORDED_ON),
        entry("mnist/step/64/pytorch/eager_fp32", 6.0, gpu=RECORDED_ON),
    ]
    monkeypatch.setattr(results, "load", lambda: mine)
    monkeypatch.setattr(results, "everything", lambda: mine + theirs)
    assert front.lead() == (3.0, 3.0)
    assert front.race_at()[0] == {"pytorch/eager_fp32": 6.0, "ours/bf16": 2.0}


def test_a_graph_saves_the_waiting_for_launches():
    alt = beating_pytorch.queues(kernels=4, kernel_us=3, launch_us=5).alt
    assert "one by one: done after 23 µs; one graph: done after 17 µs" in alt
    alt = beating_pytorch.queues(kernels=4, kernel_us=100, launch_us=5).alt
    assert "one by one: done after 405 µs; one graph: done after 405 µs" in alt


@pytest.mark.parametrize(
    "scale, normed, gets",
    [(2, "1, 7, -5, 5", "the 4"), (-1, "-2, -5, 1, -4", "the -2"), (0, "-1, -1", "none of them")],
)
def test_a_gradient_goes_back_to_the_one_that_pooling_took(scale, normed, gets):
    alt = beating_pytorch.there_and_back(scale).alt
    assert f"become {normed}" in alt and f"comes back to {gets}." in alt


def test_a_windows_outputs_have_nine_taps_each_on_its_pixels():
    sheet = beating_pytorch.window_taps()
    assert "moved 0 down and 0 to the right, 0 down and 1 to the right, 1 down" in sheet.alt
    assert sheet.svg().count(">5</text>") == 4 and sheet.svg().count(">9</text>") == 4


@pytest.mark.parametrize("pixel, copies", [(5, 9), (0, 4), (1, 6)])
def test_a_pixel_stands_in_the_matrix_once_for_each_window(pixel, copies):
    sheet = beating_pytorch.im2col(side=4, pixel=pixel)
    assert f"Pixel {pixel} stands in it {copies} times" in sheet.alt


def test_pytorchs_modes_and_best_times_at_a_batch_size(some):
    race = beating_pytorch.race()
    assert beating_pytorch.modes_at(race, 64) == {"eager fp32": 640.0, "graph tf32": 256.0}
    assert beating_pytorch.modes_at(race, 64, few=True) == {"eager fp32": 640.0}
    assert beating_pytorch.best_times(race) == {64: 256.0, 256: 1024.0}


def test_the_few_modes_are_recorded():
    told = beating_pytorch.modes_at(beating_pytorch.race(gpu=RECORDED_ON), 64, few=True)
    assert len(told) == len(beating_pytorch.FEW_MODES)


def test_the_learners_waterfall_tells_ours_from_theirs():
    rows = [
        SimpleNamespace(label="plain", launches=46, kilobytes=2982.0, mine=()),
        SimpleNamespace(label="less", launches=20, kilobytes=756.0, mine=("a",)),
    ]
    fig = beating_pytorch.your_waterfall(rows)
    assert "less: 20 launches, 756 kB, 1 kernel of yours" in fig.alt
    titles = [axes.get_title(loc="left") for axes in fig.axes]
    assert titles == ["launches", "kB per digit"]
    assert [text.get_text() for text in fig.axes[1].texts] == ["2,982", "756"]
    assert "nothing recorded" in beating_pytorch.your_waterfall([]).alt


def test_the_short_race_marks_what_is_recorded_and_what_is_theirs(some, none):
    times = {"pytorch/eager_fp32": (300.0, 1.0), "ours/fp16": (50.0, 1.0), "yours": (70.0, 1.0)}
    sheet = beating_pytorch.short_race(times, ["head"], "Tesla T4")
    assert "Tesla T4: PyTorch, eager, fp32 300 µs; the course's kernels, fp16 50 µs" in sheet.alt
    assert "with your kernels (head)" in sheet.svg()
    assert "nothing recorded yet" in beating_pytorch.short_race({}).alt


def test_without_a_gpu_the_short_race_is_the_recorded_one(some):
    counted = SimpleNamespace(launches=16, kilobytes=171.0)
    alt = beating_pytorch.short_race({}, row=counted).alt
    assert "recorded on G, 2026-01-31" in alt
    assert alt.endswith("Your trainer: 16 launches, 171 kB per digit, counted here")


@pytest.mark.parametrize("gpu, is_there", [("", True), ("G", True), ("another", False)])
def test_the_solutions_stand_beside_the_short_race_of_their_gpu(some, monkeypatch, gpu, is_there):
    solved = entry("mnist/yours/64/time", 128.0)
    monkeypatch.setattr(results, "everything", lambda: [*ENTRIES, solved])
    times = {"pytorch/eager_fp32": (300.0, 1.0)} if gpu else {}
    alt = beating_pytorch.short_race(times, gpu=gpu).alt
    assert ("with the exercises' sample solutions, recorded 128 µs" in alt) == is_there


def test_an_ablation_says_how_much_longer_a_step_takes(some, monkeypatch):
    """What is missed most stands first, and ends at the edge where all others would vanish."""
    steps = {"nothing": 50.0, "two_branches": 55.0, "tensor_cores": 500.0, "one_graph": 60.0}
    ablated = [entry(f"mnist/ablation/64/{idea}", us) for idea, us in steps.items()]
    ablated += [
        entry("mnist/ablation/4096/nothing", 1000.0),
        *(entry(f"mnist/ablation/4096/{idea}", 1500.0) for idea in steps if idea != "nothing"),
    ]
    monkeypatch.setattr(results, "load", lambda: ablated)
    fig = beating_pytorch.ablation()
    assert "batch 64: tensor cores +900%, one graph +20%, two branches +10%" in fig.alt
    few, many = fig.axes
    labels = [label.get_text() for label in few.get_yticklabels()]
    assert labels == ["without tensor cores", "without one graph", "without two branches"]
    assert [text.get_text() for text in few.texts] == ["//", "+900%", "+20% ± 2%", "+10% ± 2%"]
    assert [text.get_text() for text in many.texts] == ["+50%"] * 3  # their spread is a thousandth
    cut, longest, _ = (bar.get_width() for bar in few.patches)
    assert cut < 2 * longest and longest == pytest.approx(0.2)


def test_what_an_idea_saves_stands_beside_what_it_saved(monkeypatch):
    ladder = {"0_units": 900.0, "1_tensor_cores_tf32": 300.0, "2_two_branches": 295.5, "10_a": 50.0}
    without = {"nothing": 50.0, "tensor_cores": 170.0, "two_branches": 57.8}
    found = [entry(f"mnist/waterfall/{name}", us) for name, us in ladder.items()]
    found += [entry(f"mnist/ablation/64/{name}", us) for name, us in without.items()]
    monkeypatch.setattr(results, "load", lambda: found)
    table = beating_pytorch.saved()
    assert table.rows == [["tensor cores", "600.0", "120.0"], ["two branches", "4.5", "7.8"]]
    added, now = table.note.split("; ")
    assert added.startswith("added: ") and now.startswith("in the finished step: ")


def test_the_last_rows_begin_with_pytorchs_best():
    rows = {
        "PyTorch, eager": 900.0,
        "… as one graph": 100.0,
        "ours: naive": 200.0,
        "ours: a": 199.0,
    }
    assert beating_pytorch.last_rows(rows) == {"PyTorch's best": 100.0, "ours: a": 199.0}
    assert beating_pytorch.last_rows({"ours: naive": 200.0}) == {"ours: naive": 200.0}
    assert beating_pytorch.last_rows({}) == {}


def test_the_map_shows_a_kernel_under_the_layers_that_it_computes_again():
    """Both convolutions' backward kernels make the first block again, from the pixels."""
    rows = {name: (first, last) for name, first, last, *_ in beating_pytorch.KERNELS}
    again = [name for name in rows if beating_pytorch.LAYERS_OF[name].get("conv1")]
    assert again == ["conv_forward", "conv_backward_input", "conv_backward_weights"]
    assert all(rows[name][0] == 0 for name in again)


def test_the_front_pages_film_stops_at_a_race_and_its_cure_has_none():
    raced, cured = front.films().values()
    assert raced.races and not cured.races
    film = raced.play().films[0]
    assert "RACE" in film.describe(film.data["stop"])


def test_the_film_of_kernels_counts_the_bytes_that_have_moved():
    """All eight together move what the finished trainer is said to move for a digit."""
    said = [text.get_text() for text in beating_pytorch.kernel_map(8).axes[0].texts]
    everything = sum(read + written for *_, read, written in beating_pytorch.KERNELS)
    assert any(f"after 8 kernels {beating_pytorch.size(everything)}" in text for text in said)
    early = [text.get_text() for text in beating_pytorch.kernel_map(1).axes[0].texts]
    assert any("after 1 kernel 784 B" in text for text in early)
    assert sum(text.startswith("in ") for text in early) == 1
