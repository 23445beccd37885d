"""Tries every feature on every route, and times calls and the fused operator, all in one run.

    python -m course.extensions.bench --out extensions.json [--budget 120] [--parts package fused]

What is recorded: `extensions/feature/<feature>/<route>` (1 where it works), the routes' build
times and overhead a call beside torch's own add, how many of the package's tests pass in a fresh
environment, and the fused operator and the convolution beside PyTorch's. Each result is written as
soon as it is there; an error is written down and does not end the run.
"""

import re
import tempfile
import time
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional

from course.extensions import contract, convolution, features, fused, packaging, routing
from course.kernels.bench.command import command_line, run_parts, table
from course.kernels.bench.races import race, record_speedup
from course.kernels.bench.report import Report
from course.kernels.mnist_cnn.pytorch_modes import as_graph
from utils import has_gpu, results, timing

DEVICE = "cuda" if has_gpu() else "cpu"
A = features.A
B = features.B
C = features.C
CALLS = 2000 if has_gpu() else 20  # of a tiny tensor, between two looks at the clock
ROUNDS = 9
WHEEL = "the wheel, seconds"  # that its route need not spend again


# ---- the routes


def build(report: Report, name: str):
    """A route's operators, with its build time recorded, or None."""
    taken = report.attempt(f"build {name}", routing.take, name)
    if taken is None:
        compiler = report.attempt("compiler", packaging.run, ["g++", "--version"])
        report.put("notes", "compiler", compiler)
        return None
    seconds = taken.seconds
    if name == "packaged":
        seconds += report.entries["clock"].get(WHEEL, 0)
    report.record(f"extensions/build/{name}", seconds, "s")
    report.record(f"extensions/lines/{name}", taken.route.lines, "line")
    return getattr(torch.ops, taken.namespace)


def try_features(report: Report, name: str, operators) -> None:
    """Records 1 or 0 for each feature; the reasons are notes."""
    for feature in features.FEATURES:
        if report.left() < 5:
            return
        outcome = features.attempt(feature, operators, DEVICE)
        works = outcome == features.WORKS
        if outcome != features.UNKNOWN:
            report.record(f"extensions/feature/{feature}/{name}", works, "1")
        if outcome != features.UNKNOWN and not works:
            report.put("notes", f"{name}: {feature}", outcome)


def overhead(report: Report, calls: dict) -> None:
    """Microseconds of the host for a call, in turn, with so little work that the GPU never lags."""
    samples = {label: [] for label in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for label, call in calls.items():
            samples[label].append(microseconds(call, CALLS))
    for label, times in samples.items():
        add_median(report, f"extensions/overhead/{label}", times)


def microseconds(call, count: int) -> float:
    """Of the host for a call, one of so many."""
    synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    synchronize()
    seconds = time.perf_counter() - start
    return seconds / count * 1e6


def add_median(report: Report, path: str, times: list[float]) -> None:
    """Record the median, and half the interquartile range."""
    middle, spread = timing.median_and_spread(times)
    report.record(path, middle, "us", spread)


def synchronize() -> None:
    if has_gpu():
        torch.cuda.synchronize()


def time_calls(report: Report, routes: dict) -> None:
    """A call of each route beside torch's own add, without and with a gradient to come."""
    x = torch.randn(64, device=DEVICE)
    leaf = x.clone().requires_grad_()
    calls = {
        "torch_add": lambda: x + x,
        "torch_add_with_gradient": lambda: leaf + leaf,
    }
    for name, operators in routes.items():
        calls[name] = partial(operators.polynomial, x, A, B, C)
        calls[f"{name}_with_gradient"] = partial(operators.polynomial, leaf, A, B, C)
    overhead(report, calls)


def time_allocations(report: Report) -> None:
    """64 MB of PyTorch's caching allocator beside the driver's own, given back at once."""
    from cuda.bindings import driver

    count = 64 << 20
    caching = partial(torch.empty, count, dtype=torch.uint8, device=DEVICE)
    caching()

    def by_driver():
        error, address = driver.cuMemAlloc(count)
        assert error == driver.CUresult.CUDA_SUCCESS, error
        driver.cuMemFree(address)

    ways = {"caching": caching, "driver": by_driver}
    for label, way in ways.items():
        times = [microseconds(way, 1) for _ in range(50)]
        add_median(report, f"extensions/allocate/{label}", times)


def try_contract(report: Report) -> None:
    """Which tests notice what was broken on purpose."""
    for forward in (contract.right, *contract.BREAKS.values()):
        if report.left() > 5:
            caught = contract.caught_by(forward)
            report.put("notes", f"contract: {forward.__name__}", sorted(caught))


# ---- the fused operator


def torch_way(x, bias, p):
    """What a PyTorch user writes."""
    return functional.dropout(functional.gelu(x + bias), p)


def check_fused() -> None:
    """Raises AssertionError where values, gradients or the mask's share are wrong."""
    for shape in ((1, 8), (7, 33), (5, 1000), (3, 2, 264)):
        for dtype in fused.NUMBERS:
            check_fused_at(shape, dtype)
    x = torch.ones(512, 1024, device=DEVICE)
    no_bias = torch.zeros(1024, device=DEVICE)
    y = fused.bias_gelu_dropout(x, no_bias, 0.25)
    dropped = (y == 0).float().mean().item()
    assert abs(dropped - 0.25) < 0.01, f"dropped {dropped} instead of 0.25"


def check_fused_at(shape, dtype) -> None:
    x = 2 * torch.randn(shape, device=DEVICE)
    bias = torch.randn(shape[-1], device=DEVICE)
    leaves = [each.to(dtype).requires_grad_() for each in (x, bias)]
    y = fused.bias_gelu_dropout(*leaves, 0.0)
    dy = torch.randn_like(y)
    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
    right = functional.gelu(sum(wide))
    torch.testing.assert_close(y, right.to(dtype))
    ours = torch.autograd.grad(y, leaves, dy)
    theirs = torch.autograd.grad(right, wide, dy.double())
    for mine, exact in zip(ours, theirs, strict=True):
        torch.testing.assert_close(
            mine,
            exact.to(dtype),
            rtol=2e-2,
            atol=1e-4,
        )


def race_fused(
    report: Report,
    rows: int,
    columns: int,
    dtype: torch.dtype,
) -> None:
    """Forward alone, then forward and backward, beside PyTorch eager and compiled at its best.

    Each as a CUDA graph, which takes the host's time out of all of them alike.
    """
    how = {"device": DEVICE, "dtype": dtype}
    x = torch.randn(rows, columns, requires_grad=True, **how)
    bias = torch.randn(columns, requires_grad=True, **how)
    dy = torch.randn(rows, columns, **how)
    compiled = torch.compile(
        torch_way,
        fullgraph=True,
        mode="max-autotune-no-cudagraphs",
        dynamic=False,
    )
    ways = {
        "ours": fused.bias_gelu_dropout,
        "eager": torch_way,
        "compiled": compiled,
    }
    number = str(dtype).removeprefix("torch.")
    label = f"extensions/fused/{rows}x{columns}/{number}"

    def forward(way):
        with torch.no_grad():
            return way(x, bias, 0.1)

    def both(way):
        y = way(x, bias, 0.1)
        return torch.autograd.grad(y, (x, bias), dy)

    for step, work, arrays in (("forward", forward, 2), ("both", both, 5)):
        graphs = {name: graphed(partial(work, way)) for name, way in ways.items()}
        if not has_gpu():
            timing.compare(graphs)
            continue
        place = f"{label}/{step}"
        timings = race(report, place, graphs, bytes=arrays * x.nbytes)
        record_speedup(report, f"{place}/speedup_over_best", timings, ("eager", "compiled"))


def graphed(work):
    """Replays work as a CUDA graph; without a GPU just work."""
    return as_graph(work) if has_gpu() else work


# ---- the convolution


def race_convolution(report: Report) -> None:
    """The digits' second convolution, checked against float64, then beside PyTorch's."""
    number = convolution.implicit.sixteen_bits()
    count = 256 if has_gpu() else 2
    x = leaf_of(torch.randn(count, 32, 14, 14), number)
    w = leaf_of(torch.randn(64, 32, 3, 3) / 17, number)
    dy = torch.randn_like(by_torch(x, w))
    wide = [each.detach().double().requires_grad_() for each in (x, w)]
    exact = by_torch(*wide)
    right = torch.autograd.grad(exact, wide, dy.double())
    ways = {
        "this_shape": convolution.conv3x3,
        "any_shape": partial(convolution.conv3x3, special=False),
    }
    for way in ways.values():
        gradients = torch.autograd.grad(way(x, w), (x, w), dy)
        for ours, theirs in zip(gradients, right, strict=True):
            assert (ours - theirs).norm() <= 2**-8 * theirs.norm()

    # leaves that no graph outside of the captured one knows
    leaves = [each.detach().clone().requires_grad_() for each in (x, w)]

    def both(way):
        return torch.autograd.grad(way(*leaves), leaves, dy)

    rivals = {**ways, "torch": by_torch}
    graphs = {name: graphed(partial(both, way)) for name, way in rivals.items()}
    timings = timing.compare(graphs).timings
    if not has_gpu():
        return
    for name, result in timings.items():
        report.record(f"extensions/conv3x3/{name}/time", result.median, "ms", result.spread)
    for name in ways:
        ratio, spread = timing.speedup(timings[name], timings["torch"])
        report.record(f"extensions/conv3x3/{name}/speedup_over_torch", ratio, "1", spread)


def by_torch(x, w):
    """PyTorch's convolution, 3 by 3."""
    return functional.conv2d(x, w, padding=1)


def leaf_of(tensor: torch.Tensor, number: torch.dtype) -> torch.Tensor:
    """The same numbers, channels last, as an input whose gradient is asked for."""
    tensor = tensor.to(DEVICE, number)
    return tensor.contiguous(memory_format=torch.channels_last).requires_grad_()


# ---- the package


def try_package(report: Report) -> None:
    """Build the package, install it into a fresh environment, and run its own tests there."""
    start = time.perf_counter()
    wheel = packaging.wheel()
    report.put("clock", WHEEL, time.perf_counter() - start)
    with tempfile.TemporaryDirectory() as folder:
        python = packaging.fresh_environment(Path(folder) / "environment")
        packaging.install(wheel, python)
        said = packaging.test(python)
    report.put("notes", "package", f"{wheel.name}: {said}")
    passed = re.match(r"(\d+) passed", said)
    if passed:
        report.record("extensions/package/tests_passed", int(passed[1]), "1")


# ---- all of it


def try_routes(report: Report) -> None:
    """Build every route, time its calls, and try every feature on it."""
    routes = {name: build(report, name) for name in routing.ROUTES_BY_NAME}
    routes = {name: operators for name, operators in routes.items() if operators}
    report.put("clock", "built, seconds left", round(report.left()))
    report.attempt("overhead", time_calls, report, routes)
    if has_gpu():
        report.attempt("allocations", time_allocations, report)
    for name, operators in routes.items():
        try_features(report, name, operators)
    report.attempt("contract", try_contract, report)


def race_all_fused(report: Report) -> None:
    """The fused operator, checked, then raced in two sizes and two types."""
    check_fused()
    sizes = [(16384, 16384), (8192, 4096)] if has_gpu() else [(16, 64)]
    for rows, columns in sizes:
        for dtype in (torch.bfloat16, torch.float32):
            label = f"race {rows} {columns} {dtype}"
            if report.left() > 10:
                report.attempt(label, race_fused, report, rows, columns, dtype)


#: The convolution comes last: a capture that fails would take what follows with it.
PARTS = {
    "package": try_package,
    "routes": try_routes,
    "fused": race_all_fused,
    "convolution": race_convolution,
}


def main() -> None:
    options = command_line(__doc__, 120, PARTS).parse_args()
    report = Report(options.out, options.budget)
    report.put("notes", "versions", results.versions())
    run_parts(report, {name: PARTS[name] for name in PARTS if name in options.parts})
    show(report)


def show(report: Report) -> None:
    """A short table: what a reader wants to know first."""
    for name, (value, unit, _) in report.entries["found"].items():
        name = name.removeprefix("extensions/")
        if not name.startswith(("feature", "lines")) and not name.endswith("bandwidth"):
            print(f"{name:48} {value:10.4g} {unit}")
    for name, text in report.entries["notes"].items():
        print(f"{name}: {text}"[:150])
    print(table(report))


if __name__ == "__main__":
    main()
