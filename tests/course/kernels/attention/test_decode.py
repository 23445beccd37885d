"""Decoding: every rung against float64, on the CPU runtime where there is no GPU; how long a part
is; what does not fit; what NVIDIA's compiler makes of the rungs.
"""

import functools
import operator
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from course.kernels.attention import bench_decode, classic, decode, decode_rightness, reference
from course.kernels.attention.decode import CLUSTER, DECODING, GROUP, RING, Cache, Rung
from course.kernels.attention.decode_rightness import Case
from tests.compiling import needs_nvcc, unspilled
from utils.occupancy import ceil_div

# ---- the rungs

SMALL = [case for case in decode_rightness.CASES if case.dim == 64]
MORE = pytest.mark.nightly("by day the small cases")


def able(name):
    rung = DECODING[name]
    return pytest.mark.skipif(not rung.able(), reason=f"needs {rung.needs.words}")


# the fastest is one of the others, as form_for says
RUNGS = [pytest.param(name, marks=able(name)) for name in DECODING if name != "fastest"]


@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_is_right(name):
    assert 0 < decode_rightness.prove(name, DECODING[name], SMALL)


@MORE
@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_is_right_for_all_cases(name):
    decode_rightness.check(name)


@pytest.mark.parametrize("chunk", [16, 48, 1024])
def test_the_result_is_right_however_long_a_part_is(chunk):
    rung = Rung(partial(decode.attention, chunk=chunk))
    case = Case((1, 15, 16, 17, 48, 49, 260), heads=4, key_heads=2, dim=64)
    decode_rightness.prove("group", rung, [case])


@MORE
@pytest.mark.parametrize("page", [0, 16, 48])
def test_the_fastest_is_right_for_every_length(page):
    for first in range(1, 258, 8):
        lengths = tuple(range(first, first + 8))
        case = Case(lengths, heads=4, key_heads=2, dim=64, page=page)
        decode_rightness.prove("group", DECODING["group"], [case])


def test_a_cluster_has_blocks_without_keys_and_shares_of_several_queries():
    lengths = (1, 16, 17, 129, 400)
    alike = Case((37, 37), heads=18, key_heads=2, dim=64)  # 9 queries to a head of keys: two blocks
    cases = [Case(lengths, heads=4, key_heads=2, dim=64), alike]
    decode_rightness.prove("cluster", DECODING["cluster"], cases)


def test_a_launch_leaves_the_counters_at_zero_for_the_next():
    q, cache = Case((300,), heads=4, key_heads=2, dim=64).inputs()
    run = partial(decode.attention, q, cache, chunk=64)
    first = run()[0].clone()
    assert torch.equal(run()[0], first)
    _, arrived = decode.WORKSPACE.tensors[q.device]
    assert not arrived.any()


# ---- what is wrong is told


def wrong_head(q, cache, out, lse):
    """Heads of queries that take the heads of keys in turn, and not in groups."""
    heads = [head % cache.keys.shape[2] for head in range(q.shape[2])]
    fill(q, cache, out, lse, lambda x: x[:, :, heads])


def one_key_short(q, cache, out, lse):
    """An index that ends one key too early."""
    fill(q, cache, out, lse, lambda x: x[:, :-1])


def fill(q, cache, out, lse, change):
    for sequence in range(len(q)):
        own = q[sequence : sequence + 1]
        rows = [
            change(decode_rightness.rows_of(x, cache, sequence)) for x in (cache.keys, cache.values)
        ]
        exact, exact_lse = reference.attention(own, *rows)
        out[sequence] = exact[0]
        lse[sequence] = exact_lse[0]


def page_after_page(q, cache, out, lse):
    """A kernel that does not look into the table."""
    pages = torch.arange(cache.table.numel(), device=q.device).int()
    table = pages.reshape(cache.table.shape) + 1
    decode.attention(q, Cache(cache.keys, cache.values, cache.lengths, table), out=out, lse=lse)


@pytest.mark.parametrize(
    "mistake, page", [(wrong_head, 0), (one_key_short, 0), (page_after_page, 16)]
)
def test_a_mistake_is_told(mistake, page):
    case = Case((40, 60), heads=4, key_heads=2, dim=64, page=page)
    with pytest.raises(AssertionError, match="mistake is wrong"):
        decode_rightness.prove("mistake", Rung(mistake), [case])


# ---- what decoding cannot do without


@pytest.mark.parametrize("passing", [False, True])
@pytest.mark.parametrize("count", [4, 1024, 12296])
def test_a_bare_read_reads_all(count, passing):
    generator = torch.Generator(reference.DEVICE).manual_seed(count)
    shape = (count,)
    data = torch.randint(
        0, 2**31 - 1, shape, generator=generator, dtype=torch.int32, device=reference.DEVICE
    )
    run, sums = bench_decode.reader(data, passing, blocks=3)
    run()
    found = bench_decode.xor_of(sums)
    assert found == functools.reduce(operator.xor, data.tolist())
    assert found == bench_decode.xor_of(data)


# ---- how long a part is


@pytest.mark.parametrize("lengths", [(8192,), (131072,), (8192,) * 16, (1, 900, 15361), (1,)])
@pytest.mark.parametrize("places", [132, 396])
def test_a_part_is_as_short_as_places_for_blocks_allow(lengths, places):
    step, heads = 128, 8
    chunk = decode.chunk_that_fits(lengths, heads, places, step)
    assert chunk % step == 0
    assert heads * decode.parts_of(lengths, chunk) <= max(places, heads * len(lengths))
    shorter = chunk - step
    assert shorter == 0 or heads * decode.parts_of(lengths, shorter) > places


def test_the_gpu_is_filled_once_or_twice():
    for lengths in ((8192,), (32768,), (131072,), (8192,) * 16):
        chunk = decode.chunk_for(lengths, 8, 132, 128)
        rounds = 8 * decode.parts_of(lengths, chunk) / 132
        assert 0.9 < rounds - ceil_div(8 * decode.parts_of(lengths, chunk), 132) + 1 <= 1
        assert rounds <= decode.ROUNDS


def test_more_sequences_than_places_are_not_split():
    assert decode.chunk_for((1000,) * 132, 8, 132, 128) == 1024


# ---- what does not fit


def test_what_does_not_fit_is_refused():
    rows = torch.zeros(2, 32, 2, 64, dtype=torch.bfloat16, device=reference.DEVICE)
    table = torch.zeros(2, 1, dtype=torch.int32, device=reference.DEVICE)
    for words, given in {
        r"must both be": (rows, rows[:1], (1, 1)),
        "must be bfloat16": (rows.float(), rows.float(), (1, 1)),
        "begin at multiples": (rows.mT.contiguous().mT, rows, (1, 1)),
        "from 1 to 32": (rows, rows, (0, 1)),
        "from 1 to 32, got": (rows, rows, (33, 1)),
        "one length for each": (rows, rows, (1,)),
        "a multiple of 16": (rows[:, :24], rows[:, :24], (1, 1), table),
        "must be int32": (rows, rows, (1, 1), table.long()),
    }.items():
        with pytest.raises(ValueError, match=words):
            Cache(*given)
    cache = Cache(rows, rows, (1, 32))
    for words, shape in {
        "1, heads": (2, 2, 2, 64),
        "does not fit the cache": (2, 1, 3, 64),
    }.items():
        q = torch.zeros(shape, dtype=torch.bfloat16, device=reference.DEVICE)
        with pytest.raises(ValueError, match=words):
            decode.attention(q, cache)


def test_the_bytes_are_those_of_keys_and_values_that_there_are():
    _, cache = Case((3, 5), heads=4, key_heads=2, dim=64, page=16).inputs()
    assert cache.nbytes == (3 + 5) * 2 * 64 * 2 * 2
    assert cache.capacity == 16


# ---- compiled


OTHER_FORMS = pytest.mark.nightly("by day the newest form compiles without spills")


@needs_nvcc
@pytest.mark.parametrize(
    "form, arch",
    [
        (CLUSTER, "sm_90"),
        pytest.param(GROUP, "sm_80", marks=OTHER_FORMS),
        pytest.param(RING, "sm_80", marks=OTHER_FORMS),
    ],
)
def test_the_forms_compile_without_spills(form, arch, tmp_path):
    path = classic.KERNELS / f"{form.file}.cu"
    unspilled(path, tmp_path, arch, *form.flags(128, 64))


def test_a_cache_takes_the_form_that_this_gpu_has_room_for(monkeypatch):
    _, one = Case((40,), heads=4, key_heads=2, dim=128).inputs()
    _, many = Case((40,) * 9, heads=4, key_heads=2, dim=128).inputs()
    gpu = SimpleNamespace(compute_capability=(8, 9))  # 99 KB of shared memory for a block
    named = SimpleNamespace(gpu=gpu, sms=132)
    monkeypatch.setattr(decode, "has_gpu", lambda: True)
    monkeypatch.setattr(decode, "machine", lambda: named)
    monkeypatch.setattr(decode, "sms", lambda: named.sms)
    monkeypatch.setattr(decode, "CLUSTERS", SimpleNamespace(met=lambda: True))
    monkeypatch.setattr(decode, "SMALL", 0)
    assert decode.form_for(one, group=2) is GROUP
    gpu.compute_capability = 9, 0
    assert decode.form_for(one, group=2) == CLUSTER
    assert decode.form_for(many, group=2) == RING  # 18 clusters of 8 do not run at once
    monkeypatch.setattr(decode, "CLUSTERS", SimpleNamespace(met=lambda: False))
    assert decode.form_for(one, group=2) == RING
    monkeypatch.setattr(decode, "SMALL", 1 << 30)
    assert decode.form_for(one, group=2).passing
