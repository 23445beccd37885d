"""Checks the kernels of this folder, then times them beside CUB and PyTorch, all in one run.

    python -m course.kernels.reductions.bench --out FILE [--only scan sum sort] [--budget 60]

Every rival gets the same input, in turn, with the L2 cache overwritten before each repeat. Each
result is written as soon as it is there, and handed to the recording command where that runs this
one. An error is written down and does not end the run. Without a GPU nothing is timed: the kernels
that run there are checked in small sizes.
"""

import argparse
import json
import os
import re
import statistics
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numba import cuda

from course.kernels.reductions import (
    cub,
    scan_ladder,
    scan_lookback,
    scans,
    sorts,
    sum_ladder,
    sum_precise,
    sums,
)
from utils import results
from utils.engine import has_gpu

FLUSH_BYTES = 1 << 30  # overwritten twice before each repeat: clears the L2 and hides the launch
DEVICE = "cuda" if has_gpu() else "cpu"


class Log:
    """The results so far, in a file and on the screen; knows how much time is left."""

    def __init__(self, path: Path, budget: float):
        self._path, self._end = path, time.monotonic() + budget
        self.entries, self.errors, self.lines = [], [], []

    def left(self) -> float:
        return self._end - time.monotonic()

    def add(self, name: str, value: float, unit: str, spread: float = 0.0) -> None:
        entry = {"name": name, "value": float(value), "unit": unit, "spread": float(spread)}
        self.entries.append(entry)
        if os.environ.get(results.RECORD):
            results.append(entry)
        self._write()

    def say(self, line: str) -> None:
        print(line, flush=True)
        self.lines.append(line)
        self._write()

    def attempt(self, what: str, function, *arguments):
        """function's result, or None after an error, which is written down."""
        try:
            return function(*arguments)
        except Exception:
            text = traceback.format_exc()
            self.errors.append({"what": what, "error": text[-3000:]})
            self.say(f"FAILED {what}: {text.strip().splitlines()[-1][:300]}")
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
    times = {}
    for label, events in pairs.items():
        samples = [begin.elapsed_time(end) for begin, end in events]
        low, middle, high = statistics.quantiles(samples, n=4)
        times[label] = middle, (high - low) / 2
    return times


def race(log: Log, name: str, rivals: dict, moved: float, repeats: int) -> dict:
    """Times the rivals, records and prints each. moved: bytes that the work must read and write."""
    times = clock(rivals, repeats)
    best = min(middle for middle, _ in times.values())
    for label, (middle, spread) in times.items():
        path = f"{name}/{re.sub('[^a-z0-9]+', '_', label.lower())}"
        rate = moved / middle * 1e3
        log.add(f"{path}/time", middle, "ms", spread)
        log.add(f"{path}/bandwidth", rate, "B/s", rate * spread / middle)
        share = f"{middle / best:6.3f}×"
        log.say(f"{path:<36} {middle:9.4f} ms ±{spread:7.4f} {rate / 1e9:7.0f} GB/s {share}")
    return times


def speedup(log: Log, name: str, times: dict, label: str, rival: str) -> None:
    """Records how many times as fast as its rival ours is."""
    (ours, our_spread), (theirs, their_spread) = times[label], times[rival]
    ratio = theirs / ours
    log.add(name, ratio, "1", ratio * (our_spread / ours + their_spread / theirs))
    log.say(f"{name}: {ratio:.3f}")


def copy_rival(n: int):
    """A copy of n floats within the GPU's memory."""
    source = torch.rand(n, device=DEVICE)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


# ---- scan -------------------------------------------------------------------------------------


def methods() -> dict:
    """The one-pass scans that run here."""
    found = {"look_back": scans.Lookback(), "persistent": scans.Persistent()}
    if has_gpu() and torch.cuda.get_device_capability() >= (9, 0):
        found["ring"] = scans.Ring()
    return found


def check_scan(method, dtype: str, sizes) -> None:
    """Raises AssertionError at the first size at which a scan is wrong."""
    for n in sizes:
        if dtype == "int32":
            x = torch.randint(-1000, 1000, (n,), device=DEVICE, dtype=torch.int32)
        else:
            x = torch.rand(n, device=DEVICE)
        out = torch.full_like(x, -7)
        scan = scans.Scan(n, dtype, method)
        for _ in range(2):  # the second time with what the first has left behind
            scan(x, out)
        if dtype == "int32":
            right = torch.cumsum(x, 0, dtype=torch.int32)
            assert torch.equal(out, right), f"{method} {dtype} n={n}: wrong"
        elif n:
            right = torch.cumsum(x.double(), 0)
            error = ((out - right).abs() / right.clamp(min=1)).max().item()
            assert error < 2e-6, f"{method} n={n}: error {error}"


def bench_scan(log: Log) -> None:
    sizes = [0, 1, 2, 3, 5, 127, 128, 129, 1000, 1025, 20_001]
    if has_gpu():
        sizes = [*range(0, 1026, 25), *sizes, 8191, 8193, 1_000_001, 67_108_859]
    for label, method in methods().items():
        log.attempt(f"check {label}", check_scan, method, "float32", sizes)
        log.attempt(f"check {label}", check_scan, method, "int32", sizes)
        if has_gpu():
            log.attempt(f"check {label} at 2^31", check_scan, method, "int32", [(1 << 31) + 9])
    log.say("scan: checked")
    for power in (28, 22, 25) if has_gpu() else ():
        log.attempt(f"time scan 2^{power}", time_scan, log, power)


def time_scan(log: Log, power: int) -> None:
    n, name = 1 << power, f"scan/2^{power}"
    x = torch.rand(n, device=DEVICE)
    out = torch.empty_like(x)
    rivals = {"CUB": cub.Call("scan", "cub_scan_float", x, out)}
    rivals["torch"] = lambda: torch.cumsum(x, 0, out=out)
    rivals["copy"] = copy_rival(n)
    for label, method in methods().items():
        scan = scans.Scan(n, "float32", method)
        rivals[label] = lambda scan=scan: scan(x, out)
    rivals["look_back_numba"] = lambda: scan_lookback.scan(*map(cuda.as_cuda_array, (x, out)))
    times = race(log, name, rivals, 8 * n, 50)
    best = "ring" if "ring" in times else "look_back"
    speedup(log, f"{name}/speedup_over_cub", times, best, "CUB")
    speedup(log, f"{name}/share_of_copy", times, best, "copy")


# ---- sum --------------------------------------------------------------------------------------


def check_sum(sizes) -> None:
    """Raises AssertionError at the first size at which the sum is wrong."""
    out = torch.full((1,), -7.0, device=DEVICE)
    for n in sizes:
        x = torch.rand(n, device=DEVICE) + 0.5
        total = sums.Sum(n)
        for _ in range(2):
            total(x, out)
        right = x.sum(dtype=torch.float64).item()
        error = abs(out.item() - right) / max(1.0, right)
        assert error < 1e-6, f"n={n}: {out.item()} is not {right}"
    x = torch.rand(100_000, device=DEVICE)
    for value in (np.inf, -np.inf, np.nan):
        x[54_321] = value
        sums.Sum(x.numel())(x, out)
        np.testing.assert_equal(out.item(), value)


def bench_sum(log: Log) -> None:
    sizes = [0, 1, 3, 4, 1000, 1025, 50_001]
    if has_gpu():
        sizes = [*range(0, 1026, 5), *sizes, 16_777_217, (1 << 31) - 5, (1 << 31) + 7]
    log.attempt("check sum", check_sum, sizes)
    log.say("sum: checked")
    for power in (28, 30, 25) if has_gpu() else ():
        log.attempt(f"time sum 2^{power}", time_sum, log, power)


def time_sum(log: Log, power: int) -> None:
    n, name = 1 << power, f"reduce/sum/2^{power}"
    x = torch.rand(n, device=DEVICE)
    out = torch.empty(1, device=DEVICE)
    total = sums.Sum(n)
    rivals = {
        "CUB": cub.Call("sum", "cub_sum_float", x, out),
        "torch": lambda: torch.sum(x, 0, out=out[0]),
        "ours": lambda: total(x, out),
    }
    times = race(log, name, rivals, 4 * n, 50)
    speedup(log, f"{name}/speedup_over_cub", times, "ours", "CUB")
    copied, spread = clock({"copy": copy_rival(n)}, 20)["copy"]
    both = {"ours": times["ours"], "copy": (copied / 2, spread / 2)}  # a copy moves 8 n bytes
    speedup(log, f"{name}/share_of_copy", both, "ours", "copy")


# ---- other reductions -------------------------------------------------------------------------


def bench_others(log: Log) -> None:
    if not has_gpu():
        return
    n = 1 << 28
    a, b = torch.randn(2, n, device=DEVICE)
    theirs = {
        "max": lambda: torch.max(a),
        "argmax": lambda: torch.argmax(a),
        "moments": lambda: torch.var_mean(a, correction=0),
        "dot": lambda: torch.dot(a, b),
        "sum_of_squares": lambda: torch.linalg.vector_norm(a),
    }
    exact = {
        "max": lambda: a.max(),
        "argmax": lambda: a.argmax(),
        "moments": lambda: torch.stack(torch.var_mean(a.double(), correction=0)[::-1]),
        "dot": lambda: torch.dot(a.double(), b.double()),
        "sum_of_squares": lambda: a.double().square().sum(),
    }
    for operation in theirs:

        def time_one(operation=operation):
            reduction = sums.Reduction(operation, n)
            result, right = reduction(a, b).double(), exact[operation]().double()
            scale = right.abs().clamp(min=1) if operation != "dot" else n**0.5
            assert bool(((result - right).abs() <= 1e-5 * scale).all()), f"{result} is not {right}"
            rivals = {"torch": theirs[operation], "ours": lambda: reduction(a, b)}
            name = f"reduce/{operation}/2^28"
            moved = 4 * n * sums.OPERATIONS[operation].arrays
            times = race(log, name, rivals, moved, 20)
            speedup(log, f"{name}/speedup_over_torch", times, "ours", "torch")

        log.attempt(f"time {operation}", time_one)


# ---- sort -------------------------------------------------------------------------------------


def random_keys(n: int):
    """n random 32-bit keys; PyTorch's int32 holds their bits."""
    return torch.randint(-(1 << 31), 1 << 31, (n,), dtype=torch.int32, device=DEVICE)


def check_sort(sizes) -> None:
    """Raises AssertionError at the first size at which the sort is wrong."""
    for n in sizes:
        for bits in (32, 3):
            keys = random_keys(n)
            if bits < 32:
                keys &= (1 << bits) - 1
            out = torch.full_like(keys, 77)
            sorts.Sort(n)(keys.view(torch.uint32), out.view(torch.uint32))
            right = torch.sort(keys.to(torch.int64) & 0xFFFFFFFF).values
            assert torch.equal(out.to(torch.int64) & 0xFFFFFFFF, right), f"n={n}: wrong"


def check_long_sort() -> None:
    """Raises AssertionError if a sort of 2^30 keys, whose counts need 64 bits, is wrong."""
    keys = random_keys((1 << 30) + 5)
    out = torch.zeros_like(keys)
    sorts.Sort(keys.numel())(keys.view(torch.uint32), out.view(torch.uint32))
    turned = out ^ -(1 << 31)  # unsigned order as signed order
    assert bool((turned[1:] >= turned[:-1]).all()), "not in order"
    for power in (1, 2, 3):  # the same keys: their powers' sums agree modulo 2^64
        before, after = ((k.to(torch.int64) ** power).sum().item() for k in (keys, out))
        assert before == after, "these are other keys"


def bench_sort(log: Log) -> None:
    sizes = [0, 1, 2, 3, 31, 33, 257, 1023, 1024, 1025, 20_001]
    if has_gpu():
        sizes += [1_000_003, 16_777_217]
        log.attempt("check a long sort", check_long_sort)
    log.attempt("check sort", check_sort, sizes)
    log.say("sort: checked")
    if has_gpu():
        log.attempt("time sort 2^28", time_sort, log, 28)


def time_sort(log: Log, power: int) -> None:
    n, name = 1 << power, f"sort/2^{power}"
    keys = random_keys(n)
    out = torch.empty_like(keys)
    sort, arguments = sorts.Sort(n), (keys.view(torch.uint32), out.view(torch.uint32))
    rivals = {"CUB": cub.Call("sort", "cub_sort_keys", keys, out), "ours": lambda: sort(*arguments)}
    times = race(log, name, rivals, 36 * n, 15)  # 4 passes read and write, one more reads to count
    speedup(log, f"{name}/speedup_over_cub", times, "ours", "CUB")
    for label, (middle, spread) in times.items():
        rate = n / middle * 1e3
        log.add(f"{name}/{label.lower()}/rate", rate, "key/s", rate * spread / middle)
        log.say(f"{name}/{label.lower()}: {rate / 1e9:.1f} Gkeys/s")


# ---- the ladders ------------------------------------------------------------------------------


def bench_ladders(log: Log) -> None:
    if not has_gpu():
        return
    n = 1 << 28
    x = torch.rand(n, device=DEVICE)
    out = torch.zeros(1, device=DEVICE)
    running = torch.empty_like(x)
    rungs = dict(sum_ladder.RUNGS)
    atomic = {"atomic": rungs.pop("atomic")}
    log.attempt("clusters", time_clusters, log, x, out)
    log.attempt("sums", time_ladder, log, "reduce/ladder", rungs, (x, out), 4 * n, 15)
    log.attempt(
        "scans", time_ladder, log, "scan/ladder", scan_ladder.RUNGS, (x, running), 8 * n, 10
    )
    log.attempt("bits of the sum", count_results, log, x, out)
    log.attempt("precise sums", bench_precise, log, x)
    log.attempt("atomics", time_ladder, log, "reduce/ladder", atomic, (x, out), 4 * n, 2)


def time_clusters(log: Log, x, out) -> None:
    """Checks and times the sum by clusters, where there are any."""
    if torch.cuda.get_device_capability() < (9, 0):
        return
    for n in (0, 1, 3, 1025, 100_003, x.numel()):
        sum_ladder.by_clusters(*map(cuda.as_cuda_array, (x[:n], out)))
        right = x[:n].sum(dtype=torch.float64).item()
        assert abs(out.item() - right) <= 1e-5 * max(1.0, right), f"{n}: {out.item()}, not {right}"
    array, result = map(cuda.as_cuda_array, (x, out))
    rivals = {"cuda_c": lambda: sum_ladder.by_clusters(array, result)}
    race(log, "reduce/ladder/cluster", rivals, 4 * x.numel(), 15)


def time_ladder(log: Log, name: str, rungs: dict, arrays, moved: float, repeats: int) -> None:
    x, out = map(cuda.as_cuda_array, arrays)
    rivals = {}
    for rung, ways in rungs.items():
        rivals[f"{rung}/numba"] = lambda way=ways.numba: way(x, out)
        rivals[f"{rung}/cuda_c"] = lambda way=ways.cuda_c: way(x, out)
    for rung in rungs:
        pair = {label: rivals[label] for label in rivals if label.startswith(f"{rung}/")}
        named = {label.partition("/")[2]: work for label, work in pair.items()}
        race(log, f"{name}/{rung}", named, moved, repeats)


def count_results(log: Log, x, out) -> None:
    """How many different sums a rung gives in 30 runs, and how far off the last one is."""
    right = x.sum(dtype=torch.float64).item()
    for name, rung in sum_ladder.RUNGS.items():
        for language in ("numba", "cuda_c"):
            different = set()
            for _ in range(2 if name == "atomic" else 30):
                getattr(rung, language)(*map(cuda.as_cuda_array, (x, out)))
                different.add(out.item())
            wrong = abs(out.item() / right - 1)
            log.say(f"{name}/{language}: {len(different)} different sums, off by {wrong:.1e}")
            log.add(f"reduce/ladder/{name}/{language}/different_sums", len(different), "1")
            log.add(f"reduce/ladder/{name}/{language}/relative_error", wrong, "1")


def bench_precise(log: Log, x) -> None:
    """Errors of the ways to add up within a thread."""
    array = cuda.as_cuda_array(x)
    right = x.sum(dtype=torch.float64).item()
    for threads in (1 << 10, 1 << 14, 1 << 18):
        for way in sum_precise.WAYS:
            wrong = abs(sum_precise.total(way, array, threads, "cuda_c") / right - 1)
            log.say(f"{way:<12} {threads:7,} threads: off by {wrong:.1e}")
            log.add(f"reduce/precise/{way}/{threads}/relative_error", wrong, "1")


# ---- the command ------------------------------------------------------------------------------

PARTS = {
    "scan": bench_scan,
    "sum": bench_sum,
    "sort": bench_sort,
    "others": bench_others,
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
