"""Tries every feature on every route, and times calls and the fused operator, all in one run.

    python -m course.extensions.bench --out extensions.json [--budget 120]

What is recorded: `extensions/feature/<feature>/<route>` (1 where it works), the routes' build
times and overhead a call beside torch's own add, and the fused operator beside PyTorch's. Each
result is written as soon as it is there; an error is written down and does not end the run.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import traceback
import zipfile
from pathlib import Path

import torch

from course.extensions import contract, convolution, features, fused, packaging, routing
from utils import has_gpu, results, timing

DEVICE = "cuda" if has_gpu() else "cpu"
A, B, C = features.A, features.B, features.C
CALLS = 2000 if has_gpu() else 20  # of a tiny tensor, between two looks at the clock
ROUNDS = 9


class Log:
    """The results so far, in a file; knows how much time is left."""

    def __init__(self, path: Path, budget: float):
        self.path = path
        self.end = time.monotonic() + budget
        self.entries = []
        self.errors = []
        self.notes = {}

    def left(self) -> float:
        return self.end - time.monotonic()

    def add(self, name: str, value: float, unit: str, spread: float = 0.0) -> None:
        entry = {"name": name, "value": float(value), "unit": unit, "spread": float(spread)}
        self.entries.append(entry)
        if os.environ.get(results.RECORD):
            results.append(entry)
        self.write()

    def note(self, name: str, text) -> None:
        self.notes[name] = text
        self.write()

    def attempt(self, what: str, function, *arguments):
        """function's result, or None after an error, which is written down."""
        try:
            return function(*arguments)
        except Exception:
            self.errors.append({"what": what, "error": traceback.format_exc()[-6000:]})
            self.write()
            return None

    def write(self) -> None:
        content = {"results": self.entries, "notes": self.notes, "errors": self.errors}
        self.path.write_text(json.dumps(content, indent=1))


# ---- the routes


def build(log: Log, name: str):
    """A route's operators, with its build time recorded, or None."""
    taken = log.attempt(f"build {name}", routing.take, name)
    if taken is None:
        log.note("compiler", log.attempt("compiler", packaging.run, ["g++", "--version"]))
        return None
    log.add(f"extensions/build/{name}", taken.seconds, "s")
    log.add(f"extensions/lines/{name}", taken.route.lines, "line")
    return getattr(torch.ops, taken.namespace)


def try_features(log: Log, name: str, operators) -> None:
    """Records 1 or 0 for each feature; the reasons are notes."""
    for feature in features.FEATURES:
        if log.left() < 5:
            return
        outcome = features.attempt(feature, operators, DEVICE)
        if outcome != features.UNKNOWN:
            log.add(f"extensions/feature/{feature}/{name}", outcome == features.WORKS, "1")
        if outcome not in (features.WORKS, features.UNKNOWN):
            log.note(f"{name}: {feature}", outcome)


#: Run with another PyTorch than the one that a wheel was built with
STRANGER = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from polynomial_op import polynomial
x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
torch.testing.assert_close(polynomial(x, 0.3, -1.7, 0.9), 0.3 * x * x - 1.7 * x + 0.9)
assert torch.autograd.gradcheck(polynomial, (x, 0.3, -1.7, 0.9))
torch.library.opcheck(torch.ops.polynomial_op.polynomial, (x, 0.3, -1.7, 0.9))
"""


def try_wheel(log: Log, wheel: Path, built_with: str) -> None:
    """Load a wheel that was built elsewhere, with another version of PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder)
        packaging.run([sys.executable, "-c", STRANGER, folder])
    log.add(f"extensions/wheel/built_with_{built_with}", 1, "1")


def overhead(log: Log, calls: dict) -> None:
    """Microseconds of the host for a call, in turn, with so little work that the GPU never lags."""
    samples = {label: [] for label in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for label, call in calls.items():
            synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            synchronize()
            samples[label].append((time.perf_counter() - start) / CALLS * 1e6)
    for label, times in samples.items():
        low, middle, high = statistics.quantiles(times, n=4)
        log.add(f"extensions/overhead/{label}", middle, "us", (high - low) / 2)


def synchronize() -> None:
    if has_gpu():
        torch.cuda.synchronize()


def time_calls(log: Log, routes: dict) -> None:
    """A call of each route beside torch's own add, without and with a gradient to come."""
    x = torch.randn(64, device=DEVICE)
    leaf = x.clone().requires_grad_()
    calls = {"torch_add": lambda: x + x, "torch_add_with_gradient": lambda: leaf + leaf}
    for name, operators in routes.items():
        polynomial = operators.polynomial
        calls[name] = lambda polynomial=polynomial: polynomial(x, A, B, C)
        calls[f"{name}_with_gradient"] = lambda p=polynomial: p(leaf, A, B, C)
    overhead(log, calls)


def time_allocations(log: Log) -> None:
    """64 MB of PyTorch's caching allocator beside the driver's own, given back at once."""
    from cuda.bindings import driver

    count = 64 << 20
    torch.empty(count, dtype=torch.uint8, device=DEVICE)

    def by_driver():
        error, address = driver.cuMemAlloc(count)
        assert error == driver.CUresult.CUDA_SUCCESS, error
        driver.cuMemFree(address)

    ways = {
        "caching": lambda: torch.empty(count, dtype=torch.uint8, device=DEVICE),
        "driver": by_driver,
    }
    for label, way in ways.items():
        times = []
        for _ in range(50):
            synchronize()
            start = time.perf_counter()
            way()
            times.append((time.perf_counter() - start) * 1e6)
        low, middle, high = statistics.quantiles(times, n=4)
        log.add(f"extensions/allocate/{label}", middle, "us", (high - low) / 2)


def try_contract(log: Log) -> None:
    """Which tests notice what was broken on purpose."""
    for name in ("right", *contract.BREAKS):
        if log.left() > 5:
            log.note(f"contract: {name}", sorted(contract.caught_by(name)))


# ---- the fused operator


def torch_way(x, bias, p):
    """What a PyTorch user writes."""
    return torch.nn.functional.dropout(torch.nn.functional.gelu(x + bias), p)


def check_fused() -> None:
    """Raises AssertionError where values, gradients or the mask's share are wrong."""
    for shape in ((1, 8), (7, 33), (5, 1000), (3, 2, 264)):
        for dtype in fused.NUMBERS:
            check_fused_at(shape, dtype)
    x = torch.ones(512, 1024, device=DEVICE)
    y = fused.bias_gelu_dropout(x, torch.zeros(1024, device=DEVICE), 0.25)
    share = (y == 0).float().mean().item()
    assert abs(share - 0.25) < 0.01, f"dropped {share} instead of 0.25"


def check_fused_at(shape, dtype) -> None:
    x = (2 * torch.randn(shape, device=DEVICE)).to(dtype).requires_grad_()
    bias = torch.randn(shape[-1], device=DEVICE).to(dtype).requires_grad_()
    y = fused.bias_gelu_dropout(x, bias, 0.0)
    dy = torch.randn_like(y)
    wide, wide_bias = (t.detach().double().requires_grad_() for t in (x, bias))
    right = torch.nn.functional.gelu(wide + wide_bias)
    torch.testing.assert_close(y, right.to(dtype))
    ours = torch.autograd.grad(y, (x, bias), dy)
    theirs = torch.autograd.grad(right, (wide, wide_bias), dy.double())
    for mine, exact in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, exact.to(dtype), rtol=2e-2, atol=1e-4)


def race_fused(log: Log, rows: int, columns: int, dtype: torch.dtype) -> None:
    """Forward alone, then forward and backward, beside PyTorch eager and compiled at its best.

    Each as a CUDA graph, which takes the host's time out of all of them alike.
    """
    x = torch.randn(rows, columns, device=DEVICE, dtype=dtype, requires_grad=True)
    bias = torch.randn(columns, device=DEVICE, dtype=dtype, requires_grad=True)
    dy = torch.randn(rows, columns, device=DEVICE, dtype=dtype)
    compiled = torch.compile(
        torch_way, fullgraph=True, mode="max-autotune-no-cudagraphs", dynamic=False
    )
    ways = {"ours": fused.bias_gelu_dropout, "eager": torch_way, "compiled": compiled}
    label = f"extensions/fused/{rows}x{columns}/{str(dtype).removeprefix('torch.')}"

    def forward(way):
        with torch.no_grad():
            return way(x, bias, 0.1)

    def both(way):
        return torch.autograd.grad(way(x, bias, 0.1), (x, bias), dy)

    for step, work, arrays in (("forward", forward, 2), ("both", both, 5)):
        graphs = {name: graphed(lambda way=way, work=work: work(way)) for name, way in ways.items()}
        compared = timing.compare(graphs, bytes=arrays * x.nbytes)
        record(log, f"{label}/{step}", compared.timings, arrays * x.nbytes)


def graphed(work):
    """Replays work as a CUDA graph; without a GPU just work."""
    if not has_gpu():
        return work
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = work()
    return lambda: (graph.replay(), kept)[0]


def record(log: Log, path: str, timings: dict, moved: float) -> None:
    """Times, bandwidths, and how many times as fast as the faster rival ours is."""
    if not has_gpu():
        return
    for name, result in timings.items():
        rate = moved / result.median * 1e3
        log.add(f"{path}/{name}/time", result.median, "ms", result.spread)
        log.add(f"{path}/{name}/bandwidth", rate, "B/s", rate * result.spread / result.median)
    ours = timings["ours"]
    log.add(f"{path}/ours/share_of_copy", ours.share_of_copy, "1")
    best = min((t for name, t in timings.items() if name != "ours"), key=lambda t: t.median)
    relative = best.spread / best.median + ours.spread / ours.median
    ratio = best.median / ours.median
    log.add(f"{path}/speedup_over_best", ratio, "1", ratio * relative)


# ---- the convolution


def race_convolution(log: Log) -> None:
    """The digits' second convolution, checked against float64, then beside PyTorch's."""
    number = convolution.implicit.sixteen_bits()
    count = 256 if has_gpu() else 2
    x = torch.randn(count, 32, 14, 14, device=DEVICE).to(number)
    x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    w = (torch.randn(64, 32, 3, 3, device=DEVICE) / 17).to(number)
    w = w.contiguous(memory_format=torch.channels_last).requires_grad_()
    y = convolution.conv3x3(x, w)
    dy = torch.randn_like(y)
    wide = [tensor.detach().double().requires_grad_() for tensor in (x, w)]
    exact = torch.nn.functional.conv2d(*wide, padding=1)
    right = torch.autograd.grad(exact, wide, dy.double())
    for ours, theirs in zip(torch.autograd.grad(y, (x, w), dy), right, strict=True):
        assert (ours - theirs).norm() <= 2**-8 * theirs.norm()

    # leaves that no graph outside of the captured one knows
    x, w = (tensor.detach().clone().requires_grad_() for tensor in (x, w))

    def both(way):
        return torch.autograd.grad(way(x, w), (x, w), dy)

    def by_torch(x, w):
        return torch.nn.functional.conv2d(x, w, padding=1)

    ways = {"ours": convolution.conv3x3, "torch": by_torch}
    graphs = {name: graphed(lambda way=way: both(way)) for name, way in ways.items()}
    compared = timing.compare(graphs)
    for name, result in compared.timings.items():
        if has_gpu():
            log.add(f"extensions/conv3x3/{name}/time", result.median, "ms", result.spread)


# ---- all of it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=120, help="seconds")
    parser.add_argument("--wheel", type=Path, help="a wheel built elsewhere, to be tried here")
    parser.add_argument("--built-with", default="unknown", help="the PyTorch it was built with")
    options = parser.parse_args()
    log = Log(options.out, options.budget)
    log.note("versions", results.versions())
    log.attempt("check fused", check_fused)
    log.note("fused checked at", round(options.budget - log.left(), 1))
    routes = {name: build(log, name) for name in routing.ROUTES_BY_NAME}
    routes = {name: operators for name, operators in routes.items() if operators}
    log.note("built at", round(options.budget - log.left(), 1))
    if options.wheel:
        log.attempt("wheel", try_wheel, log, options.wheel, options.built_with)
    log.attempt("overhead", time_calls, log, routes)
    if has_gpu():
        log.attempt("allocations", time_allocations, log)
    for name, operators in routes.items():
        try_features(log, name, operators)
    log.attempt("contract", try_contract, log)
    log.note("features at", round(options.budget - log.left(), 1))
    sizes = [(8192, 4096), (16384, 16384)] if has_gpu() else [(16, 64)]
    for rows, columns in sizes:
        for dtype in (torch.bfloat16, torch.float32):
            label = f"race {rows} {columns} {dtype}"
            if log.left() > 20:
                log.attempt(label, race_fused, log, rows, columns, dtype)
    log.attempt("convolution", race_convolution, log)
    log.note("raced at", round(options.budget - log.left(), 1))
    show(log)


def show(log: Log) -> None:
    """A short table: what a reader wants to know first."""
    for entry in log.entries:
        name = entry["name"].removeprefix("extensions/")
        if not name.startswith(("feature", "lines")) and not name.endswith("bandwidth"):
            print(f"{name:48} {entry['value']:10.4g} {entry['unit']}")
    for name, text in log.notes.items():
        print(f"{name}: {text}"[:150])
    for error in log.errors:
        print("FAILED", error["what"], error["error"].strip().splitlines()[-1][:200])


if __name__ == "__main__":
    main()
