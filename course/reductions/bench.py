"""Checks every fast kernel of this folder, then times it beside CUB and PyTorch, in one run.

    python -m course.reductions.bench --out reductions.json --budget 150 [--only sum scan sort]

Each result is written as soon as it is there: {"name", "value", "unit", "spread", "label"}. One
failure does not end the run. Without a GPU the kernels that run there are checked in small sizes.
"""

import argparse
import json
import statistics
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from course.reductions import (
    cub,
    scan_ladder,
    scan_lookback,
    scans,
    sorts,
    sum_ladder,
    sum_precise,
    sums,
)
from utils.engine import has_gpu

FLUSH_BYTES = 1 << 30  # overwritten before each repeat: clears the L2 and hides the launch
SHOWN = 10  # rows of a table that are printed; all are written
DEVICE = "cuda" if has_gpu() else "cpu"

RINGS = [
    scans.Ring(16, 8192, 7, 3),
    scans.Ring(12, 7680, 7, 3),
    scans.Ring(8, 8192, 7, 3),
    scans.Ring(8, 7168, 8, 4),
    scans.Ring(8, 6144, 9, 4),
    scans.Ring(8, 5120, 5, 2, blocks=2),
    *(
        scans.Ring(warps, tile, stages, lag, eager)
        for eager in (1, 2)
        for warps, tile, stages, lag in (
            (16, 8192, 7, 1),
            (16, 8192, 7, 3),
            (16, 8192, 7, 5),
            (8, 8192, 7, 5),
            (8, 6144, 9, 5),
            (8, 6144, 9, 7),
            (16, 4096, 13, 8),
            (8, 4096, 14, 11),
            (8, 2048, 28, 20),
            (16, 10240, 5, 3),
            (16, 14336, 4, 2),
        )
    ),
]
PERSISTENT = [
    scans.Persistent(256, 8, 2),
    scans.Persistent(512, 4, 2),
    scans.Persistent(256, 10, 2),
]
LOOKBACKS = [
    scans.Lookback(256, 8),
    scans.Lookback(256, 12),
    scans.Lookback(128, 16),
    scans.Lookback(192, 10),
]
SUMS = [
    sums.Shape(threads, loads, blocks, how, ranges)
    for how in (0, 1, 2)
    for ranges in (False, True)
    for threads, loads, blocks in (
        (512, 4, 4),
        (512, 4, 16),
        (512, 4, 64),
        (256, 4, 8),
        (256, 4, 40),
        (256, 4, 128),
        (512, 2, 32),
        (256, 2, 64),
        (1024, 4, 2),
        (1024, 4, 16),
        (512, 16, 2),
        (512, 16, 8),
        (256, 16, 32),
    )
]
SUM_RINGS = [
    sums.Ring(8, 8192, 6),
    sums.Ring(8, 4096, 12),
    sums.Ring(8, 2048, 24),
    sums.Ring(16, 8192, 6),
    sums.Ring(16, 16384, 3),
    sums.Ring(8, 4096, 6, blocks=2),
    sums.Ring(8, 4096, 3, blocks=4),
    sums.Ring(8, 2048, 6, blocks=4),
    sums.Ring(8, 4096, 12, blocks=4),
    sums.Ring(8, 4096, 6, blocks=16),
]
SORTS = [
    sorts.Shape(256, 24, 3),
    sorts.Shape(256, 22, 3),
    sorts.Shape(256, 28, 3),
    sorts.Shape(256, 32, 2),
    sorts.Shape(384, 16, 3),
    sorts.Shape(384, 18, 3),
    sorts.Shape(384, 22, 2),
    sorts.Shape(512, 16, 2),
    sorts.Shape(512, 12, 3),
    sorts.Shape(320, 20, 3),
]


class Log:
    """The results so far, in a file and in memory; knows how much time is left."""

    def __init__(self, path: Path, budget: float):
        self._path, self._end = path, time.monotonic() + budget
        self.entries, self.errors, self.lines = [], [], []

    def left(self) -> float:
        return self._end - time.monotonic()

    def add(self, name: str, value: float, unit: str, spread: float = 0.0, label: str = "") -> None:
        entry = {"name": name, "value": value, "unit": unit, "spread": spread, "label": label}
        self.entries.append(entry)
        self._write()

    def say(self, line: str) -> None:
        print(line, flush=True)
        self.lines.append(line)
        self._write()

    def fail(self, what: str) -> None:
        text = traceback.format_exc()
        self.errors.append({"what": what, "error": text[-3000:]})
        self.say(f"FAILED {what}: {text.strip().splitlines()[-1][:300]}")

    def attempt(self, what: str, function, *arguments):
        """function's result, or None after an error, which is written down."""
        try:
            return function(*arguments)
        except Exception:
            self.fail(what)
            return None

    def _write(self):
        content = {"results": self.entries, "errors": self.errors, "lines": self.lines}
        self._path.write_text(json.dumps(content, indent=1))


# ---- the clock --------------------------------------------------------------------------------


def clock(rivals: dict, repeats: int) -> dict[str, tuple[float, float]]:
    """Median and half the interquartile range, in ms, of each rival; all in turn, L2 cold."""
    flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.float32, device=DEVICE)
    for work in rivals.values():
        work()
    torch.cuda.synchronize()
    pairs = {label: [] for label in rivals}
    for _ in range(repeats):
        for label, work in rivals.items():
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            flush.zero_()
            flush.fill_(1)
            begin.record()
            work()
            end.record()
            pairs[label].append((begin, end))
        torch.cuda.synchronize()
    result = {}
    for label, events in pairs.items():
        samples = [begin.elapsed_time(end) for begin, end in events]
        low, middle, high = statistics.quantiles(samples, n=4)
        result[label] = middle, (high - low) / 2
    return result


def table(log: Log, name: str, times: dict, moved: float, rival: str, report: dict) -> None:
    """Prints a row for each of the times, and records those that `report` names.

    moved: bytes that the work reads and writes; report: label -> name of the recorded metric.
    """
    base = times[rival][0]
    for place, (label, (middle, spread)) in enumerate(sorted(times.items(), key=lambda r: r[1])):
        rate = moved / middle / 1e6
        ratio = base / middle
        log.add(f"{name}/time", middle, "ms", spread, label)
        if place >= SHOWN and "(" in label:  # one of many variants of ours
            continue
        log.say(
            f"{name:<12} {label:<44} {middle:8.4f} ms ±{spread:7.4f} {rate:6.0f} GB/s {ratio:5.3f}"
        )
    for label, metric in report.items():
        if label in times:
            log.add(metric, base / times[label][0], "1", 0.0, label)


def copy_rival(n: int):
    """A copy of n floats within the GPU's memory."""
    source = torch.rand(n, device=DEVICE)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


# ---- scan -------------------------------------------------------------------------------------


def check_scan(method, dtype: str, sizes) -> None:
    """Raises AssertionError at the first size at which a scan is wrong."""
    generator = torch.Generator(device=DEVICE).manual_seed(1)
    for n in sizes:
        if dtype == "int32":
            x = torch.randint(
                -1000, 1000, (n,), device=DEVICE, dtype=torch.int32, generator=generator
            )
        else:
            x = torch.rand(n, device=DEVICE, generator=generator)
        out = torch.full_like(x, -7)
        scan = scans.Scan(n, dtype, method)
        for _ in range(2):
            scan(x, out)
        if dtype == "int32":
            right = torch.cumsum(x, 0, dtype=torch.int32)
            assert torch.equal(out, right), f"{method} {dtype} n={n}: wrong"
        elif n:
            right = torch.cumsum(x.double(), 0)
            error = ((out - right).abs() / right.clamp(min=1)).max().item()
            assert error < 2e-6, f"{method} n={n}: error {error}"


def check_long_scan(method) -> None:
    """Raises AssertionError if a scan of more than 2^31 elements is wrong."""
    n = (1 << 31) + 9
    x = torch.randint(-9, 9, (n,), device=DEVICE, dtype=torch.int32)
    out = torch.full_like(x, -7)
    scans.Scan(n, "int32", method)(x, out)
    right = torch.cumsum(x, 0, dtype=torch.int32)
    assert torch.equal(out, right), f"{method}: wrong"


def scan_sizes() -> list[int]:
    if not has_gpu():
        return [0, 1, 2, 3, 5, 127, 128, 129, 1000, 1025, 20001]
    small = [0, 1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025]
    return small + [8191, 8193, 100_003, 1_000_001, 16_777_217, 67_108_859]


def bench_scan(log: Log) -> None:
    methods = LOOKBACKS[1:2] + PERSISTENT[:1]
    if has_gpu():
        methods = RINGS + PERSISTENT + LOOKBACKS
        with ThreadPoolExecutor(12) as pool:
            list(
                pool.map(lambda m: log.attempt(f"build {m}", scans.Scan, 1, "float32", m), methods)
            )
            pool.submit(log.attempt, "build", scans.Scan, 1, "int32", RINGS[0])
    right = []
    for method in methods:
        sizes = scan_sizes()
        if method not in (RINGS[0], PERSISTENT[0], LOOKBACKS[0]):
            sizes = sizes[-4::2]

        def check(method=method, sizes=sizes):
            check_scan(method, "float32", sizes)
            if len(sizes) > 3:
                check_scan(method, "int32", sizes)
            return method

        if log.attempt(f"check {method}", check):
            right.append(method)
    for method in right:
        if has_gpu() and method in (RINGS[0], PERSISTENT[0], LOOKBACKS[0]):
            log.attempt(f"check {method} at 2^31", check_long_scan, method)
    log.say(f"scan: {len(right)} of {len(methods)} variants are right")
    if not has_gpu():
        return
    for power in (28, 22, 25):
        log.attempt(f"time scan 2^{power}", time_scan, log, power, right)


def time_scan(log: Log, power: int, methods) -> None:
    n = 1 << power
    x = torch.rand(n, device=DEVICE)
    out = torch.empty_like(x)
    rivals = {"CUB": cub.Call("scan", "cub_scan_float", x, out)}
    rivals["torch.cumsum"] = lambda: torch.cumsum(x, 0, out=out)
    rivals["copy"] = copy_rival(n)
    for method in methods:
        scan = scans.Scan(n, "float32", method)
        rivals[str(method)] = lambda scan=scan: scan(x, out)
    times = clock(rivals, 25 if power > 25 else 50)
    ours = {label: t for label, t in times.items() if label.startswith(("Ring", "Pers", "Look"))}
    best = min(ours, key=ours.get)
    table(log, f"scan/2^{power}", times, 8 * n, "CUB", {best: f"scan/2^{power}/speedup_over_cub"})


# ---- sum --------------------------------------------------------------------------------------


def make_sum(n: int, shape):
    """The sum of n floats as `shape` says."""
    return sums.SumByRing(n, shape) if isinstance(shape, sums.Ring) else sums.Sum(n, shape)


def check_sum(shape, sizes) -> None:
    """Raises AssertionError at the first size at which a sum is wrong."""
    for n in sizes:
        x = torch.rand(n, device=DEVICE) + 0.5
        out = torch.full((1,), -7.0, device=DEVICE)
        total = make_sum(n, shape)
        for _ in range(2):
            total(x, out)
        right = x.sum(dtype=torch.float64).item()
        error = abs(out.item() - right) / max(1.0, right)
        assert error < 1e-6, f"{shape} n={n}: {out.item()} is not {right}"
    x = torch.rand(100_000, device=DEVICE)
    for value in (np.inf, -np.inf, np.nan):
        x[54_321] = value
        make_sum(x.numel(), shape)(x, out)
        np.testing.assert_equal(out.item(), value)


def sum_sizes() -> list[int]:
    if not has_gpu():
        return [0, 1, 3, 4, 1000, 1025, 50_001]
    return [
        *range(0, 1026, 41),
        1023,
        1024,
        1025,
        100_003,
        16_777_217,
        (1 << 31) - 5,
        (1 << 31) + 7,
    ]


def bench_sum(log: Log) -> None:
    shapes = SUM_RINGS + SUMS if has_gpu() else [sums.Shape(64, 2, 2)]
    if has_gpu():
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda s: log.attempt(f"build {s}", make_sum, 1, s), shapes))
    right = []
    for shape in shapes:
        sizes = sum_sizes()
        if shape not in (shapes[0], shapes[-1]):
            sizes = sizes[::7] + [16_777_217]

        def check(shape=shape, sizes=sizes):
            check_sum(shape, sizes)
            return shape

        if log.attempt(f"check {shape}", check):
            right.append(shape)
    log.say(f"sum: {len(right)} of {len(shapes)} variants are right")
    if not has_gpu():
        return
    for power in (28, 30, 25):
        log.attempt(f"time sum 2^{power}", time_sum, log, power, right)


def time_sum(log: Log, power: int, shapes) -> None:
    n = 1 << power
    x = torch.rand(n, device=DEVICE)
    out = torch.empty(1, device=DEVICE)
    rivals = {"CUB": cub.Call("sum", "cub_sum_float", x, out)}
    rivals["torch.sum"] = lambda: torch.sum(x, 0, out=out[0])
    for shape in shapes:
        total = make_sum(n, shape)
        rivals[str(shape)] = lambda total=total: total(x, out)
    times = clock(rivals, 15)
    copied = clock({"copy": copy_rival(n)}, 15)["copy"][0]
    ours = {label: t for label, t in times.items() if label.startswith(("Shape", "Ring"))}
    best = min(ours, key=ours.get)
    name = f"reduce/sum/2^{power}"
    table(log, name, times, 4 * n, "CUB", {best: f"{name}/speedup_over_cub"})
    copy_rate = 8 * n / copied
    log.say(f"{name}: copy {copy_rate / 1e6:.0f} GB/s")
    log.add(f"{name}/share_of_copy", 4 * n / ours[best][0] / copy_rate, "1", 0.0, best)


# ---- other reductions -------------------------------------------------------------------------


def bench_reductions(log: Log) -> None:
    if not has_gpu():
        return
    n = 1 << 28
    a, b = torch.randn(2, n, device=DEVICE)
    out = torch.empty(1, device=DEVICE)
    rivals = {
        "max": {"CUB": cub.Call("sum", "cub_max_float", a, out), "torch": lambda: torch.max(a)},
        "argmax": {"torch": lambda: torch.argmax(a)},
        "moments": {"torch": lambda: torch.var_mean(a, correction=0)},
        "dot": {"torch": lambda: torch.dot(a, b)},
        "sum_of_squares": {"torch": lambda: torch.linalg.vector_norm(a)},
    }
    exact = {
        "max": lambda: a.max(),
        "argmax": lambda: a.argmax(),
        "moments": lambda: torch.stack(torch.var_mean(a.double(), correction=0)[::-1]),
        "dot": lambda: torch.dot(a.double(), b.double()),
        "sum_of_squares": lambda: a.double().square().sum(),
    }
    shapes = [sums.Shape(256, 4, 8), sums.Shape(512, 4, 4), sums.Shape(512, 8, 2)]
    for operation, others in rivals.items():

        def time_one(operation=operation, others=others):
            for shape in shapes:
                reduction = sums.Reduction(operation, n, shape)
                result = reduction(a, b).double()
                right = exact[operation]().double()
                scale = (n**0.5 if operation == "dot" else right.abs()) * 1e-5 + 1e-6
                assert bool(((result - right).abs() <= scale).all()), f"{operation}: {result}"
                others[str(shape)] = lambda reduction=reduction: reduction(a, b)
            times = clock(others, 15)
            moved = 4 * n * sums.OPERATIONS[operation].arrays
            name = f"reduce/{operation}/2^28"
            best = min((label for label in times if label.startswith("Shape")), key=times.get)
            metrics = {best: f"{name}/speedup_over_torch"}
            table(log, name, times, moved, "torch", metrics)

        log.attempt(f"time {operation}", time_one)


# ---- the ladders ------------------------------------------------------------------------------


def bench_ladders(log: Log) -> None:
    if not has_gpu():
        return
    n = 1 << 28
    x = torch.rand(n, device=DEVICE)
    out = torch.zeros(1, device=DEVICE)
    log.attempt("sum ladder", time_ladder, log, "reduce", sum_ladder.RUNGS, x, out, 4 * n)
    for blocks in (4, 16, 32, 64):
        rungs = {name: sum_ladder.RUNGS[name] for name in ("wide", "last_block")}
        sum_ladder.WIDE_BLOCKS, usual = blocks, sum_ladder.WIDE_BLOCKS
        log.attempt("grids", time_ladder, log, f"reduce/blocks{blocks}", rungs, x, out, 4 * n)
        sum_ladder.WIDE_BLOCKS = usual
    log.attempt("bits of the sum", count_results, log, x, out)
    running = torch.empty_like(x)
    by_look_back = scans.Scan(n, "float32", LOOKBACKS[0])
    rungs = dict(scan_ladder.RUNGS)
    rungs["look_back"] = scan_ladder.Rung("look-back", scan_lookback.scan, by_look_back)
    log.attempt("scan ladder", time_ladder, log, "scan", rungs, x, running, 8 * n)
    for name, rung in rungs.items():
        rung.numba(_numba_array(x), _numba_array(running))
        wrong = ((running - torch.cumsum(x.double(), 0)).abs().max() / x.sum()).item()
        log.say(f"scan/{name}/numba: off by {wrong:.1e} of the largest sum")
    log.attempt("precise sums", bench_precise, log, x)


def count_results(log: Log, x, out) -> None:
    """How many different sums a rung gives in 30 runs, and how far off the last one is."""
    right = x.sum(dtype=torch.float64).item()
    for name, rung in sum_ladder.RUNGS.items():
        for language in ("numba", "cuda_c"):
            found = set()
            for _ in range(3 if name == "atomic" else 30):
                getattr(rung, language)(_numba_array(x), _numba_array(out))
                found.add(out.item())
            wrong = out.item() / right - 1
            log.say(f"{name}/{language}: {len(found)} different sums, off by {wrong:.1e}")
            log.add(f"reduce/{name}/{language}/different_sums", len(found), "1")
            log.add(f"reduce/{name}/{language}/relative_error", abs(wrong), "1")


def bench_precise(log: Log, x) -> None:
    """Errors and times of the ways to add up within a thread."""
    array = _numba_array(x)
    right = x.sum(dtype=torch.float64).item()
    for threads in (1 << 10, 1 << 14, 1 << 18):
        for way in sum_precise.WAYS:
            for language in ("numba", "cuda_c"):
                start = time.perf_counter()
                wrong = abs(sum_precise.total(way, array, threads, language) / right - 1)
                took = time.perf_counter() - start
                label = f"{way}/{threads}/{language}"
                log.say(f"precise/{label:<28} off by {wrong:.1e}, about {took * 1e3:.1f} ms")
                log.add(f"reduce/precise/{label}/relative_error", wrong, "1")


def _numba_array(tensor):
    from numba import cuda

    return cuda.as_cuda_array(tensor)


def time_ladder(log: Log, name: str, rungs: dict, x, out, moved: float) -> None:
    x, out = _numba_array(x), _numba_array(out)
    rivals = {}
    for rung, ways in rungs.items():
        for language in ("numba", "cuda_c"):
            way = getattr(ways, language)
            rivals[f"{rung}/{language}"] = lambda way=way: way(x, out)
    times = clock(rivals, 10)
    for label, (middle, spread) in times.items():
        log.say(
            f"{name}/{label:<28} {middle:8.4f} ms ±{spread:7.4f} {moved / middle / 1e6:6.0f} GB/s"
        )
        log.add(f"{name}/{label}/time", middle, "ms", spread, label)


# ---- sort -------------------------------------------------------------------------------------


def random_keys(n: int):
    """n random 32-bit keys, as uint32."""
    return torch.randint(-(1 << 31), 1 << 31, (n,), dtype=torch.int32, device=DEVICE)


def check_sort(shape, sizes) -> None:
    """Raises AssertionError at the first size at which a sort is wrong."""
    for n in sizes:
        for bits in (32, 3):
            keys = random_keys(n)
            if bits < 32:
                keys &= (1 << bits) - 1
            out = torch.full_like(keys, 77)
            sort = sorts.Sort(n, shape)
            sort(keys.view(torch.uint32), out.view(torch.uint32))
            right = torch.sort(keys.to(torch.int64) & 0xFFFFFFFF).values
            assert torch.equal(out.to(torch.int64) & 0xFFFFFFFF, right), f"{shape} n={n}: wrong"


def check_long_sort(shape) -> None:
    """Raises AssertionError if a sort of 2^30 keys, whose counts need 64 bits, is wrong."""
    keys = random_keys((1 << 30) + 5)
    out = torch.zeros_like(keys)
    sorts.Sort(keys.numel(), shape)(keys.view(torch.uint32), out.view(torch.uint32))
    turned = out ^ -(1 << 31)  # unsigned order as signed order
    assert bool((turned[1:] >= turned[:-1]).all()), f"{shape}: not in order"
    for power in (1, 2, 3):  # the same keys: their powers' sums agree modulo 2^64
        before, after = ((k.to(torch.int64) ** power).sum().item() for k in (keys, out))
        assert before == after, f"{shape}: these are other keys"


def bench_sort(log: Log) -> None:
    shapes = SORTS if has_gpu() else [sorts.Shape(256, 2, 1)]
    if has_gpu():
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda s: log.attempt(f"build {s}", sorts.Sort, 1, s), shapes))
    right = []
    for shape in shapes:
        sizes = [0, 1, 2, 3, 31, 33, 257, 1023, 1024, 1025]
        if has_gpu():
            sizes = [*sizes, 100_003, 16_777_217] if shape == shapes[0] else [1_000_003]

        def check(shape=shape, sizes=sizes):
            check_sort(shape, sizes)
            return shape

        if log.attempt(f"check {shape}", check):
            right.append(shape)
    if has_gpu() and right:
        log.attempt("check a long sort", check_long_sort, right[0])
    log.say(f"sort: {len(right)} of {len(shapes)} variants are right")
    if has_gpu():
        log.attempt("time sort 2^28", time_sort, log, 28, right)


def time_sort(log: Log, power: int, shapes) -> None:
    n = 1 << power
    keys = random_keys(n)
    out = torch.empty_like(keys)
    rivals = {"CUB": cub.Call("sort", "cub_sort_keys", keys, out)}
    for shape in shapes:
        sort = sorts.Sort(n, shape)
        rivals[str(shape)] = lambda sort=sort: sort(keys.view(torch.uint32), out.view(torch.uint32))
    times = clock(rivals, 8)
    ours = {label: t for label, t in times.items() if label.startswith("Shape")}
    best = min(ours, key=ours.get)
    name = f"sort/2^{power}"
    table(log, name, times, 36 * n, "CUB", {best: f"{name}/speedup_over_cub"})
    log.say(f"{name}: {n / ours[best][0] / 1e6:.1f} Gkeys/s, CUB {n / times['CUB'][0] / 1e6:.1f}")


# ---- the command ------------------------------------------------------------------------------

PARTS = {
    "scan": bench_scan,
    "sum": bench_sum,
    "sort": bench_sort,
    "others": bench_reductions,
    "ladders": bench_ladders,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=150, help="seconds")
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    options = parser.parse_args()
    log = Log(options.out, options.budget)
    if has_gpu():
        with ThreadPoolExecutor() as pool:
            for library in cub.LIBRARIES:
                pool.submit(log.attempt, f"build CUB's {library}", cub.build, library)
    for part in options.only:
        start = time.monotonic()
        if log.left() > 0:
            log.attempt(part, PARTS[part], log)
        log.say(f"-- {part}: {time.monotonic() - start:.0f} s, {log.left():.0f} s left")


if __name__ == "__main__":
    main()
