"""What torch.compile makes of a chain of small operations, whole and broken in pieces.

Each form is a function of its own: Dynamo keeps what it knows by code object, and a break in one
call of a function would leave its mark on the next.
"""

from collections.abc import Callable
from functools import partial

import torch

from utils import compare, has_gpu, pick, results

DEVICE = pick(gpu="cuda", cpu="cpu")
#: Rows and columns: where memory's speed counts, and where only launches do
SIZES = {
    "large": (8192, 8192),
    "small": (64, 512),
}
SMALL_FOR_A_CPU = (4, 32)
RIGHT = {"rtol": 1e-4, "atol": 1e-5}


def first(x):
    return torch.relu(x * 2 + 1)


def second(x):
    return x * 0.5 + x.abs()


def third(x):
    return torch.clamp(x - 0.25, -4, 4)


def fourth(x):
    """Without a jump at 1: there float32 and float64 may fall on different sides."""
    return torch.where(x > 1, 2 - x, x * x)


def whole(x):
    """Four steps, one after the other."""
    return fourth(third(second(first(x))))


def one_break(x):
    """The same with a graph break in the middle."""
    x = second(first(x))
    torch._dynamo.graph_break()
    return fourth(third(x))


def three_breaks(x):
    """The same with a graph break after each step."""
    x = first(x)
    torch._dynamo.graph_break()
    x = second(x)
    torch._dynamo.graph_break()
    x = third(x)
    torch._dynamo.graph_break()
    return fourth(x)


def forms(backend: str = "inductor") -> dict[str, Callable]:
    """Eager, compiled, compiled in pieces, and replayed as a CUDA graph."""
    how = {"dynamic": False, "backend": backend}
    made = {
        "eager": whole,
        "compiled": torch.compile(whole, **how),
        "one break": torch.compile(one_break, **how),
        "three breaks": torch.compile(three_breaks, **how),
    }
    if backend == "inductor":
        made["cuda graph"] = torch.compile(
            whole,
            dynamic=False,
            mode="reduce-overhead",
        )
    return made


def measure(size: str) -> None:
    """Prove every form against float64, then time them in turn.

    Without a GPU: prove their steps on a few numbers, uncompiled, say so, and show the record.
    """
    torch._dynamo.reset()
    shape = SIZES[size] if has_gpu() else SMALL_FOR_A_CPU
    x = torch.randn(shape, device=DEVICE)
    exact = whole(x.double())
    backend = pick(gpu="inductor", cpu="eager")
    runs = {}
    for name, form in forms(backend).items():
        y = form(x).double()
        torch.testing.assert_close(y, exact, **RIGHT)
        runs[name] = partial(form, x)
    rows, columns = SIZES[size]
    if has_gpu():
        print(f"{rows} × {columns}: {len(runs)} forms, all right")
        race = compare(runs, bytes=2 * x.nbytes, name=f"graph_breaks/{size}")
        print(race.table())
    else:
        print(
            f"checked here: the steps of {len(runs)} forms on {shape[0]} × {shape[1]} numbers, "
            "uncompiled; nothing is timed"
        )
        print(recorded(size))


def recorded(size: str) -> str:
    """Recorded times of the forms, a line each, below the size, the GPU and the day."""
    rows, columns = SIZES[size]
    whose = results.find(f"graph_breaks/{size}/compiled/time")
    lines = []
    if whose:
        lines = [f"recorded: {rows} × {columns}, {whose['gpu']}, {whose['date'][:10]}"]
    for name in ("eager", "compiled", "one_break", "three_breaks", "cuda_graph"):
        entry = results.find(f"graph_breaks/{size}/{name}/time")
        time = "not recorded yet"
        if entry:
            time = f"{entry['value'] * 1000:8.1f} µs"
        words = name.replace("_", " ")
        lines.append(f"{words:14} {time}")
    return "\n".join(lines)
