"""Check attention's rungs, then race them against PyTorch's own attention on this GPU.

    python -m course.kernels.attention.bench --out results.json --budget 100

As course.kernels.fusion.bench: what is wrong is not timed, every result is written at once.
The work is FlashAttention's: 16,384 tokens in sequences of a length, 16 heads, bfloat16.
"""

from functools import partial

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from course.kernels.attention import reference, rightness
from course.kernels.attention.reference import Case
from course.kernels.attention.rungs import RUNGS
from course.kernels.bench.command import main
from course.kernels.bench.races import race, usable
from course.kernels.bench.report import Report
from utils import timing

LENGTHS = (2048, 4096, 8192, 16384)
TOKENS = 16384
HEADS = 16
FASTEST = "stay"
LADDER = 4096  # the length at which all rungs are timed
BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
#: Lengths at which a whole matrix of scores in PyTorch's plain way would be many gigabytes
SMALL = 4096


def case_of(length: int, causal: bool, dim: int = 128) -> Case:
    """The work at a length."""
    return Case(TOKENS // length, length, heads=HEADS, dim=dim, causal=causal)


def torch_attention(backend: SDPBackend, q, k, v, causal: bool):
    """PyTorch's attention by one of its backends."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    with sdpa_kernel(backend):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def flops_of(case: Case) -> float:
    """As the field counts them: of a causal square one half, its diagonal's half left out."""
    whole = 4.0 * case.batch * case.heads * case.dim * case.queries**2
    return whole / 2 if case.causal else whole


def ours(name: str, case: Case):
    """A function that runs a rung on random inputs."""
    rung = RUNGS[name]
    q, k, v = reference.inputs(case, rung.dtype)
    out = torch.empty_like(q)
    lse = torch.empty(case.batch, case.heads, case.queries, device=q.device)
    return partial(rung.run, q, k, v, case.causal, out=out, lse=lse)


def rivals(report: Report, name: str, case: Case) -> dict:
    """PyTorch's backends that run here."""
    q, k, v = reference.inputs(case)
    runs = {}
    for label, backend in BACKENDS.items():
        runs[label] = partial(torch_attention, backend, q, k, v, case.causal)
    if case.queries <= SMALL:
        runs["math"] = partial(torch_attention, SDPBackend.MATH, q, k, v, case.causal)
    return usable(report, name, runs)


def prove_whole(case: Case) -> float:
    """The largest difference of the fastest rung from PyTorch's, as a share of the largest value.

    At full size, where float64 would take too long; small sizes are held to float64 before.
    """
    q, k, v = reference.inputs(case)
    mine, _ = RUNGS[FASTEST].run(q, k, v, case.causal)
    theirs = torch_attention(SDPBackend.FLASH_ATTENTION, q, k, v, case.causal).transpose(1, 2)
    apart = (mine.float() - theirs.float()).abs().max() / theirs.float().abs().max()
    assert apart <= 2**-6, f"{case}: {apart:.2g} apart from PyTorch's"
    return apart.item()


def race_forward(report: Report, length: int, causal: bool, dim: int = 128) -> None:
    """Our fastest rung, and the one with mma.sync, beside PyTorch's backends."""
    kind = "forward_causal" if causal else "forward"
    if dim != 128:
        kind += f"_{dim}"
    name = f"attention/{kind}/{length}"
    case = case_of(length, causal, dim)
    report.put("checks", name, prove_whole(case))
    runs = {"ours": ours(FASTEST, case), "ours mma": ours("mma", case)}
    runs |= rivals(report, name, case)
    timings = race(report, name, runs, flops=flops_of(case))
    rate = timings["ours"].flops_per_second / 1e12
    spread = timings["ours"].spread / timings["ours"].median
    report.record(f"{name}/tflops", rate, "TFLOP/s", rate * spread)
    if "cudnn" in timings:
        report.record(f"{name}/share_of_cudnn", *_share(timings["ours"], timings["cudnn"]))
    if "flash" in timings:
        report.record(f"{name}/mma/share_of_flash", *_share(timings["ours mma"], timings["flash"]))


def _share(mine, theirs) -> tuple[float, str, float]:
    value, spread = timing.speedup(mine, theirs)
    return value, "1", spread


def race_ladder(report: Report) -> None:
    """Every rung at one length, in turn."""
    for causal in (False, True):
        case = case_of(LADDER, causal)
        kind = "ladder_causal" if causal else "ladder"
        runs = {name: ours(name, case) for name, rung in RUNGS.items() if rung.able()}
        race(report, f"attention/{kind}/{LADDER}", runs, FASTEST, flops=flops_of(case))
        del runs
        torch.cuda.empty_cache()


def race_lengths(report: Report, causal: bool, dim: int = 128) -> None:
    """All lengths."""
    for length in LENGTHS:
        race_forward(report, length, causal, dim)


PARTS = {
    "forward": partial(race_lengths, causal=False),
    "forward_causal": partial(race_lengths, causal=True),
    "ladder": race_ladder,
    "forward_64": partial(race_lengths, causal=False, dim=64),
    "forward_causal_64": partial(race_lengths, causal=True, dim=64),
}


def check_all(report: Report) -> None:
    """Every rung in small sizes; without a GPU on the CPU runtime."""
    for name, rung in RUNGS.items():
        if not rung.able():
            continue
        error = report.attempt(name, rightness.check, name)
        if error is not None:
            report.put("checks", name, error)
    if RUNGS[FASTEST].able():
        error = report.attempt("packed", rightness.check_packed)
        report.put("checks", "packed", error)


if __name__ == "__main__":
    main(__doc__, PARTS, check_all)
