"""The ladder's judge finds wrong products, and its records say whose they are."""

import json
from types import SimpleNamespace

import pytest
import torch

from course.kernels.matmul import ladder, numba_rungs, records, search
from course.kernels.matmul.records import Measured
from tests.needs import without_gpu
from utils import hardware, results, timing

SHAPES = ((37, 70, 19), (1, 1, 1))


# ---- right or wrong


def one_element_left_out(c, a, b):
    kept = c[-1, -1].clone()
    torch.matmul(a, b, out=c)
    c[-1, -1] = kept


def last_of_k_left_out(c, a, b):
    torch.matmul(a[:, :-1], b[:-1], out=c)


def rounded_to_tf32(c, a, b):
    torch.matmul(a.bfloat16().float(), b.bfloat16().float(), out=c)


@pytest.mark.parametrize("wrong", [one_element_left_out, last_of_k_left_out, rounded_to_tf32])
def test_a_wrong_product_is_found(wrong):
    with pytest.raises(AssertionError, match="wrong is wrong at 37 × 70 × 19"):
        ladder.prove("wrong", wrong, SHAPES)


def test_a_right_product_errs_by_roundings_alone():
    torch.manual_seed(0)
    error = ladder.prove("torch", ladder.cublas, SHAPES)
    assert 0 < error <= ladder.bound("fp32", 19)


def test_bounds_grow_with_the_sum_and_with_the_steps_of_a_type():
    assert ladder.bound("fp32", 4096) == 8 * ladder.bound("fp32", 64)
    assert ladder.bound("fp32", 4096) < ladder.bound("tf32", 4096) < ladder.bound("bf16", 4096)


def test_a_shape_that_a_kernel_cannot_take_is_refused(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(
        "__global__ void matmul(float* c, const float* a, const float* b, int m, int n, int k) {}"
    )
    multiply = ladder.launcher(path, (8, 8), 64, multiple=8)
    with pytest.raises(ValueError, match="multiples of 8 here, not 12 and 8"):
        multiply(*ladder.operands(4, 12, 8))


@without_gpu("what stands in for a time without a GPU")
def test_without_a_gpu_a_rung_is_checked_and_its_record_shown(capsys):
    rungs = ladder.Ladder()
    rungs.add("naive", ladder.cublas)
    rungs.climb("naive")
    printed = capsys.readouterr().out
    assert printed.startswith("✓ naive is right at 37 × 70 × 19")
    assert "recorded on" in printed
    assert rungs.best_of("fp32", 4096, ["naive", "tile"]) == "tile"
    rungs.record_best("fp32", 4096, "naive")
    assert "of cuBLAS" in capsys.readouterr().out


def test_the_best_is_the_one_with_the_largest_share():
    rungs = ladder.Ladder()
    for name, share in (("a", 0.5), ("b", 0.9), ("c", 0.7)):
        rungs.measured["fp32", 64, name] = Measured(1e12, share)
    assert rungs.best_of("fp32", 64, ("a", "b", "c", "d")) == "b"


def test_a_prediction_is_kept_and_dots_are_none(capsys):
    rungs = ladder.Ladder()
    rungs.predict("tile")
    assert not rungs.predictions and "in place of the dots" in capsys.readouterr().out
    rungs.predict("tile", 20)
    assert rungs.predictions == {"tile": 0.2}


TILE = {"tile": (32, 32), "threads": (32, 32)}


@without_gpu("the CPU runtime, which counts")
def test_what_a_rung_asks_of_memory_is_counted_for_a_multiply_add(capsys):
    rungs = ladder.Ladder()
    rungs.climb("tile", make=lambda: ladder.launcher(ladder.KERNELS / "tile.cu", **TILE))
    assert rungs.asked["tile"].global_bytes == 2 * 4 / 32  # a value of each, for 32 multiply-adds
    assert rungs.asked["tile"].shared == 2 + 2 / 32  # both are read, and were stored before
    assert "0.25 bytes of global memory, 2.06 accesses" in capsys.readouterr().out
    assert rungs.shares(also=["naive"])[1].keys() == {"tile", "naive"}


@without_gpu("the CPU runtime, which counts")
def test_of_a_rung_that_nobody_recorded_what_its_accesses_allow_is_told(capsys, tmp_path):
    path = tmp_path / "tile.cu"
    path.write_text((ladder.KERNELS / "tile.cu").read_text())
    ladder.Ladder().climb("mine", make=lambda: ladder.launcher(path, **TILE))
    said = capsys.readouterr().out
    assert "it can reach 12% of the peak at most" in said and "rung 3 can reach 12%" in said
    assert "recorded on" not in said


def test_an_element_that_is_nan_is_told_as_what_nobody_wrote(capsys):
    assert not ladder.is_right(lambda: lambda c, a, b: None)
    assert "some elements are NaN, as where nothing was written" in capsys.readouterr().out


@without_gpu("the CPU runtime, which names the mistake")
def test_a_wrong_kernel_is_told_and_nothing_is_raised(capsys, tmp_path):
    text = (ladder.KERNELS / "tile.cu").read_text()
    path = tmp_path / "tile.cu"
    path.write_text(text.replace("        __syncthreads();  // nobody reads them any more\n", ""))
    ladder.tried(lambda: ladder.launcher(path, **TILE))
    said = capsys.readouterr().out
    assert said.count("without a barrier between") == 1 and "more, often of the same cause" in said
    ladder.tried(lambda: ladder.launcher(ladder.KERNELS / "tile.cu", **TILE))
    assert "✓ right" in capsys.readouterr().out


# ---- the search

CHOICE = {"BM": 64, "BN": 64, "WM": 32, "WN": 32, "TM": 8, "TN": 4, "BLOCKS": 4, "BK": 8}


def test_a_choice_says_threads_bytes_and_its_record():
    choice = {**CHOICE, "STAGES": 4}
    assert search.threads(choice) == 128
    assert search.shared(choice) == 4 * 4 * 8 * (64 + 4 + 64)
    assert search.slug(choice) == "matmul/search/bm64_bn64_wm32_wn32_tm8_tn4_blocks4_bk8_stages4"
    assert search.tiles_of(65, 64, choice) == (1, 2)


def test_a_tuned_product_is_right_with_and_without_each_switch():
    for more in ({}, {"AHEAD": 0}, {"TO_AND_FRO": 0}):
        multiply = search.tuned({**CHOICE, "STAGES": 3, **more})
        ladder.prove(str(more), multiply, ((37, 70, 19), (64, 64, 24)))


def test_every_choice_of_the_chapter_comes_out_even():
    assert len(search.EVERY) == 15
    for choice in search.EVERY.values():
        threads = search.threads(choice)
        assert choice["BM"] * choice["BK"] % threads == threads % choice["BK"] == 0
        assert choice["BK"] * choice["BN"] % (4 * threads) == 4 * threads % choice["BN"] == 0
        assert search.shared(choice) * choice["BLOCKS"] <= 227 << 10


@pytest.mark.parametrize("kib_of_an_sm, blocks", [(228, 2), (100, 1)])
def test_places_are_no_more_than_shared_memory_holds(monkeypatch, kib_of_an_sm, blocks):
    """Blocks wait for one another in stream-K: all must run at once."""
    sm = SimpleNamespace(
        max_shared_memory_per_multiprocessor=kib_of_an_sm << 10,
        reserved_shared_memory_per_block=1 << 10,
    )
    monkeypatch.setattr("cuda.core.Device", lambda: SimpleNamespace(properties=sm))
    monkeypatch.setattr(search, "has_gpu", lambda: True)
    monkeypatch.setattr(search, "machine", lambda: SimpleNamespace(sms=10))
    choice = search.EVERY["128 × 128, warps 64 × 32", "BK 32, 3 stages"]  # 98 KB a block
    assert search.places(choice) == 10 * blocks


@pytest.mark.parametrize("name", numba_rungs.RUNGS)
def test_a_rung_in_numba_is_right(name):
    ladder.prove(name, numba_rungs.multiplier(name), ((37, 70, 19),))


# ---- records


def entry(name, value, unit="1", gpu="NVIDIA Test", date="2026-01-02T03:04:05Z"):
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "spread": 0.0,
        "gpu": gpu,
        "driver": "1",
        "versions": {"python": "3"},
        "date": date,
    }


@pytest.fixture
def one_ladder(tmp_path):
    """A results file with two rungs, one of them without an error."""
    entries = [
        entry("matmul/fp32/4096/naive/share_of_cublas", 0.01),
        entry("matmul/fp32/4096/naive/rate", 5e11, "FLOP/s"),
        entry("matmul/fp32/4096/naive/error", 1e-5),
        entry("matmul/fp32/4096/cublas/rate", 5e13, "FLOP/s"),
        entry("matmul/fp32/256/tile/share_of_cublas", 0.5),
        entry("matmul/fp32/256/tile/rate", 1e12, "FLOP/s"),
        entry("matmul/fp32/4096/share_of_cublas", 0.9),
        entry("copy/rate", 1.0, "B/s"),
    ]
    gpu = {
        "name": "NVIDIA Test",
        "compute_capability": "9.0",
        "sms": 132,
        "memory_bytes": 1,
        "driver": "1",
        "cuda": "13.0",
    }
    content = {
        "schema": 1,
        "gpu": gpu,
        "date": "2026-01-02T03:04:05Z",
        "versions": {"python": "3"},
        "results": entries,
    }
    (tmp_path / "nvidia-test.json").write_text(json.dumps(content))
    return tmp_path


def test_a_recorded_ladder_is_read_rung_by_rung(one_ladder):
    whose, found = records.recorded(one_ladder)
    assert whose == "NVIDIA Test, 2026-01-02"
    assert found["fp32", 4096, "naive"] == Measured(5e11, 0.01, 1e-5)
    assert found["fp32", 256, "tile"] == Measured(1e12, 0.5, None)
    assert found["fp32", 4096, "cuBLAS"].rate == 5e13
    assert "share_of_cublas" not in {rung for _, _, rung in found}


def test_nothing_recorded_is_said(tmp_path, monkeypatch):
    assert records.recorded(tmp_path) == ("", {})
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert "nothing is recorded" in records.recorded_line("matmul/fp32/4096/naive")


def test_a_line_says_gpu_date_share_and_error(one_ladder, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", one_ladder)
    line = records.recorded_line("matmul/fp32/4096/naive")
    assert (
        "NVIDIA Test, 2026-01-02" in line and "0.50 TFLOP/s, 1.0% of cuBLAS; error 1.0e-05" in line
    )


def test_the_table_has_only_rungs_whose_error_is_known(one_ladder):
    lines = records.table(records.recorded(one_ladder)[1]).splitlines()
    assert len(lines) == 1 and "naive" in lines[0] and "1.0e-05" in lines[0]


@without_gpu("asks for the data sheet that stands in for a GPU")
def test_without_a_gpu_the_roofs_are_a_data_sheets_and_say_so():
    whose, peak, bandwidth = hardware.fp32_roofs()
    assert "data sheet" in whose and 60e12 < peak < 70e12 and 4e12 < bandwidth < 5e12


# ---- the race, with a clock that stands in for a GPU's


def pretended(rivals, *, flops, name):
    """What `compare` returns: every rival has run once; cuBLAS takes 2 ms, the others 4."""
    timings = {}
    for label, run in rivals.items():
        run()
        median = 2.0 if label == "cuBLAS" else 4.0
        timings[label] = timing.Timing(f"{name}/{label}", (median, median), flops=flops)
    return timing.Comparison(timings)


@pytest.fixture
def raced(monkeypatch):
    """A ladder that takes itself to be on a GPU, and what it recorded."""
    entries = []
    monkeypatch.setattr(ladder, "has_gpu", lambda: True)
    monkeypatch.setattr(ladder, "compare", pretended)
    monkeypatch.setattr(ladder.results, "append", entries.append)
    rungs = ladder.Ladder()
    for name in ("slow", "half"):
        rungs.add(name, ladder.cublas)
    return rungs, entries


def test_a_race_records_share_and_error(raced, capsys):
    rungs, entries = raced
    rungs.climb("half", n=48, shapes=SHAPES)
    assert "✓ half, fp32, 48:" in capsys.readouterr().out
    found = rungs.measured["fp32", 48, "half"]
    assert found.share == 0.5 and found.rate == pytest.approx(2 * 48**3 / 4e-3)
    recorded_as = {entry["name"]: entry["value"] for entry in entries}
    assert recorded_as["matmul/fp32/48/half/share_of_cublas"] == 0.5
    assert recorded_as["matmul/fp32/48/half/error"] == found.error
    assert "matmul/fp32/48/share_of_cublas" not in recorded_as
    rungs.record_best("fp32", 48, "half")
    assert "matmul/fp32/48/share_of_cublas" in {entry["name"] for entry in entries}


def test_several_rungs_race_in_turn_each_with_its_own_kernel(raced):
    rungs, entries = raced
    ran = []
    for name in ("slow", "half"):
        rungs.add(name, lambda c, a, b, name=name: ran.append(name))
    rungs.compare("fp32", 32, ["slow", "half"])
    assert ran == ["slow", "half"]
    assert rungs.measured["fp32", 32, "cuBLAS"].share == 1
    assert len(entries) == 2
