"""The judge of the ladders takes what it is given, says whose it is, and names what is wrong."""

import numpy as np
import pytest
from numba import cuda, float32

from course.kernels.reductions import climbing, scan_ladder, scan_lookback, scan_uses, sum_ladder
from tests.needs import cpp_compiler, without_gpu

cpp_compiler()
HOST = np.random.default_rng(4).random(5_003, dtype=np.float32)
THREADS = 256


@cuda.jit
def sum_hasty(x, sums):
    tree = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tree[t] = x[i] if i < x.size else 0
    step = THREADS // 2
    while step > 0:
        if t < step:
            tree[t] += tree[t + step]
        step //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = tree[0]


@cuda.jit
def sum_twice(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, 2 * x[i])


@cuda.jit
def sum_waits(x, out):
    while cuda.atomic.add(out, 0, 0) == 0:  # nobody adds anything
        pass


@cuda.jit
def keeps_one_further(x, marks, places, out):
    i = cuda.grid(1)
    if i < x.size and marks[i]:
        out[places[i]] = x[i]


@pytest.fixture(scope="module")
def judge():
    return climbing.Sums(HOST)


@without_gpu("nothing is timed")
def test_what_was_climbed_stands_in_the_table(capsys):
    judge = climbing.Sums(HOST)
    for name in ("wide", "sequential"):
        judge.climb(name, sum_ladder.RUNGS[name].kernel)
    judge.table()
    said = capsys.readouterr().out
    assert "yours" not in said
    titles = [sum_ladder.RUNGS[name].title for name in ("sequential", "wide")]
    assert said.index(f"\n{titles[0]} ") < said.index(f"\n{titles[1]} ")  # not as climbed
    assert all(f"\n{sum_ladder.RUNGS[name].title} " in said for name in ("sequential", "wide"))
    assert "atomics" not in said


def test_a_wrong_kernel_is_not_timed(judge, capsys):
    with pytest.raises(climbing.NotRight, match="Numba, 1 elements: .* would be right"):
        judge.climb("atomic", sum_twice)
    assert "yours" in capsys.readouterr().out


def test_the_tracer_names_a_race(judge, capsys):
    judge.watch("sequential", sum_hasty)
    said = capsys.readouterr().out
    assert "yours" in said
    assert "RACE on tree[" in said
    judge.watch("sequential", sum_ladder.sum_sequential)
    assert capsys.readouterr().out == "✓ right, and no race\n"


@pytest.mark.nightly("sums in eight orders each take eight seconds")
@without_gpu("a GPU chooses its own orders")
def test_atomics_have_several_sums_and_fixed_orders_one(judge, monkeypatch):
    assert judge.different("wide") > 1
    monkeypatch.setattr(climbing, "RUNS_ON_CPU", 3)
    assert judge.different("last_block") == 1


def test_c_is_tried(judge, capsys):
    judge.tried("shuffle")
    climbing.Scans(HOST).tried("look_back", scan_lookback.look_back)
    assert capsys.readouterr().out == "✓ right\n✓ right\n"


def test_a_compaction_is_watched(capsys):
    scan_uses.watch_compaction(scan_uses.gather_marked, HOST[:200], 0.9)
    assert "✓ right" in capsys.readouterr().out
    scan_uses.watch_compaction(keeps_one_further, HOST[:200], 0.9)
    said = capsys.readouterr().out
    assert "yours" in said
    assert "OUT OF BOUNDS" in said


def test_keys_are_sorted_bit_by_bit():
    from course.exercises.reductions import split

    keys = np.random.default_rng(5).integers(0, 256, 300).astype(np.int32)
    np.testing.assert_array_equal(scan_uses.sort_by_bits(split, keys), np.sort(keys))


def test_every_rung_has_its_kernel():
    for rung in (*sum_ladder.RUNGS.values(), *scan_ladder.RUNGS.values(), scan_lookback.RUNG):
        assert callable(rung.launch)
        assert not climbing.is_yours(rung.kernel, rung.kernel)


@without_gpu("the CPU engines alone are interrupted")
def test_what_never_ends_is_stopped(judge, capsys, monkeypatch):
    monkeypatch.setattr(climbing, "SECONDS", 0.3)
    judge.tried("atomic", sum_waits)
    assert "It was stopped after 0.3 seconds." in capsys.readouterr().out
