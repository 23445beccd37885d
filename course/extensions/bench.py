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
import time
import traceback
from pathlib import Path

import torch

from course.extensions import contract, features, fused, routing
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
            self.errors.append({"what": what, "error": traceback.format_exc()[-3000:]})
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
    """Forward alone, then forward and backward, beside PyTorch eager and compiled at its best."""
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

    moved = x.nbytes
    for step, work, arrays in (("forward", forward, 2), ("both", both, 5)):
        rivals = {name: lambda way=way, work=work: work(way) for name, way in ways.items()}
        compared = timing.compare(rivals, bytes=arrays * moved)
        record(log, f"{label}/{step}", compared.timings, arrays * moved)


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


def tune(log: Log, rows: int, columns: int, dtype: torch.dtype) -> None:
    """Other numbers of blocks, threads and rounds: noted, not recorded."""
    x = torch.randn(rows, columns, device=DEVICE, dtype=dtype, requires_grad=True)
    bias = torch.randn(columns, device=DEVICE, dtype=dtype, requires_grad=True)
    dy = torch.randn_like(x)
    seed = torch.randint(1 << 62, (1,), device=DEVICE)
    usual = fused.THREADS, fused.BLOCKS, fused.module
    for flags in ((), ("-DUNROLL=4",), ("-DROUNDS=10",)):
        for threads, blocks in ((128, 8), (128, 16), (128, 64), (256, 4), (256, 8), (64, 32)):
            if log.left() < 10:
                return
            fused.THREADS, fused.BLOCKS = threads, blocks
            fused.blocks_at_a_time.cache_clear()
            fused.module = lambda d, c, flags=flags: usual[2](d, c, flags)
            log.attempt("tune", note_variant, log, (flags, threads, blocks), x, bias, seed, dy)
    fused.THREADS, fused.BLOCKS, fused.module = usual
    fused.blocks_at_a_time.cache_clear()


def note_variant(log, label, x, bias, seed, dy) -> None:
    operators = torch.ops.course_fused
    timing.BUDGET = 0.1
    rivals = {
        "forward": lambda: operators.bias_gelu_dropout(x.detach(), bias, seed, 0.1),
        "backward": lambda: operators.bias_gelu_dropout_backward(dy, x.detach(), bias, seed, 0.1),
    }
    compared = timing.compare(rivals, bytes=x.nbytes)
    medians = {name: t.median and round(t.median, 5) for name, t in compared.timings.items()}
    log.note(f"tune {x.dtype} {label}", medians)


# ---- all of it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=120, help="seconds")
    parser.add_argument("--tune", action="store_true", help="try variants of the fused kernels")
    options = parser.parse_args()
    log = Log(options.out, options.budget)
    log.note("versions", results.versions())
    log.attempt("check fused", check_fused)
    log.note("fused checked at", round(options.budget - log.left(), 1))
    sizes = [(8192, 4096), (16384, 16384)] if has_gpu() else [(16, 64)]
    for rows, columns in sizes:
        for dtype in (torch.bfloat16, torch.float32):
            label = f"race {rows} {columns} {dtype}"
            log.attempt(label, race_fused, log, rows, columns, dtype)
    routes = {name: build(log, name) for name in routing.ROUTES_BY_NAME}
    routes = {name: operators for name, operators in routes.items() if operators}
    log.note("built at", round(options.budget - log.left(), 1))
    log.attempt("overhead", time_calls, log, routes)
    if has_gpu():
        log.attempt("allocations", time_allocations, log)
    for name, operators in routes.items():
        try_features(log, name, operators)
    log.attempt("contract", try_contract, log)
    log.note("features at", round(options.budget - log.left(), 1))
    if options.tune:
        for dtype in (torch.bfloat16, torch.float32):
            tune(log, *sizes[0], dtype)
    show(log)


def show(log: Log) -> None:
    """A short table: what a reader wants to know first."""
    for entry in log.entries:
        name = entry["name"].removeprefix("extensions/")
        if not name.startswith(("feature", "lines")) and not name.endswith("bandwidth"):
            print(f"{name:48} {entry['value']:10.4g} {entry['unit']}")
    for name, text in log.notes.items():
        if not name.startswith("tune"):
            print(f"{name}: {text}"[:150])
    for error in log.errors:
        print("FAILED", error["what"], error["error"].strip().splitlines()[-1][:200])


if __name__ == "__main__":
    main()
