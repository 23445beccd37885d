"""What torch.compile makes of a chain of small operations, whole and broken in pieces."""

from collections.abc import Callable

import torch

from course.kernels.row_kernels.report import Report
from utils import compare, pick, timing

DEVICE = pick(gpu="cuda", cpu="cpu")
#: Rows and columns: where memory's speed counts, and where only launches do
SIZES = {"large": pick(gpu=(8192, 8192), cpu=(16, 32)), "small": pick(gpu=(64, 512), cpu=(4, 8))}
BREAKS = (0, 1, 3)  # between the chain's four steps
STEPS: tuple[Callable, ...] = (
    lambda x: torch.nn.functional.gelu(x * 2 + 1),
    lambda x: x * torch.sigmoid(x) + 0.5,
    lambda x: torch.tanh(x) * x,
    lambda x: torch.relu(x - 0.25) + x.abs(),
)


def chain(breaks: int) -> Callable:
    """The four steps one after the other, with graph breaks after the first ones."""

    def run(x):
        for number, step in enumerate(STEPS):
            x = step(x)
            if number < breaks:
                torch._dynamo.graph_break()
        return x

    return run


def variants() -> dict[str, Callable]:
    """Eager, compiled, compiled in pieces, and replayed as a CUDA graph."""
    made = {"eager": chain(0)}
    for breaks in BREAKS:
        name = f"compile_{breaks}_breaks" if breaks else "compile"
        made[name] = torch.compile(chain(breaks), dynamic=False)
    made["cuda_graph"] = torch.compile(chain(0), dynamic=False, mode="reduce-overhead")
    made["dynamic"] = torch.compile(chain(0), dynamic=True)
    return made


def race(report: Report) -> None:
    """Check every variant against float64, then time all in turn; recorded."""
    for label, size in SIZES.items():
        torch._dynamo.reset()
        x = torch.randn(size, device=DEVICE)
        exact = chain(0)(x.double())
        runs = {}
        for name, variant in variants().items():
            try:
                torch.testing.assert_close(variant(x).double(), exact, rtol=1e-4, atol=1e-5)
            except Exception as error:
                report.failed(f"compile {label} {name}", error)
                continue
            runs[name] = lambda variant=variant, x=x: variant(x)
        timing.BUDGET = 0.3
        moved = 2 * x.numel() * x.element_size()
        timed = compare(runs, bytes=moved, name=f"torch_compile/{label}").timings
        report.put("races", f"compile/{label}", {name: t.median for name, t in timed.items()})


def table(report: Report) -> list[str]:
    """A line a size."""
    return [
        f"{label:<16} " + "  ".join(f"{name} {ms:.4f}" for name, ms in entry.items())
        for label, entry in report.entries["races"].items()
        if label.startswith("compile") and all(entry.values())
    ]
