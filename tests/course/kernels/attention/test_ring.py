"""Ring attention: who does what, what is merged, and the whole against float64, on devices that
the processor plays; the bench's session with ranks that are threads.
"""

import itertools
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from course.kernels.attention import bench_ring, reference, rightness, ring
from course.kernels.attention.reference import Case
from course.kernels.many_gpus import communicator as comm
from tests.compiling import needs_nvcc, unspilled
from utils import has_gpu, results
from utils.files import ROOT
from utils.tools import process

# ---- who does what


@pytest.mark.parametrize("zigzag", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_turns_are_the_causal_mask(ranks, zigzag):
    length = 12 * ranks
    rows = ring.shares(length, ranks, zigzag)
    seen = torch.zeros(length, length, dtype=torch.int)
    for turns in ring.steps(ranks, True, zigzag):
        for rank, turn in enumerate(turns):
            if turn.kind == "skipped":
                continue
            queries, keys = turn.cut(12)
            mine = torch.ones(12, 12, dtype=torch.int)
            if turn.kind == "diagonal":
                mine = mine.tril()
            seen[rows[rank][queries, None], rows[turn.source][keys]] += mine[queries, keys]
    assert torch.equal(seen, torch.ones_like(seen).tril())


@pytest.mark.parametrize("causal, zigzag", [(False, False), (True, False), (True, True)])
def test_in_each_turn_every_block_is_at_one_rank(causal, zigzag):
    for turns in ring.steps(4, causal, zigzag):
        assert sorted(turn.source for turn in turns) == [0, 1, 2, 3]


def test_zigzag_makes_causal_work_even():
    def work(zigzag):
        every = ring.steps(4, True, zigzag)
        return [sum(ring.KINDS[turns[rank].kind] for turns in every) for rank in range(4)]

    assert work(False) == [0.5, 1.5, 2.5, 3.5]
    assert work(True) == [2.0] * 4


def test_a_length_that_cannot_be_shared_out_is_refused():
    with pytest.raises(ValueError, match="30 rows cannot be shared out in 4"):
        ring.shares(30, 2, True)
    q, k, v = reference.inputs(Case(1, 4, 8, dim=64))
    with pytest.raises(ValueError, match="as many keys as queries, not 8"):
        ring.ring(q, k, v)


# ---- merging


def some_parts(turns=3, queries=5, heads=2, dim=64):
    """(parts, their logarithms): of query 0 no part has anything, of query 1 one, and so on."""
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(turns, 2, queries, heads, dim, generator=generator).bfloat16()
    lse = 100 * torch.randn(turns, 2, heads, queries, generator=generator)
    for query in range(turns):
        lse[query:, ..., query] = -torch.inf
    parts[lse.mT.eq(-torch.inf)] = torch.nan  # nobody has written there
    return parts.to(reference.DEVICE), lse.to(reference.DEVICE)


def test_parts_are_merged_and_empty_ones_are_left_out():
    parts, lse = some_parts()
    out = torch.full(parts.shape[1:], torch.nan, dtype=torch.bfloat16, device=parts.device)
    of_all = torch.full(lse.shape[1:], torch.nan, device=lse.device)
    ring.merge(out, of_all, parts, lse)
    exact = lse.double().logsumexp(0)
    weights = (lse.double() - exact).exp().nan_to_num(0.0)
    expected = (weights.mT[..., None] * parts.double().nan_to_num(0.0)).sum(0)
    torch.testing.assert_close(out.double(), expected, rtol=2**-8, atol=1e-5)
    torch.testing.assert_close(of_all.double(), exact, rtol=1e-6, atol=1e-5)
    assert not out[:, 0].any()
    assert torch.all(of_all[..., 0] == -torch.inf)


# ---- the whole


@pytest.mark.parametrize("case, ranks, zigzag", bench_ring.VIRTUAL)
def test_a_ring_is_one_attention(case, ranks, zigzag):
    assert 0 < bench_ring.check_virtual(case, ranks, zigzag)


@pytest.mark.nightly("by day the same checks without the command")
@pytest.mark.skipif(has_gpu(), reason="devices that the processor plays")
def test_the_command_checks_on_devices_of_their_own(tmp_path):
    out = tmp_path / "ring.jsonl"
    command = [sys.executable, "-m", "course.kernels.attention.bench_ring", "--out", str(out)]
    done = process.run(command, timeout=600, env={**os.environ, "CUDA_CPU_DEVICES": "4"}, cwd=ROOT)
    assert "two GPUs are needed" in done.output
    checks = json.loads(out.with_suffix(".json").read_text())["checks"].values()
    assert len(checks) == len(bench_ring.VIRTUAL)
    assert all(0 < error <= 1 for error in checks)


@pytest.mark.parametrize("mistake", ["diagonal everywhere", "keys of the wrong rank", "no merge"])
def test_a_mistake_is_told(mistake, monkeypatch):
    def changed(rank, number, ranks, causal, zigzag):
        turn = right(rank, number, ranks, causal, zigzag)
        if mistake == "diagonal everywhere":
            return ring.Turn(turn.source, "diagonal")
        return ring.Turn((turn.source + 1) % ranks, turn.kind)

    right = ring.turn_of
    if mistake == "no merge":
        monkeypatch.setattr(ring, "merge", lambda out, lse, parts, part_lse: out.copy_(parts[0]))
    else:
        monkeypatch.setattr(ring, "turn_of", changed)
    case = Case(1, 32, heads=1, dim=64, causal=mistake == "no merge")
    with pytest.raises(AssertionError):
        bench_ring.check_virtual(case, 2, case.causal)


# ---- what ran when


def test_hidden_is_what_of_the_copies_lies_beside_work():
    work = [ring.Span("work", 0, 0, 4), ring.Span("work", 1, 5, 6)]
    copies = [ring.Span("copy", 1, 3, 5), ring.Span("copy", 2, 5, 7)]
    assert ring.hidden([*work, *copies, ring.Span("merge", 1, 3, 7)]) == (1 + 1) / 4
    assert ring.hidden(work) == 1


class Tick:
    """An event of a clock that ticks once for each event."""

    def __init__(self, time):
        self.time = time

    def elapsed_time(self, later):
        return later.time - self.time


def test_a_timeline_has_every_turn(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(ring, "mark", lambda stream: Tick(next(ticks)))
    q, k, v = reference.inputs(Case(1, 8, heads=1, dim=64))
    first, second = ring.devices(2, ring.heap_for(k))
    ranks = [ring.Rank(each, q, k, v) for each in (first, second)]
    spans = ranks[0].timeline()
    assert [(span.what, span.turn) for span in spans] == [
        ("copy", 1),
        ("work", 0),
        ("work", 1),
        ("merge", 1),
    ]
    assert [(span.begin, span.end) for span in spans] == [(1, 2), (3, 4), (5, 6), (7, 8)]
    for each in (first, second):
        each.close()


# ---- the bench


class Group:
    """A rank that is a thread."""

    def __init__(self, rank, size, everyone, meeting):
        self.rank, self.size = rank, size
        self._everyone, self._meeting = everyone, meeting

    def all_gather(self, value=None):
        self._everyone[self.rank] = value
        self._meeting.wait(60)
        values = list(self._everyone)
        self._meeting.wait(60)
        return values

    def barrier(self):
        self.all_gather()


@pytest.mark.skipif(has_gpu(), reason="devices that the processor plays")
def test_a_session_checks_measures_and_records(monkeypatch, capsys):
    recorded = {}
    one_at_a_time = threading.RLock()

    def runs_of(run):
        with one_at_a_time:
            run()
        return [1.0, 1.5, 1.0, 1.25]

    small = [Case(1, 32, heads=2, dim=64), Case(1, 16, heads=2, dim=64, causal=True)]
    monkeypatch.setattr(bench_ring, "SMALL", small)
    monkeypatch.setattr(bench_ring, "LENGTHS", {2: (16, 32), 4: ()})
    monkeypatch.setattr(bench_ring, "HEADS", 1)
    monkeypatch.setattr(bench_ring, "ROUNDS", 1)
    monkeypatch.setattr(bench_ring, "milliseconds", runs_of)
    monkeypatch.setattr(results, "record", lambda name, *value: recorded.update({name: value}))
    spans = [ring.Span("copy", 1, 1, 3), ring.Span("work", 0, 2, 4)]
    monkeypatch.setattr(ring.Rank, "timeline", lambda self: spans)
    run = ring.Rank.run

    def one_run(self, overlap=True):
        with one_at_a_time:
            return run(self, overlap)

    monkeypatch.setattr(ring.Rank, "run", one_run)
    communicators = ring.devices(2, 1 << 20)
    everyone, meeting = [None, None], threading.Barrier(2)

    def connected(group, heap, scratch):
        mine = communicators[group.rank]
        mine.group = group
        monkeypatch.setattr(mine, "connect", lambda: mine, raising=False)
        return mine

    monkeypatch.setattr(comm, "Communicator", connected)
    groups = [Group(rank, 2, everyone, meeting) for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(bench_ring.session, groups, [1e3, 1e3]))
    assert recorded["attention/ring/2/share_of_one"][0] == 0.5  # as long as alone, half of the work
    for length in (16, 32):
        for kind in ("ring", "ring_causal"):
            name = f"attention/{kind}/2/{length}"
            assert recorded[f"{name}/share_of_one"][:2] == (0.5, "1")
            assert recorded[f"{name}/copy"][:2] == (1.125e-3, "s")
            assert recorded[f"{name}/hidden"] == (0.5,)
            end = "/".join((name, "timeline", "work", "0", "end"))
            assert recorded[end] == (4e-3, "s")
    assert "of what roundings explain" in capsys.readouterr().out


# ---- compiled


@pytest.mark.nightly("by day the CPU runtime builds it")
@needs_nvcc
def test_the_kernel_that_merges_compiles_without_spills(tmp_path):
    unspilled(rightness.hopper.KERNELS / "ring.cu", tmp_path, "sm_80")
