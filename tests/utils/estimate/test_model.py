"""The model: terms, how they are joined, GPUs; and the sentence that an estimate says."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from numba import cuda, float32

from utils import results
from utils.estimate import Blank, Launch, estimate
from utils.estimate.gpus import NAMES, gpu, with_article, with_bandwidth
from utils.estimate.model import WORDS, Counts, along, terms, together

AMOUNTS = ("read_lines", "shared_passes", "fp32", "integer", "special", "barriers", "write_sectors")


@cuda.jit
def copy(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i]


@cuda.jit
def add(out, a, b):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit
def turn(out, a):
    tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    tile[y, x] = a[row, column]
    cuda.syncthreads()
    for _ in range(8):
        tile[x, y] = tile[x, y] + tile[y, x]
    out[row, column] = tile[x, y]


def copying(n, threads=256):
    return Launch(copy, n // threads, threads, (Blank(n), Blank(n)))


def drawn(seed) -> Counts:
    """Counts of a launch that nobody wrote."""
    rng = np.random.default_rng(seed)
    amounts = Counter({name: int(rng.integers(1, 1 << 30)) for name in AMOUNTS})
    amounts.update(
        l2_read_0=int(rng.integers(1, 1 << 28)), l2_read_1024=int(rng.integers(1, 1 << 20))
    )
    waits = Counter(steps=int(rng.integers(10, 5000)), shared=int(rng.integers(1, 50)))
    moved = {"read": int(rng.integers(1, 1 << 32)), "write": int(rng.integers(1, 1 << 32))}
    blocks, threads = int(rng.integers(1, 1 << 20)), 32 * int(rng.integers(1, 33))
    return Counts(blocks, threads, amounts, waits, moved, {}, (), {}, 0, 32)


@pytest.mark.parametrize("seed", range(6))
def test_more_of_anything_never_takes_less(seed):
    counts = drawn(seed)
    before = terms(counts, gpu("H200")).time
    for name in AMOUNTS:
        more = dataclasses.replace(counts, amounts=counts.amounts + Counter({name: 1 << 30}))
        assert terms(more, gpu("H200")).time >= before, name
    longer = dataclasses.replace(counts, waits=counts.waits + Counter(steps=10_000))
    assert terms(longer, gpu("H200")).time > before


@pytest.mark.parametrize("seed", range(6))
def test_the_time_lies_between_the_longest_term_and_their_sum(seed):
    found = terms(drawn(seed), gpu("H200"))
    longest = max(found.seconds.values())
    assert longest <= found.time - found.start <= sum(found.seconds.values())
    assert found.seconds[found.limit] == longest
    assert found.limit in WORDS


def test_near_equal_terms_disturb_one_another_and_far_ones_do_not():
    assert together([1.0, 1.0], 3) == pytest.approx(2 ** (1 / 3))
    assert together([1.0, 0.01], 3) == pytest.approx(1, abs=1e-5)
    assert together([], 3) == 0


def test_a_curve_is_straight_between_its_points_and_beyond_them():
    points = (0, 0.0), (10, 4.0), (20, 5.0)
    assert along(points, 5) == 2
    assert along(points, 15) == 4.5
    assert along(points, 40) == pytest.approx(7)


def test_large_sums_are_limited_by_memory_tiny_blocks_by_their_start():
    n = 1 << 26
    assert estimate(Launch(add, n // 512, 512, (Blank(n),) * 3)).limit == "memory"
    assert estimate(copying(n, 32)).limit == "blocks"


def test_few_threads_wait_for_latency():
    assert estimate(copying(1 << 10)).seconds < 10e-6
    assert estimate(Launch(copy, 1, 32, (Blank(32), Blank(32)))).limit == "latency"


@pytest.mark.parametrize("name", NAMES)
def test_every_gpu_has_constants_and_says_where_from(name):
    card = gpu(name)
    assert card.name == name and card.how in ("measured", "data sheet")
    assert all(rate > 0 for rate in card.rates.values())
    found = estimate(copying(1 << 28), name)
    assert 0 < found.seconds < 1
    assert ("by its data sheet" in repr(found)) == (card.how == "data sheet")


def test_gpus_of_less_bandwidth_copy_more_slowly():
    times = [
        estimate(copying(1 << 28), name).seconds for name in ("B200", "H200", "H100", "A100", "T4")
    ]
    assert times == sorted(times)


def test_a_gpu_with_another_memory_is_one_that_nobody_judged():
    launch = copying(1 << 28, 512)
    plain, faster = estimate(launch), estimate(launch, with_bandwidth("H200", 2))
    memory = plain.terms.seconds["memory"]
    assert faster.terms.seconds["memory"] == pytest.approx(memory / 2)
    assert faster.seconds < plain.seconds and faster.factor > plain.factor
    assert "on an H200 with 2 times the bandwidth (estimate" in repr(faster)
    assert with_bandwidth("T4", 1) is gpu("T4")


def test_an_unknown_gpu_is_answered_with_those_there_are():
    with pytest.raises(LookupError, match="H200"):
        gpu("Voodoo 2")


def test_the_sentence_says_estimate_limit_error_and_what_would_help():
    side = 1 << 12
    launch = Launch(turn, (side // 32, side // 32), (32, 32), (Blank((side, side)),) * 2)
    found = estimate(launch)
    text = repr(found)
    assert "estimate" in text and "nine in ten" in text and WORDS[found.limit] in text
    assert "without its bank conflicts about" in text
    assert found.changes()["without its bank conflicts"] < found.seconds


def test_an_estimate_is_never_recorded(tmp_path, monkeypatch):
    path = tmp_path / "lines.jsonl"
    monkeypatch.setenv(results.RECORD, str(path))
    repr(estimate(copying(1 << 20)))
    assert not path.exists()


def test_its_table_has_every_term():
    found = estimate(copying(1 << 20))
    assert len(found.table().splitlines()) == len(found.terms.seconds) + 1


@pytest.mark.parametrize(
    ("name", "words"), [("H100", "an H100"), ("T4", "a T4"), ("RTX 4090", "an RTX 4090")]
)
def test_a_gpu_has_its_article(name, words):
    assert with_article(name) == words
