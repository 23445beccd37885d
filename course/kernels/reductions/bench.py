"""Checks the kernels of this folder, then times them beside CUB and PyTorch, all in one run.

    python -m course.kernels.reductions.bench --out FILE [--parts scan sum sort] [--budget 60]

Every rival gets the same input, in turn, with the L2 cache overwritten before each repeat. Each
result is written as soon as it is there, and handed to the recording command where that runs this
one. An error is written down and does not end the run. Without a GPU nothing is timed: the kernels
that run there are checked in small sizes.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from numba import cuda

from course.kernels.bench.command import command_line, run_parts, table
from course.kernels.bench.races import race, record_share, record_speedup
from course.kernels.bench.report import Report
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
from utils.engine import gpu, has_gpu

DEVICE = "cuda" if has_gpu() else "cpu"
RATIO_ERROR = 1e-5


def copy_rival(n: int):
    """A copy of n floats within the GPU's memory."""
    source = torch.rand(n, device=DEVICE)
    target = torch.empty_like(source)
    return partial(target.copy_, source)


def on_hopper() -> bool:
    """Whether there are clusters and asynchronous copies."""
    return has_gpu() and gpu().compute_capability >= (9, 0)


# ---- scan -------------------------------------------------------------------------------------


def methods() -> dict:
    """The one-pass scans that run here."""
    found = {
        "look_back": scans.Lookback(),
        "persistent": scans.Persistent(),
    }
    if scans.has_ring():
        found["ring"] = scans.Ring()
    return found


def check_scan(method, dtype: str, sizes) -> None:
    """Raises AssertionError at the first size at which a scan is wrong."""
    for n in sizes:
        x = torch.rand(n, device=DEVICE)
        if dtype == "int32":
            x = torch.randint(-1000, 1000, (n,), device=DEVICE, dtype=torch.int32)
        out = torch.full_like(x, -7)
        scan = scans.Scan(n, dtype, method)
        for _ in range(2):  # the second time with what the first has left behind
            scan(x, out)
        if dtype == "int32":
            right = torch.cumsum(x, 0, dtype=torch.int32)
            assert torch.equal(out, right), f"{method} {dtype} n={n}: wrong"
        elif n:
            right = torch.cumsum(x.double(), 0)
            errors = (out - right).abs() / right.clamp(min=1)
            error = errors.max().item()
            assert error < 2e-6, f"{method} n={n}: error {error}"


def bench_scan(report: Report) -> None:
    sizes = [0, 1, 2, 3, 5, 127, 128, 129, 1000, 1025, 20_001]
    if has_gpu():
        sizes += [*range(0, 1026, 25), 8191, 8193, 1_000_001, 67_108_859]
    for label, method in methods().items():
        name = f"check {label}"
        report.attempt(name, check_scan, method, "float32", sizes)
        report.attempt(name, check_scan, method, "int32", sizes)
        if has_gpu():
            beyond = [(1 << 31) + 9]
            report.attempt(f"{name} at 2^31", check_scan, method, "int32", beyond)
    report.say("scan: checked")
    time_powers(report, "scan", time_scan, (28, 22, 25))


def time_powers(report: Report, what: str, function, powers) -> None:
    """Calls function(report, power) for each size, if there is a GPU to time on."""
    if not has_gpu():
        return
    for power in powers:
        report.attempt(f"time {what} 2^{power}", function, report, power)


def time_scan(report: Report, power: int) -> None:
    n = 1 << power
    name = f"scan/2^{power}"
    x = torch.rand(n, device=DEVICE)
    out = torch.empty_like(x)
    rivals = {
        "CUB": cub.Call("scan", "cub_scan_float", x, out),
        "torch": partial(torch.cumsum, x, 0, out=out),
        "copy": copy_rival(n),
    }
    for label, method in methods().items():
        rivals[label] = partial(scans.Scan(n, "float32", method), x, out)
    arrays = for_numba(x, out)
    rivals["look_back_numba"] = partial(scan_lookback.scan, *arrays)
    timings = race(report, name, rivals, bytes=8 * n)
    best = "ring" if "ring" in timings else "look_back"
    record_speedup(report, f"{name}/speedup_over_cub", timings, ["CUB"], best)
    record_speedup(report, f"{name}/share_of_copy", timings, ["copy"], best)


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
        got = out.item()
        error = abs(got - right) / max(1.0, right)
        assert error < 1e-6, f"n={n}: {got} is not {right}"
    x = torch.rand(100_000, device=DEVICE)
    total = sums.Sum(x.numel())
    for value in (np.inf, -np.inf, np.nan):
        x[54_321] = value
        total(x, out)
        np.testing.assert_equal(out.item(), value)


def bench_sum(report: Report) -> None:
    sizes = [0, 1, 3, 4, 1000, 1025, 50_001]
    if has_gpu():
        beyond = [16_777_217, (1 << 31) - 5, (1 << 31) + 7]
        sizes += [*range(0, 1026, 5), *beyond]
    report.attempt("check sum", check_sum, sizes)
    report.say("sum: checked")
    time_powers(report, "sum", time_sum, (28, 30, 25))


def time_sum(report: Report, power: int) -> None:
    n = 1 << power
    name = f"reduce/sum/2^{power}"
    x = torch.rand(n, device=DEVICE)
    out = torch.empty(1, device=DEVICE)
    rivals = {
        "CUB": cub.Call("sum", "cub_sum_float", x, out),
        "torch": partial(torch.sum, x, 0, out=out[0]),
        "ours": partial(sums.Sum(n), x, out),
    }
    timings = race(report, name, rivals, bytes=4 * n)
    record_speedup(report, f"{name}/speedup_over_cub", timings, ["CUB"])
    record_share(report, f"{name}/share_of_copy", timings["ours"])


# ---- other reductions -------------------------------------------------------------------------


def bench_others(report: Report) -> None:
    if not has_gpu():
        return
    n = 1 << 28
    a, b = torch.randn(2, n, device=DEVICE)
    theirs = {
        "max": partial(torch.max, a),
        "argmax": partial(torch.argmax, a),
        "moments": partial(torch.var_mean, a, correction=0),
        "dot": partial(torch.dot, a, b),
        "sum_of_squares": partial(torch.linalg.vector_norm, a),
    }
    for operation, rival in theirs.items():
        report.attempt(f"time {operation}", time_other, report, operation, rival, a, b)


def time_other(report: Report, operation: str, rival, a, b) -> None:
    """One of `sums.OPERATIONS`, against float64 and then against PyTorch's."""
    n = a.numel()
    reduction = sums.Reduction(operation, n)
    result = reduction(a, b).double()
    right = exact(operation, a, b).double()
    scale = right.abs().clamp(min=1)
    if operation == "dot":
        scale = n**0.5
    close = (result - right).abs() <= RATIO_ERROR * scale
    assert bool(close.all()), f"{result} is not {right}"
    name = f"reduce/{operation}/2^28"
    rivals = {
        "torch": rival,
        "ours": partial(reduction, a, b),
    }
    moved = 4 * n * sums.OPERATIONS[operation].arrays
    timings = race(report, name, rivals, bytes=moved)
    record_speedup(report, f"{name}/speedup_over_torch", timings, ["torch"])


def exact(operation: str, a, b) -> torch.Tensor:
    """What an operation gives in float64."""
    if operation == "max":
        return a.max()
    if operation == "argmax":
        return a.argmax()
    if operation == "dot":
        return torch.dot(a.double(), b.double())
    if operation == "moments":
        variance, mean = torch.var_mean(a.double(), correction=0)
        return torch.stack([mean, variance])
    return a.double().square().sum()


# ---- sort -------------------------------------------------------------------------------------


def random_keys(n: int):
    """n random 32-bit keys; PyTorch's int32 holds their bits."""
    half = 1 << 31
    return torch.randint(
        -half,
        half,
        (n,),
        dtype=torch.int32,
        device=DEVICE,
    )


def unsigned(keys):
    """The same bits as unsigned numbers."""
    return keys.view(torch.uint32)


def values_of(keys):
    """The numbers that the bits stand for, int64."""
    return keys.to(torch.int64) & 0xFFFFFFFF


def check_sort(sizes) -> None:
    """Raises AssertionError at the first size at which the sort is wrong."""
    for n in sizes:
        for bits in (32, 3):
            keys = random_keys(n)
            if bits < 32:
                keys &= (1 << bits) - 1
            out = torch.full_like(keys, 77)
            sort = sorts.Sort(n)
            sort(unsigned(keys), unsigned(out))
            right = torch.sort(values_of(keys)).values
            assert torch.equal(values_of(out), right), f"n={n}: wrong"


def check_long_sort() -> None:
    """Raises AssertionError if a sort of 2^30 keys, whose counts need 64 bits, is wrong."""
    keys = random_keys((1 << 30) + 5)
    out = torch.zeros_like(keys)
    sort = sorts.Sort(keys.numel())
    sort(unsigned(keys), unsigned(out))
    turned = out ^ -(1 << 31)  # unsigned order as signed order
    in_order = turned[1:] >= turned[:-1]
    assert bool(in_order.all()), "not in order"
    for power in (1, 2, 3):  # the same keys: their powers' sums agree modulo 2^64
        before = sum_of_powers(keys, power)
        after = sum_of_powers(out, power)
        assert before == after, "these are other keys"


def sum_of_powers(keys, power: int) -> int:
    """Modulo 2^64."""
    return (keys.to(torch.int64) ** power).sum().item()


def bench_sort(report: Report) -> None:
    sizes = [0, 1, 2, 3, 31, 33, 257, 1023, 1024, 1025, 20_001]
    if has_gpu():
        sizes += [1_000_003, 16_777_217]
        report.attempt("check a long sort", check_long_sort)
    report.attempt("check sort", check_sort, sizes)
    report.say("sort: checked")
    time_powers(report, "sort", time_sort, (28,))


def time_sort(report: Report, power: int) -> None:
    n = 1 << power
    name = f"sort/2^{power}"
    keys = random_keys(n)
    out = torch.empty_like(keys)
    sort = sorts.Sort(n)
    rivals = {
        "CUB": cub.Call("sort", "cub_sort_keys", keys, out),
        "ours": partial(sort, unsigned(keys), unsigned(out)),
    }
    timings = race(report, name, rivals, bytes=36 * n)  # 4 passes read and write, one more counts
    record_speedup(report, f"{name}/speedup_over_cub", timings, ["CUB"])
    for label, timing in timings.items():
        path = f"{name}/{label.lower()}"
        rate = n / timing.median * 1e3
        report.record(f"{path}/rate", rate, "key/s", rate * timing.spread / timing.median)
        report.say(f"{path}: {rate / 1e9:.1f} Gkeys/s")


# ---- the ladders ------------------------------------------------------------------------------


def bench_ladders(report: Report) -> None:
    if not has_gpu():
        return
    n = 1 << 28
    x = torch.rand(n, device=DEVICE)
    out = torch.zeros(1, device=DEVICE)
    running = torch.empty_like(x)
    sum_rungs = dict(sum_ladder.RUNGS)
    atomic = {"atomic": sum_rungs.pop("atomic")}

    def race_rungs(what, name, rungs, arrays, moved):
        report.attempt(what, time_ladder, report, name, rungs, arrays, moved)

    report.attempt("clusters", time_clusters, report, x, out)
    race_rungs("sums", "reduce/ladder", sum_rungs, (x, out), 4 * n)
    race_rungs("scans", "scan/ladder", scan_ladder.RUNGS, (x, running), 8 * n)
    report.attempt("bits of the sum", count_results, report, x, out)
    report.attempt("precise sums", bench_precise, report, x)
    race_rungs("atomics", "reduce/ladder", atomic, (x, out), 4 * n)


def for_numba(*tensors) -> list:
    """The same arrays as Numba takes them."""
    return [cuda.as_cuda_array(tensor) for tensor in tensors]


def time_clusters(report: Report, x, out) -> None:
    """Checks and times the sum by clusters, where there are any."""
    if not on_hopper():
        return
    for n in (0, 1, 3, 1025, 100_003, x.numel()):
        some = x[:n]
        sum_ladder.by_clusters(*for_numba(some, out))
        got = out.item()
        right = some.sum(dtype=torch.float64).item()
        tolerance = 1e-5 * max(1.0, right)
        assert abs(got - right) <= tolerance, f"{n}: {got}, not {right}"
    rivals = {"cuda_c": partial(sum_ladder.by_clusters, *for_numba(x, out))}
    race(report, "reduce/ladder/cluster", rivals, bytes=4 * x.numel())


def time_ladder(
    report: Report,
    name: str,
    rungs: dict,
    arrays,
    moved: float,
) -> None:
    arrays = for_numba(*arrays)
    for rung, ways in rungs.items():
        rivals = {
            "numba": partial(ways.numba, *arrays),
            "cuda_c": partial(ways.cuda_c, *arrays),
        }
        race(report, f"{name}/{rung}", rivals, bytes=moved)


def count_results(report: Report, x, out) -> None:
    """How many different sums a rung gives in 30 runs, and how far off the last one is."""
    right = x.sum(dtype=torch.float64).item()
    arrays = for_numba(x, out)
    for name, rung in sum_ladder.RUNGS.items():
        runs = 2 if name == "atomic" else 30
        for language in ("numba", "cuda_c"):
            way = getattr(rung, language)
            different = set()
            for _ in range(runs):
                way(*arrays)
                different.add(out.item())
            wrong = abs(out.item() / right - 1)
            report.say(f"{name}/{language}: {len(different)} different sums, off by {wrong:.1e}")
            path = f"reduce/ladder/{name}/{language}"
            report.record(f"{path}/different_sums", len(different), "1")
            report.record(f"{path}/relative_error", wrong, "1")


def bench_precise(report: Report, x) -> None:
    """Errors of the ways to add up within a thread."""
    array = cuda.as_cuda_array(x)
    right = x.sum(dtype=torch.float64).item()
    for threads in (1 << 10, 1 << 14, 1 << 18):
        for way in sum_precise.WAYS:
            total = sum_precise.total(way, array, threads, "cuda_c")
            wrong = abs(total / right - 1)
            report.say(f"{way:<12} {threads:7,} threads: off by {wrong:.1e}")
            report.record(f"reduce/precise/{way}/{threads}/relative_error", wrong, "1")


# ---- the command ------------------------------------------------------------------------------

PARTS = {
    "scan": bench_scan,
    "sum": bench_sum,
    "sort": bench_sort,
    "others": bench_others,
    "ladders": bench_ladders,
}


def main() -> None:
    options = command_line(__doc__, 150, PARTS).parse_args()
    report = Report(options.out, options.budget)
    if has_gpu():
        with ThreadPoolExecutor() as pool:
            for library in cub.LIBRARIES:
                pool.submit(report.attempt, f"build CUB's {library}", cub.build, library)
    run_parts(report, {name: PARTS[name] for name in options.parts})
    print(table(report))


if __name__ == "__main__":
    main()
