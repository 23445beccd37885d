"""Attention: every rung against float64, on the CPU runtime where there is no GPU; what NVIDIA's
compiler makes of the Hopper rungs; the plan that gives each tile to one block.
"""

import math
import re

import numpy as np
import pytest
import torch

from course.kernels.attention import (
    bench,
    bench_order,
    classic,
    hopper,
    problem,
    reference,
    rightness,
)
from course.kernels.attention.reference import Case
from course.kernels.attention.rungs import RUNGS, Rung
from tests.compiling import compiled, needs_nvcc, sass
from utils import cuda_c, has_gpu

# ---- the reference


def by_hand(q, k, v, causal):
    """Attention of one head as its definition says, number by number."""
    out = np.zeros_like(q)
    for row in range(len(q)):
        sees = reference.seen(row, len(q), len(k)) if causal else len(k)
        weights = [math.exp(q[row] @ k[key] / math.sqrt(q.shape[1])) for key in range(sees)]
        for key, weight in enumerate(weights):
            out[row] += weight / sum(weights) * v[key]
    return out


@pytest.mark.parametrize("queries, keys, causal", [(3, 5, False), (4, 6, True), (5, 3, True)])
def test_the_reference_is_the_definition(queries, keys, causal):
    case = Case(2, queries, keys, heads=4, key_heads=2, dim=64, causal=causal)
    q, k, v = reference.inputs(case, torch.float32)
    out, lse = reference.attention(q, k, v, causal)
    for batch in range(2):
        for head in range(4):
            given = [
                x[batch, :, h].double().cpu().numpy()
                for x, h in zip((q, k, v), (head, head // 2, head // 2), strict=True)
            ]
            expected = by_hand(*given, causal)
            assert np.allclose(out[batch, :, head].cpu(), expected, rtol=1e-12, atol=1e-12)
    none = [causal and reference.seen(row, queries, keys) == 0 for row in range(queries)]
    assert lse[0, 0].isinf().tolist() == none


def test_a_causal_square_is_half_of_the_work():
    assert bench.flops_of(Case(1, 8, dim=64)) == 4 * 64 * 8 * 8
    assert bench.flops_of(Case(1, 8, causal=True)) == bench.flops_of(Case(1, 8)) / 2


# ---- the rungs

ALIKE = pytest.mark.nightly("by day the fastest rung of this kind is held to float64")
BY_DAY = ("online", "mma", "stay")
SMALL = [case for case in rightness.CASES if case.dim == 64]


def rungs(by_day):
    """Names of the rungs, those not of the day marked."""
    names = []
    for name, rung in RUNGS.items():
        marks = [] if name in by_day else [ALIKE]
        marks.append(pytest.mark.skipif(not rung.able(), reason=f"needs {rung.needs.words}"))
        names.append(pytest.param(name, marks=marks))
    return names


@pytest.mark.parametrize("name", rungs(BY_DAY))
def test_a_rung_is_right(name):
    rung = RUNGS[name]
    assert 0 < rightness.prove(name, rung, SMALL)
    large = [case for case in rightness.LARGE if case.dim == 64]
    rightness.prove(name, rung, large, spread=rightness.SPREAD)


@pytest.mark.parametrize("name", rungs(()))
def test_a_rung_is_right_for_all_cases(name):
    rightness.check(name)


@pytest.mark.nightly("by day the odd lengths among the cases")
@pytest.mark.skipif(not RUNGS["stay"].able(), reason="this GPU has no wgmma")
@pytest.mark.parametrize("length", [*range(1, 258, 16), 127, 128, 129, 159, 160, 161, 255, 256])
def test_the_fastest_is_right_for_every_length(length):
    for causal in (False, True):
        case = Case(1, length, heads=2, key_heads=1, dim=64, causal=causal)
        rightness.prove("stay", RUNGS["stay"], [case])


@pytest.mark.nightly("by day rows of one length are held to float64")
@pytest.mark.skipif(not RUNGS["stay"].able(), reason="this GPU has no wgmma")
@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences_are_right(causal):
    assert 0 < rightness.check_packed(causal)


def test_packed_sequences_that_do_not_fit_are_refused():
    q, k, v = (x[0] for x in tensors())
    for words, starts in {
        "as many sequences": ([0, 8], [0, 4, 8]),
        "no sequence with": ([0, 8], [0, 0]),
    }.items():
        with pytest.raises(ValueError, match=words):
            hopper.Packed(q, k, v, *starts)


@pytest.mark.nightly("by day they run without the slow checks")
@pytest.mark.skipif(has_gpu(), reason="the CPU runtime's checks")
@pytest.mark.parametrize("name", RUNGS)
def test_the_cpu_runtime_finds_no_race(name):
    case = Case(1, 150, 190, heads=4, key_heads=2, dim=64, causal=True)
    with cuda_c.checked():
        rightness.prove(name, RUNGS[name], [case])


def without_mask(q, k, v, causal, out, lse):
    """Attention that forgets that it is causal."""
    exact, exact_lse = reference.attention(q, k, v, False)
    out.copy_(exact)
    lse.copy_(exact_lse)


def unscaled(q, k, v, causal, out, lse):
    """Attention that forgets 1 / √dim."""
    exact, exact_lse = reference.attention(q, k, v, causal, scale=1)
    out.copy_(exact)
    lse.copy_(exact_lse)


@pytest.mark.parametrize("mistake", [without_mask, unscaled])
def test_what_is_wrong_is_told(mistake):
    rung = Rung(mistake, torch.bfloat16, RUNGS["mma"].needs)
    case = Case(1, 20, heads=1, dim=64, causal=True)
    with pytest.raises(AssertionError, match="mistake is wrong"):
        rightness.prove("mistake", rung, [case])


def test_results_that_were_never_written_are_wrong():
    rung = Rung(lambda *given, **more: None, torch.bfloat16, RUNGS["mma"].needs)
    with pytest.raises(AssertionError):
        rightness.prove("nothing", rung, [Case(1, 20, heads=1, dim=64)])


# ---- what does not fit


def tensors(dtype=torch.bfloat16, *, heads=2, dim=64):
    """q, k, v of 8 rows."""
    return [torch.zeros(1, 8, heads, dim, dtype=dtype, device=reference.DEVICE) for _ in "qkv"]


def test_what_does_not_fit_is_refused():
    q, k, v = tensors()
    for words, given in {
        "must be torch.float32": (q, k, v),
        "heads of 32": [x.float()[..., :32] for x in (q, k, v)],
        "begin at multiples": [x.float().transpose(2, 3).contiguous().mT for x in (q, k, v)],
        "do not fit together": (q.float(), k.float()[:, :, :1], v.float()),
        "a query and a key": (q.float()[:, :0], k.float(), v.float()),
    }.items():
        with pytest.raises(ValueError, match=words):
            classic.online(*given)


def test_a_strided_tensor_is_handed_over_from_its_first_to_its_last_number():
    q = torch.arange(2 * 3 * 4 * 64).reshape(2, 3, 4, 64)[:, 1:, ::2]
    memory = problem.flat(q)
    assert memory[0] == q[0, 0, 0, 0]
    assert memory[-1] == q[-1, -1, -1, -1]
    strides = problem.strides_of(q)
    assert memory[strides.batch + strides.row + strides.head] == q[1, 1, 1, 0]


# ---- who does what


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries, keys", [(4096, 4096), (700, 3000), (3000, 700)])
def test_the_plan_gives_each_tile_to_one_block_and_all_end_together(queries, keys, causal):
    shape = (2, 8, queries, keys, 2, 128, causal)
    starts, tiles = hopper.plan(shape, 160, "cpu")
    planned = sorted(map(tuple, tiles.tolist()))
    rows = range(0, queries, hopper.QUERIES)
    assert planned == [(b, h, row, 0) for b in range(2) for h in range(8) for row in rows]
    assert starts[0] == 0
    assert starts[-1] == len(tiles)
    costs = hopper.costs(queries, keys, causal, 160)
    loads = []
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        assert last > first
        loads.append(sum(costs[row // hopper.QUERIES] + 1 for _, _, row, _ in tiles[first:last]))
    assert max(loads) - min(loads) <= max(costs) + 1


@pytest.mark.nightly("by day the rungs themselves; this is what a bench makes of them")
@pytest.mark.parametrize("causal", [False, True])
def test_tiles_are_right_in_every_order(causal):
    case = Case(2, 256, heads=2, causal=causal)
    assert bench_order.largest_difference(case) <= 2**-6


def test_a_tile_costs_the_keys_that_its_last_query_sees():
    assert hopper.costs(300, 300, True, 100) == [2, 3, 3]
    assert hopper.costs(300, 300, False, 100) == [3, 3, 3]
    assert hopper.costs(300, 100, True, 100) == [1, 1, 1]  # 1 where nobody sees a key, too


# ---- compiled

HOPPER_RUNGS = [
    pytest.param(name, marks=[] if name == "stay" else [ALIKE])
    for name in ("wgmma", "turns", "overlap", "stay")
]


@needs_nvcc
@pytest.mark.parametrize("name", HOPPER_RUNGS)
def test_hopper_rungs_compile_without_spills(name, tmp_path):
    form = hopper.form_for(128, name)
    path = hopper.KERNELS / f"{name}.cu"
    report, cubin = compiled(path, tmp_path, "sm_90a", "-Xptxas=-v", *form.flags)
    assert "0 bytes spill stores" in report
    assert "serialized" not in report  # wgmma instructions that wait for each other
    code = sass(cubin)
    for promised in (
        "HGMMA.64x160x16",
        "HGMMA.64x128x16",
        "UTMALDG.4D",
        "UTMASTG.4D",
        "USETMAXREG",
    ):
        assert promised in code
    if name in ("overlap", "stay"):
        assert most_exponentials_between_waits(code) >= form.keys / 2


def most_exponentials_between_waits(code: str) -> int:
    """How many are computed after the scores' wait and before the next: beside the product."""
    parts = re.split(r"WARPGROUP\.DEPBAR\.LE gsb0, (0x\d)", code)
    counts = [
        part.count("MUFU.EX2")
        for wait, part in zip(parts[1::2], parts[2::2], strict=True)
        if wait == "0x1"
    ]
    return max(counts)


def test_blocks_of_old_gpus_have_room():
    assert classic.SMALL.shared(128) <= 64 << 10  # compute capability 7.5
    assert hopper.form_for(128).shared <= 227 << 10
    assert not has_gpu() or RUNGS["mma"].able() or not RUNGS["stay"].able()
