"""Attention's backward pass: the reference against finite differences, every rung against the
reference, on the CPU runtime where there is no GPU; mistakes that must be told; what does not fit.
"""

from dataclasses import replace

import pytest
import torch

from course.kernels.attention import (
    backward,
    backward_hopper,
    backward_rightness,
    bench,
    bench_backward,
    classic,
    reference,
    rightness,
)
from course.kernels.attention.backward import Saved
from course.kernels.attention.backward_rungs import BACKWARD, Rung
from course.kernels.attention.reference import Case
from course.kernels.attention.rungs import RUNGS
from tests.compiling import compiled, needs_nvcc, sass
from utils import cuda_c, has_gpu

# ---- the reference

TINY = Case(2, 3, 5, heads=2, key_heads=1, dim=64, causal=True)


@pytest.mark.parametrize("case", [TINY, replace(TINY, queries=5, keys=3)])
@pytest.mark.parametrize("which", range(3))
def test_the_reference_is_the_slope(case, which):
    given = [x.double() for x in reference.inputs(case, torch.float32)]
    dout = torch.randn(case.shape_of_queries, dtype=torch.float64, device=reference.DEVICE)
    exact = reference.gradients(*given, dout, case.causal)
    gradient = (exact.dq, exact.dk, exact.dv)[which]
    step = 1e-5
    direction = torch.randn_like(given[which])
    sums = []
    for sign in (1, -1):
        moved = list(given)
        moved[which] = given[which] + sign * step * direction
        out, _ = reference.attention(*moved, case.causal)
        sums.append((dout * out).sum())
    slope = (sums[0] - sums[1]) / (2 * step)
    assert slope != 0
    assert torch.isclose(slope, (gradient * direction).sum(), rtol=1e-7)


def test_a_query_that_sees_no_key_has_no_gradient():
    case = replace(TINY, queries=5, keys=3)
    given = reference.inputs(case, torch.float32)
    exact = reference.gradients(*given, torch.ones_like(given[0]), True)
    assert not exact.dq[:, :2].any()
    assert exact.dq[:, 3].any()  # the third sees one key, whose weight is 1 whatever its score


# ---- the rungs

ALIKE = pytest.mark.nightly("by day small heads are held to float64")
SMALL = [case for case in rightness.CASES if case.dim == 64]


def rungs() -> list:
    """Names of the rungs, those marked that this machine cannot run."""
    names = []
    for name, rung in BACKWARD.items():
        unable = pytest.mark.skipif(not rung.able(), reason=f"needs {rung.needs.words}")
        names.append(pytest.param(name, marks=unable))
    return names


@pytest.mark.parametrize("name", rungs())
def test_a_rung_is_right(name):
    rung = BACKWARD[name]
    assert 0 < backward_rightness.prove(name, rung, SMALL)
    large = [case for case in rightness.LARGE if case.causal]
    backward_rightness.prove(name, rung, large, spread=rightness.SPREAD)


@ALIKE
@pytest.mark.parametrize("name", rungs())
def test_a_rung_is_right_for_all_cases(name):
    backward_rightness.check(name)


@ALIKE
@pytest.mark.parametrize("name", rungs())
@pytest.mark.parametrize("length", range(1, 131))
def test_a_rung_is_right_for_every_length(name, length):
    causal = length % 2 == 0
    cases = [Case(1, length, heads=1, dim=64, causal=causal)]
    cases.append(Case(1, length, 131 - length, heads=2, key_heads=1, dim=64, causal=not causal))
    backward_rightness.prove(name, BACKWARD[name], cases)


@pytest.mark.skipif(not BACKWARD["wgmma"].able(), reason="this GPU has no wgmma")
@pytest.mark.parametrize("causal", [True, pytest.param(False, marks=ALIKE)])
def test_packed_sequences_are_right(causal):
    assert 0 < backward_rightness.check_packed(causal)


def test_packed_sequences_that_do_not_fit_are_refused():
    rows = torch.zeros(8, 2, 64, dtype=torch.bfloat16, device=reference.DEVICE)
    saved = Saved(rows, rows, rows, rows, torch.zeros(2, 8, device=reference.DEVICE))
    for words, starts in {
        "as many sequences": ([0, 8], [0, 4, 8]),
        "no sequence with": ([0, 8], [0, 0]),
    }.items():
        with pytest.raises(ValueError, match=words):
            backward_hopper.Packed(saved, rows, *starts)


def test_both_passes_have_autograds_gradients():
    case = Case(1, 30, 40, heads=4, key_heads=2, dim=64)
    leaves = [x.requires_grad_() for x in reference.inputs(case, torch.float32)]
    heads_first = [x.transpose(1, 2) for x in leaves]
    out = torch.nn.functional.scaled_dot_product_attention(*heads_first, enable_gqa=True)
    dout = torch.randn_like(out).transpose(1, 2)
    expected = torch.autograd.grad(out.transpose(1, 2), leaves, dout)
    given = [x.detach() for x in leaves]
    found = backward.plain(Saved(*given, *classic.online(*given)), dout.contiguous())
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.nightly("by day they run without the slow checks")
@pytest.mark.skipif(has_gpu(), reason="the CPU runtime's checks")
@pytest.mark.parametrize("name", BACKWARD)
def test_the_cpu_runtime_finds_no_race(name):
    case = Case(1, 90, 150, heads=2, key_heads=1, dim=64, causal=True)
    with cuda_c.checked():
        backward_rightness.prove(name, BACKWARD[name], [case])


# ---- mistakes are told


def changed(change):
    """A rung that makes a mistake: change(exact gradients, saved) -> (dq, dk, dv)."""

    def run(saved, dout, gradients):
        exact = reference.gradients(*saved.given, dout, saved.causal)
        wrong = change(exact, saved)
        for to, value in zip(gradients, wrong, strict=True):
            to.copy_(value)

    return Rung(run, torch.bfloat16, RUNGS["mma"].needs)


def without_delta(exact, saved):
    """Changes of weights that forget that a row's weights sum to 1."""
    ds = exact.weights * (exact.dout @ exact.v.mT)
    scale = exact.q.shape[-1] ** -0.5
    return (scale * ds @ exact.k).transpose(1, 2), exact.dk, exact.dv


def without_scale(exact, saved):
    return exact.dq, exact.dk * exact.q.shape[-1] ** 0.5, exact.dv


def one_head_of_a_group(exact, saved):
    one = (exact.weights.mT @ exact.dout)[:, :: saved.q.shape[2] // saved.k.shape[2]]
    return exact.dq, exact.dk, one.transpose(1, 2)


def without_mask(exact, saved):
    plain = reference.gradients(*saved.given, exact.dout.transpose(1, 2), False)
    return plain.dq, exact.dk, exact.dv


def never_written(exact, saved):
    return torch.full_like(exact.dq, torch.nan), exact.dk, exact.dv


@pytest.mark.parametrize(
    "mistake", [without_delta, without_scale, one_head_of_a_group, without_mask, never_written]
)
def test_a_mistake_is_told(mistake):
    case = Case(1, 20, heads=2, key_heads=1, dim=64, causal=True)
    right = changed(lambda exact, saved: (exact.dq, exact.dk, exact.dv))
    backward_rightness.prove("right", right, [case])
    with pytest.raises(AssertionError):
        backward_rightness.prove("mistake", changed(mistake), [case])


# ---- what does not fit


def test_what_does_not_fit_is_refused():
    rows = torch.zeros(1, 8, 2, 64, device=reference.DEVICE)
    lse = torch.zeros(1, 2, 8, device=reference.DEVICE)
    saved = Saved(rows, rows, rows, rows, lse)
    for words, given, dout in [
        ("out must have q's shape", replace(saved, out=rows[:, :4]), rows),
        ("dout must have q's shape", saved, rows[:, :4]),
        ("dout must be torch.float32", saved, rows.double()),
        ("lse must be float32", replace(saved, lse=lse[:, :1]), rows),
        ("lse must be contiguous", replace(saved, lse=lse.mT.contiguous().mT), rows),
        ("q must be torch.float32", replace(saved, q=rows.double()), rows),
    ]:
        with pytest.raises(ValueError, match=words):
            backward.plain(given, dout)


def test_gradients_that_do_not_fit_are_refused():
    rows = torch.zeros(1, 8, 2, 64, device=reference.DEVICE)
    saved = Saved(rows, rows, rows, rows, torch.zeros(1, 2, 8, device=reference.DEVICE))
    for words, wrong in {
        "dk must be": (rows, rows[:, :4], rows),
        "dv must be": (rows, rows, rows.double()),
        "dq must be": (rows.mT.contiguous().mT, rows, rows),
    }.items():
        with pytest.raises(ValueError, match=words):
            backward.plain(saved, rows, gradients=wrong)


# ---- who does what


def test_a_tile_costs_the_queries_that_see_it():
    assert backward_hopper.costs(256, 256, True) == {0: 256, 128: 128}
    assert backward_hopper.costs(256, 256, False) == {0: 256, 128: 256}
    assert backward_hopper.costs(100, 256, True) == {0: 100, 128: 100}  # the first sees 157
    assert backward_hopper.costs(256, 100, True) == {0: 100}  # the first 156 see none


def test_the_backward_pass_counts_five_products_for_the_forwards_two():
    case = Case(1, 8, dim=64)
    assert bench_backward.flops_of(case) * 2 == bench.flops_of(case) * 5


# ---- compiled


@needs_nvcc
@pytest.mark.parametrize("dim", [pytest.param(64, marks=ALIKE), 128])
@pytest.mark.parametrize("switches", [(), pytest.param(("-DPACKED",), marks=ALIKE)])
def test_the_hopper_rung_compiles_without_spills(dim, switches, tmp_path):
    form = backward_hopper.Form(dim, switches=switches)
    path = backward_hopper.KERNELS / "backward_wgmma.cu"
    report, cubin = compiled(path, tmp_path, "sm_90a", "-Xptxas=-v", *form.flags)
    assert "0 bytes spill stores" in report
    assert "serialized" not in report  # wgmma instructions that wait for each other
    assert "injected" not in report  # waits of the compiler's own
    code = sass(cubin)
    for promised in ("HGMMA.64x64x16", "UTMALDG.4D", "UTMASTG.4D", "USETMAXREG", "F32x4"):
        assert promised in code


def test_blocks_have_room():
    assert backward.SMALL.shared(128) <= 64 << 10  # compute capability 7.5
    assert backward.ROOMY.shared(128) <= 99 << 10  # 8.6 and 8.9
    for dim in (64, 128):
        assert backward_hopper.Form(dim).shared <= 227 << 10
