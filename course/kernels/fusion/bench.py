"""Check the fused kernels, then race them against PyTorch on this GPU.

    python -m course.kernels.fusion.bench --out results.json --budget 100

Each part is checked against float64 in small, odd sizes, then at full size, then timed in turn with
its rivals. Every result is written as soon as it is there; a failure ends nothing. Without a GPU it
only checks.
"""

import contextlib
import functools
from importlib.util import find_spec

import torch
from torch.nn import functional

from course.kernels.bench.command import main
from course.kernels.bench.races import (
    fastest,
    race,
    record_share,
    record_speedup,
    usable,
)
from course.kernels.bench.report import Report
from course.kernels.fusion import adamw, block, linear_cross_entropy, rightness
from course.kernels.mnist_cnn.pytorch_modes import as_graph

COMPILE = {
    "mode": "max-autotune-no-cudagraphs",
    "dynamic": False,
    "fullgraph": True,
}
MODEL = {
    "count": 50304,
    "layers": 24,
    "width": 1024,
}
ROWS = 32768
COLUMNS = 4096
TOKENS = 8192
WIDTH = 4096
CLASSES = 128256
DROPPED = 0.1


# ---- AdamW

ADAMW_SHAPES = [
    adamw.Shape(threads, packs, blocks)
    for threads, packs, blocks in (
        (256, 2, 4),
        (128, 2, 8),
        (64, 2, 16),
        (128, 3, 6),
    )
]


def adamw_tensors() -> tuple[list, list]:
    """Random weights and gradients of a language model."""
    sizes = adamw.sizes(**MODEL)
    weights = [torch.randn(size, device="cuda") for size in sizes]
    return weights, [torch.randn_like(w) for w in weights]


def race_adamw(report: Report) -> None:
    """Our launch against PyTorch's fused and foreach optimizers, as they are and as graphs."""
    weights, gradients = adamw_tensors()
    count = sum(w.numel() for w in weights)
    moved = 28 * count
    make = functools.cache(lambda shape: adamw.AdamW(weights, gradients, shape=shape))
    best = fastest(
        report,
        "adamw",
        {str(shape): shape for shape in ADAMW_SHAPES},
        rightness.check_adamw,
        lambda shape: make(shape).step(),
        bytes=moved,
    )
    clipped = adamw.AdamW(weights, gradients, most=1.0, shape=best)
    runs = {
        "ours": make(best).step,
        "ours and clipping": clipped.step,
    }
    runs |= usable(report, "adamw", torch_optimizers(weights, gradients))
    timings = race(report, "adamw", runs, bytes=moved)
    record_share(report, "adamw/share_of_copy", timings["ours"])
    fused = [label for label in runs if "fused" in label]
    theirs = [label for label in runs if "torch" in label]
    record_speedup(report, "adamw/speedup_over_torch_fused", timings, fused)
    record_speedup(report, "adamw/speedup_over_best", timings, theirs)
    found = {
        "tensors": len(weights),
        "numbers": count,
        "best": str(best),
    }
    report.put("clock", "adamw", found)


def torch_optimizers(weights, gradients) -> dict:
    """PyTorch's AdamW in its fast modes."""
    runs = {}
    for mode in ("fused", "foreach"):
        parameters = [torch.nn.Parameter(w.clone()) for w in weights]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        options = {
            mode: True,
            "capturable": True,
            "lr": torch.tensor(1e-3, device="cuda"),
        }
        optimizer = torch.optim.AdamW(parameters, **options)
        runs[f"torch {mode}"] = optimizer.step
        if mode == "fused":
            with contextlib.suppress(Exception):
                runs["torch fused, graph"] = as_graph(optimizer.step)
    return runs


# ---- the block

FORWARD_SHAPES = [
    block.Shape(256, 4),
    block.Shape(128, 6),
    block.Shape(256, 3),
]
BACKWARD_SHAPES = [
    block.Shape(threads, blocks, stages)
    for threads, blocks, stages in (
        (512, 2, 3),
        (512, 2, 2),
        (512, 2, 1),
        (512, 1, 6),
        (256, 1, 6),
    )
]


def block_tensors(rows: int = ROWS, columns: int = COLUMNS) -> dict:
    """Random inputs of both passes, bfloat16."""
    like = {"device": "cuda", "dtype": torch.bfloat16}
    t = {}
    for name in ("x", "residual", "dy", "dout"):
        t[name] = torch.randn(rows, columns, **like)
    for name in ("bias", "gamma", "beta"):
        t[name] = torch.randn(columns, **like)
    return t


def as_torch_writes_it(x, residual, bias, gamma, beta):
    """(y, hidden), by PyTorch's functions."""
    gelu = functional.gelu(x + bias, approximate="tanh")
    hidden = residual + functional.dropout(gelu, DROPPED)
    columns = hidden.shape[-1:]
    norm = functional.layer_norm(hidden, columns, gamma, beta, block.EPSILON)
    return norm, hidden


def race_block(report: Report) -> None:
    """Forward, and forward with backward, against PyTorch eager and compiled."""
    t = block_tensors()
    given = [t[name] for name in ("x", "residual", "bias", "gamma", "beta")]
    matrix = t["x"].nbytes
    forward = functools.partial(block.forward, *given, DROPPED, 0)
    _, _, saved = forward()
    first = fastest(
        report,
        "block forward",
        {str(shape): shape for shape in FORWARD_SHAPES},
        lambda shape: rightness.check_block(forward=shape),
        forward,
        bytes=4 * matrix,
    )
    back = [t["dy"], t["dout"], saved, t["bias"], t["gamma"]]
    second = fastest(
        report,
        "block backward",
        {str(shape): shape for shape in BACKWARD_SHAPES},
        lambda shape: rightness.check_block(backward=shape),
        functools.partial(block.backward, *back),
        bytes=6 * matrix,
    )
    found = {
        "forward": str(first),
        "backward": str(second),
    }
    report.put("clock", "block", found)
    race_whole_block(report, t, given, first, second)


def race_whole_block(report: Report, t: dict, given, first, second) -> None:
    """Both passes against PyTorch's; the compiler's slow best mode last, if time is left."""
    leaves = [tensor.detach().requires_grad_() for tensor in given]
    gradients = [t["dy"], t["dout"]]
    matrix = t["x"].nbytes

    def forward():
        return block.forward(*given, p=DROPPED, shape=first)

    def both():
        *_, kept = forward()
        block.backward(*gradients, kept, t["bias"], t["gamma"], shape=second)

    ours = {
        "fused_block/forward": (forward, 4 * matrix),
        "fused_block": (both, 10 * matrix),
    }
    for modes in (("torch", "compile default"), ("torch", "compile default", "compile")):
        rivals = {mode: block_rivals(mode, leaves, gradients) for mode in modes}
        for number, (name, (mine, moved)) in enumerate(ours.items()):
            runs = {mode: passes[number] for mode, passes in rivals.items()}
            runs = usable(report, name, runs) | {"ours": mine}
            timings = race(report, name, runs, bytes=moved)
            compiled = [mode for mode in runs if mode.startswith("compile")]
            record_speedup(report, f"{name}/speedup_over_compile", timings, compiled)


@functools.cache
def compiled_block(mode: str):
    """PyTorch's functions, as they are or compiled."""
    if mode == "torch":
        return as_torch_writes_it
    how = COMPILE
    if mode == "compile default":
        how = {"dynamic": False, "fullgraph": True}
    return torch.compile(as_torch_writes_it, **how)


def block_rivals(mode: str, leaves, gradients) -> tuple:
    """(forward, forward and backward) of PyTorch in a mode."""
    function = compiled_block(mode)

    def forward():
        with torch.no_grad():
            function(*leaves)

    def both():
        outputs = function(*leaves)
        torch.autograd.grad(outputs, leaves, gradients)

    return forward, both


# ---- linear and cross-entropy


def check_gradients(x, weights, targets) -> float:
    """The largest difference of dx from autograd's, as a share of the largest value."""
    some = (x[:3000], weights, targets[:3000])
    _, ours, _ = linear_cross_entropy.loss_and_gradients(*some)
    _, theirs, _ = linear_cross_entropy.plain(*some)
    apart = ours.float() - theirs.float()
    error = apart.abs().max() / theirs.float().abs().max()
    assert error < 2**-5, f"dx: error {error:.2g}"
    return error.item()


def race_linear_cross_entropy(report: Report) -> None:
    """Time and memory of the chunked loss against all logits at a time."""
    like = {"device": "cuda", "dtype": torch.bfloat16}
    x = torch.randn(TOKENS, WIDTH, **like)
    weights = torch.randn(CLASSES, WIDTH, **like) / WIDTH**0.5
    targets = torch.randint(CLASSES, (TOKENS,), device="cuda")
    given = (x, weights, targets)
    torch._dynamo.reset()
    compiled = torch.compile(linear_cross_entropy.plain_loss, dynamic=False)  # cuBLAS multiplies

    def by_compile():
        leaves = [each.detach().requires_grad_() for each in (x, weights)]
        loss = compiled(*leaves, targets)
        return torch.autograd.grad(loss, leaves)

    def by_liger():
        from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

        leaves = [each.detach().requires_grad_() for each in (x, weights)]
        loss = LigerFusedLinearCrossEntropyLoss()(leaves[1], leaves[0], targets)
        return torch.autograd.grad(loss, leaves)

    ours = functools.partial(linear_cross_entropy.loss_and_gradients, *given)
    runs = {
        "ours": ours,
        "ours, chunks of 1024": functools.partial(ours, 1024),
        "torch": functools.partial(linear_cross_entropy.plain, *given),
        "compile": by_compile,
    }
    if find_spec("liger_kernel"):
        runs["liger"] = by_liger
    runs = usable(report, "linear_cross_entropy", runs)
    report.put("checks", "linear_cross_entropy, whole", check_gradients(*given))
    peaks = {name: linear_cross_entropy.peak_bytes(run) for name, run in runs.items()}
    report.put("clock", "linear_cross_entropy bytes", peaks)
    theirs = [peaks[name] for name in ("torch", "compile") if name in peaks]  # with all logits
    saved = 1 - peaks["ours"] / min(theirs)
    report.record("linear_cross_entropy/memory_saved", saved)
    for name, peak in peaks.items():
        slug = name.replace(", ", "_").replace(" ", "_")
        report.record(f"linear_cross_entropy/{slug}/memory", peak, "B")
    flops = 3 * 2 * TOKENS * WIDTH * CLASSES
    timings = race(report, "linear_cross_entropy", runs, flops=flops)
    record_speedup(report, "linear_cross_entropy/speedup_over_compile", timings, ["compile"])
    record_speedup(report, "linear_cross_entropy/speedup_over_liger", timings, ["liger"])


# ---- all of it

PARTS = {
    "adamw": race_adamw,
    "block": race_block,
    "linear_cross_entropy": race_linear_cross_entropy,
}


def check_all(report: Report) -> None:
    """Every kernel in small sizes; without a GPU on the CPU runtime."""
    for name, check in rightness.CHECKS.items():
        error = report.attempt(name, check)
        if error is not None:
            report.put("checks", name, error)


if __name__ == "__main__":
    main(__doc__, PARTS, check_all)
