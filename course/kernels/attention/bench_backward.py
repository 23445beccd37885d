"""Check the backward rungs, then race them against PyTorch's own attention on this GPU.

    python -m course.kernels.attention.bench_backward --out results.json --budget 100

As course.kernels.attention.bench, and the same work. Of PyTorch's attention, too, only the backward
pass is timed: its forward pass is done before. It counts 2.5 times the forward's operations, as the
literature does: five products instead of two, the scores' once more.
"""

from functools import partial

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from course.kernels.attention import backward_rightness, bench, hopper, reference
from course.kernels.attention.backward import Saved
from course.kernels.attention.backward_rungs import BACKWARD, Rung
from course.kernels.attention.bench import BACKENDS, LADDER, case_of
from course.kernels.attention.reference import Case
from course.kernels.bench.command import main
from course.kernels.bench.races import race, record_speedup, usable
from course.kernels.bench.report import Report

LENGTHS = (4096, 8192, 16384)
FASTEST = "wgmma"
MORE = 2.5  # operations of the backward pass for each of the forward's
#: How rivals have their tensors: as ours, or in the order in which their kernels walk
LAYOUTS = {"": False, " heads first": True}


def flops_of(case: Case) -> float:
    """Of the backward pass, as the field counts them."""
    return MORE * bench.flops_of(case)


def saved_of(case: Case) -> tuple[Saved, torch.Tensor]:
    """(what our fastest forward pass saves, a random gradient of its result)."""
    q, k, v = reference.inputs(case)
    dout, _, _ = reference.inputs(case, seed=1)
    form = hopper.form_for(case.dim)
    out, lse = hopper.attention(q, k, v, case.causal, form=form)
    return Saved(q, k, v, out, lse, case.causal), dout


def ours(rung: Rung, saved: Saved, dout: torch.Tensor):
    """A function that runs a rung; of float32 or float16 where the rung is."""
    given = [x.to(rung.dtype) for x in (*saved.given, saved.out)]
    saved = Saved(*given, saved.lse, saved.causal)
    gradients = tuple(torch.empty_like(x) for x in saved.given)
    return partial(rung.run, saved, dout.to(rung.dtype), gradients=gradients)


def torch_backward(backend: SDPBackend, saved: Saved, dout: torch.Tensor, heads_first: bool):
    """A function that runs the backward pass of PyTorch's attention, by one of its backends."""
    leaves = [x.detach().transpose(1, 2) for x in saved.given]
    change = dout.transpose(1, 2)
    if heads_first:
        leaves = [x.contiguous() for x in leaves]
        change = change.contiguous()
    leaves = [x.requires_grad_() for x in leaves]
    with sdpa_kernel(backend):
        out = functional.scaled_dot_product_attention(*leaves, is_causal=saved.causal)
    return partial(torch.autograd.grad, out, leaves, change, retain_graph=True)


def rivals(report: Report, name: str, saved: Saved, dout: torch.Tensor) -> dict:
    """PyTorch's backends that run here, each with its tensors in two layouts."""
    runs = {}
    for label, backend in BACKENDS.items():
        for layout, heads_first in LAYOUTS.items():
            make = partial(torch_backward, backend, saved, dout, heads_first)
            run = report.attempt(f"{name} {label}{layout}", make)
            if run:
                runs[label + layout] = run
    return usable(report, name, runs)


def prove_whole(saved: Saved, dout: torch.Tensor, theirs: tuple) -> float:
    """The largest difference from PyTorch's gradients, as a share of the largest of each.

    At full size, where float64 would take too long; small sizes are held to float64 before.
    """
    worst = 0.0
    mine = BACKWARD[FASTEST].run(saved, dout)
    for name, own, other in zip(("dq", "dk", "dv"), mine, theirs, strict=True):
        other = other.transpose(1, 2).float()
        apart = ((own.float() - other).abs().max() / other.abs().max()).item()
        assert apart <= 2**-6, f"{name}: {apart:.2g} apart from PyTorch's"
        worst = max(worst, apart)
    return worst


def prove_repeated(saved: Saved, dout: torch.Tensor) -> float:
    """The largest change of dq between two runs, as a share; dk and dv must not change at all."""
    first, second = (BACKWARD[FASTEST].run(saved, dout) for _ in range(2))
    for name, one, other in zip(("dk", "dv"), first[1:], second[1:], strict=True):
        assert torch.equal(one, other), f"{name} differs between two runs"
    apart = (first[0].float() - second[0].float()).abs().max()
    return (apart / first[0].float().abs().max()).item()


def race_backward(report: Report, length: int, causal: bool, dim: int = 128) -> None:
    """Our fastest rung, and the one with mma.sync, beside PyTorch's backends."""
    kind = "backward_causal" if causal else "backward"
    if dim != 128:
        kind += f"_{dim}"
    name = f"attention/{kind}/{length}"
    case = case_of(length, causal, dim)
    saved, dout = saved_of(case)
    theirs = rivals(report, name, saved, dout)
    if "flash" in theirs:
        report.put("checks", name, prove_whole(saved, dout, theirs["flash"]()))
    report.put("checks", f"{name} twice", prove_repeated(saved, dout))
    runs = {"ours": ours(BACKWARD[FASTEST], saved, dout)}
    runs["ours mma"] = ours(BACKWARD["mma"], saved, dout)
    timings = race(report, name, runs | theirs, flops=flops_of(case))
    rate = timings["ours"].flops_per_second / 1e12
    spread = timings["ours"].spread / timings["ours"].median
    report.record(f"{name}/tflops", rate, "TFLOP/s", rate * spread)
    for backend in ("cudnn", "flash"):
        layouts = [backend + layout for layout in LAYOUTS]
        record_speedup(report, f"{name}/share_of_{backend}", timings, layouts)
    record_speedup(
        report, f"{name}/mma/share_of_flash", timings, ["flash", "flash heads first"], "ours mma"
    )


def race_lengths(report: Report, causal: bool, dim: int = 128) -> None:
    """All lengths."""
    for length in LENGTHS:
        race_backward(report, length, causal, dim)
        torch.cuda.empty_cache()


def race_ladder(report: Report) -> None:
    """Every rung at one length, in turn."""
    for causal in (False, True):
        case = case_of(LADDER, causal)
        saved, dout = saved_of(case)
        runs = {name: ours(r, saved, dout) for name, r in BACKWARD.items() if r.able()}
        kind = "backward_ladder_causal" if causal else "backward_ladder"
        race(report, f"attention/{kind}/{LADDER}", runs, FASTEST, flops=flops_of(case))
        del runs
        torch.cuda.empty_cache()


PARTS = {
    "backward": partial(race_lengths, causal=False),
    "backward_causal": partial(race_lengths, causal=True),
    "backward_ladder": race_ladder,
    "backward_64": partial(race_lengths, causal=False, dim=64),
    "backward_causal_64": partial(race_lengths, causal=True, dim=64),
}


def check_all(report: Report) -> None:
    """Every rung in small sizes; without a GPU on the CPU runtime."""
    for name, rung in BACKWARD.items():
        if not rung.able():
            continue
        error = report.attempt(name, backward_rightness.check, name)
        if error is not None:
            report.put("checks", name, error)
    if BACKWARD[FASTEST].able():
        error = report.attempt("packed", backward_rightness.check_packed)
        report.put("checks", "packed", error)


if __name__ == "__main__":
    main(__doc__, PARTS, check_all)
