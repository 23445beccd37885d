"""Check and time the row kernels against their rivals on this GPU.

    python -m course.kernels.row_kernels.bench --out results.json --budget 150

In turn: every kernel is checked in small sizes of all kinds; for each operation and length of row
the shapes (`shapes.Shape`) are tried, and the fastest is raced against torch and torch.compile,
whose results are checked, too. Each result is written as soon as it is there. One failure ends
nothing. Without a GPU it only checks.
"""

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

import torch

from course.kernels.row_kernels import classic, fast, numba_softmax
from course.kernels.row_kernels.operations import OPERATIONS, SOFTMAX, Operation, tensors
from course.kernels.row_kernels.precompile import Compiler
from course.kernels.row_kernels.report import Report
from course.kernels.row_kernels.rightness import (
    DEVICE,
    DTYPES,
    check_small,
    shapes_to_check,
    small_sizes,
    verify,
)
from course.kernels.row_kernels.shapes import CLUSTERS, Shape, best_shape, shape_for
from course.kernels.row_kernels.variants import VARIANTS, folder
from utils import compare, has_gpu, results, timing

COLUMNS = (1024, 4096, 16384, 65536, 131072)
ELEMENTS = 1 << 28  # of the matrix that is timed
#: (values a thread keeps, threads a block, blocks an SM) to try with a ring
RING_DEALS = (
    (32, 512, 1),
    (64, 256, 1),
    (16, 1024, 1),
    (32, 256, 1),
    (32, 256, 2),
    (16, 512, 2),
)
#: (values a thread keeps, threads a block) to try without one
DIRECT_DEALS = (
    (4, 256),
    (4, 512),
    (8, 128),
    (8, 256),
    (8, 512),
    (8, 1024),
    (16, 64),
    (16, 128),
    (16, 256),
    (16, 512),
    (16, 1024),
    (32, 128),
    (32, 256),
    (32, 512),
)
MOST_THREADS = 2048  # of an SM
MOST_BLOCKS = 16  # of an SM; more would help nobody
REGISTERS = 1 << 16  # of an SM
OVERHEAD = 24  # registers a thread needs besides its values
SWEEP_SECONDS, RACE_SECONDS = 0.2, 0.5  # of GPU time, for one comparison
SHORT = 2048  # columns
LADDER_COLUMNS = (4096, 16384)
LADDER_THREADS = 512
LOADS = [name for name in VARIANTS if name.startswith("loads")]
SECOND_READS = [name for name in VARIANTS if name.startswith("reads")]
#: (values a thread reads, threads a block) to try where rows are read twice
TWICE_DEALS = tuple((each, threads) for each in (4, 8, 16, 32) for threads in (256, 512, 1024))
TWICE_ROW = 64 << 10  # bytes of the longest row that is worth it: two of them fit an SM's cache
SLOW_TO_COMPILE = ("layernorm_backward", "rmsnorm_backward")  # for torch.compile


def candidates(operation: Operation, columns: int, item: int) -> list[Shape]:
    """Shapes that fit an SM's registers and shared memory, each once."""
    how = {"inputs": operation.inputs, "item_bytes": item}
    shapes = []
    for kept, threads, blocks in RING_DEALS:
        if blocks_of(operation, kept, threads) < blocks:
            continue
        shapes.append(shape_for(columns, **how, kept=kept, threads=threads, blocks=blocks))
    for kept, threads in DIRECT_DEALS:
        if columns <= SHORT and kept * threads > 4 * columns:
            continue  # more rows a block bring nothing
        few = blocks_of(operation, kept, threads)
        many = blocks_of(SOFTMAX, kept, threads) if operation.inputs == 1 else few
        for blocks in (few, many):  # many: the compiler must save registers
            if blocks:
                one = {**how, "kept": kept, "threads": threads, "blocks": blocks, "ring": False}
                shapes.append(shape_for(columns, **one))
    if operation.twice and columns * item <= TWICE_ROW:
        for each, threads in TWICE_DEALS:
            blocks = MOST_THREADS // threads
            one = {"item_bytes": item, "kept": each, "threads": threads, "blocks": blocks}
            shapes.append(shape_for(columns, **one, ring=False, twice=True))
    return list(dict.fromkeys(shape for shape in shapes if shape and shape.cluster <= 16))


def blocks_of(operation: Operation, kept: int, threads: int) -> int:
    """Blocks for which an SM has registers and threads."""
    registers = -(-(operation.registers * kept + OVERHEAD) // 8) * 8
    return min(REGISTERS // (registers * threads), MOST_THREADS // threads, MOST_BLOCKS)


def sweep(report: Report, compiler: Compiler, operation: Operation, t: dict, label: str) -> Shape:
    """Time all shapes, then the fastest ones' other ways to load; returns the fastest."""
    x = t["x"]
    rates = time_shapes(report, compiler, operation, t, candidates(operation, *sizes(x)))
    fastest = sorted(rates, key=rates.get, reverse=True)
    direct = [shape for shape in fastest if not shape.stages and not shape.twice][:3]
    twice = [shape for shape in fastest if shape.twice][:2]
    if x.dtype == torch.float32:
        others = [replace(shape, folder=str(folder(name))) for shape in direct for name in LOADS]
        others += [
            replace(shape, folder=str(folder(name))) for shape in twice for name in SECOND_READS
        ]
        rates |= time_shapes(report, compiler, operation, t, others)
    fastest = sorted(rates, key=rates.get, reverse=True)
    report.put("sweeps", label, {str(shape): rates[shape] for shape in fastest})
    return next(shape for shape in fastest if not shape.folder)


def sizes(x: torch.Tensor) -> tuple[int, int]:
    """Columns and bytes of an element."""
    return x.shape[1], x.element_size()


def time_shapes(report: Report, compiler: Compiler, operation, t: dict, shapes) -> dict[Shape, int]:
    """GB/s of each shape whose results are right."""
    x = t["x"]
    compiler.wait(operation, shapes, x.dtype)
    right = {}
    for shape in shapes:
        try:
            verify(operation, t, operation.ours(t, shape), rows=8, sums=False)
        except Exception as error:
            report.failed(f"{operation.name}/{x.shape[1]} {shape}", error)
        else:
            right[str(shape)] = shape
    if not right:
        return {}
    runs = {name: lambda shape=shape: operation.ours(t, shape) for name, shape in right.items()}
    result = compare(runs, bytes=operation.bytes(x))
    return {
        right[name]: round(measured.bytes_per_second / 1e9)
        for name, measured in result.timings.items()
    }


def climb(report: Report, compiler: Compiler, t: dict) -> None:
    """The rungs of the softmax ladder, CUDA C and Numba side by side."""
    from numba import cuda

    x = t["x"]
    rows, columns = x.shape
    out = torch.empty_like(x)
    numba_out, numba_x = cuda.as_cuda_array(out), cuda.as_cuda_array(x)
    threads = LADDER_THREADS
    kept = columns // threads
    rungs = classic.module("softmax.cu")
    one_read = numba_softmax.one_read(columns, threads)
    grid = rows, threads
    runs = {
        "three reads, CUDA C": lambda: rungs["softmax_three_reads<float>"][grid](out, x, columns),
        "three reads, Numba": lambda: numba_softmax.three_reads[grid](numba_out, numba_x),
        "online, CUDA C": lambda: rungs["softmax_online<float>"][grid](out, x, columns),
        "online, Numba": lambda: numba_softmax.online[grid](numba_out, numba_x),
        "one read, CUDA C": lambda: rungs[f"softmax_one_read<float, {kept}>"][grid](
            out, x, columns
        ),
        "one read, Numba": lambda: one_read[grid](numba_out, numba_x),
        "fast": lambda: SOFTMAX.ours(t, None),
    }
    for run in runs.values():
        out.fill_(float("nan"))
        result = run() or (out,)
        verify(SOFTMAX, t, result)
    result = compare(runs, bytes=SOFTMAX.bytes(x), name=f"softmax_ladder/{columns}")
    rates = {name: round(timing.bytes_per_second / 1e9) for name, timing in result.timings.items()}
    report.put("ladder", f"softmax/{columns}", rates)
    (registers,) = one_read.get_regs_per_thread().values()
    (local,) = one_read.get_local_mem_per_thread().values()
    (ptx,) = one_read.inspect_asm().values()
    listing = {"registers": registers, "local bytes": local, "ptx": ptx}
    report.put("ladder", f"softmax/{columns}/one read, Numba", listing)


def try_variants(report: Report, compiler: Compiler, t: dict) -> None:
    """Softmax with one thing changed (`variants`)."""
    x = t["x"]
    out = torch.empty_like(x)
    shape = best_shape(SOFTMAX.deals, *sizes(x))
    changed = {
        name: replace(shape, folder=str(folder(name)))
        for name, variant in VARIANTS.items()
        if variant.file == "fast.cuh" and variant.ring in (None, shape.stages > 0)
    }
    compiler.wait(SOFTMAX, list(changed.values()), x.dtype)
    runs = {"as it is": lambda: SOFTMAX.ours(t, shape), "copy": lambda: out.copy_(x)}
    for name, other in changed.items():
        runs[name] = lambda other=other: SOFTMAX.ours(t, other)
    result = compare(runs, bytes=SOFTMAX.bytes(x), name=f"softmax_variants/{x.shape[1]}")
    rates = {name: round(timing.bytes_per_second / 1e9) for name, timing in result.timings.items()}
    report.put("variants", f"softmax/{x.shape[1]}", rates)


def race(report: Report, operation: Operation, t: dict, label: str, shape: Shape | None) -> None:
    """Our fastest or default shape against torch and torch.compile; recorded if asked for."""
    runs = {"ours": lambda: operation.ours(t, shape)}
    verify(operation, t, operation.ours(t, shape))
    rivals = {"torch": operation.eager, "compile": compiled(operation.compiled)}
    for name, rival in rivals.items():
        start = time.monotonic()
        try:
            verify(operation, t, rival(t), rows=8)
        except Exception as error:
            report.failed(f"{label} {name}", error)
        else:
            runs[name] = lambda rival=rival: rival(t)
        report.put("clock", f"{label} {name}", round(time.monotonic() - start, 1))
    result = compare(runs, bytes=operation.bytes(t["x"]), name=label)
    entry = {
        name: {
            "ms": measured.median,
            "spread_ms": measured.spread,
            "GB/s": measured.bytes_per_second / 1e9,
            "share_of_copy": measured.share_of_copy,
        }
        for name, measured in result.timings.items()
    }
    default = best_shape(operation.deals, *sizes(t["x"]), operation.inputs)
    entry["shape"] = str(shape or default)
    entry["default"] = str(default)
    others = [measured for name, measured in result.timings.items() if name != "ours"]
    if others:
        best = min(others, key=lambda measured: measured.median)
        speedup = best.median / result.timings["ours"].median
        entry["speedup_over_best"] = speedup
        ours = result.timings["ours"]
        spread = speedup * (best.spread / best.median + ours.spread / ours.median)
        if os.environ.get(results.RECORD):
            name = f"{label}/speedup_over_best"
            results.append({"name": name, "value": speedup, "unit": "1", "spread": spread})
    report.put("races", label, entry)


def compiled(function):
    """torch.compile's best mode without CUDA graphs, for just these sizes."""
    torch._dynamo.reset()
    return torch.compile(
        lambda t: function(t), mode="max-autotune-no-cudagraphs", dynamic=False, fullgraph=True
    )


def ladders(report: Report, compiler: Compiler) -> None:
    """Softmax rung by rung, and with single choices undone."""
    for columns in LADDER_COLUMNS:
        t = tensors(ELEMENTS // columns, columns, torch.float32, DEVICE)
        for part in (climb, try_variants):
            try:
                part(report, compiler, t)
            except Exception as error:
                report.failed(f"{part.__name__} {columns}", error)


def timed(report: Report, compiler: Compiler, options) -> None:
    """Try all shapes, then race the fastest of each length, while the budget lasts."""
    report.put("clock", "copy GB/s", round(timing.copy_bandwidth() / 1e9))
    report.put("clock", "clusters at a time", clusters_at_a_time())
    best = {}
    tuned = [("sweep", *target) for target in targets_of(options.tune)]
    first = [("race", *target) for target in targets_of(options.tune)]
    others = [(columns, name) for columns in options.columns for name in options.operations]
    others = [("race", *target) for target in others if ("race", *target) not in first]
    others.sort(key=lambda target: target[2] in SLOW_TO_COMPILE)
    last = None
    for stage, columns, name in tuned + first + others:
        if report.left() < 6:
            report.put("clock", "not done", f"{stage} {name}/{columns} and all after it")
            return
        if columns != last:
            t = None
            t = tensors(ELEMENTS // columns, columns, DTYPES[options.dtype], DEVICE)
            last = columns
        try:
            step(report, compiler, stage, name, t, best)
        except Exception as error:
            report.failed(f"{stage} {name}/{columns}", error)


def targets_of(names: list[str]) -> list[tuple[int, str]]:
    """Columns and operation of names such as "softmax/4096"."""
    pairs = [name.split("/") for name in names]
    return [(int(columns), operation) for operation, columns in pairs]


def step(report: Report, compiler: Compiler, stage: str, name: str, t: dict, best: dict) -> None:
    """Sweep or race one operation in one length."""
    x = t["x"]
    columns = x.shape[1]
    label = f"{name}/{columns}" + ("" if x.dtype == torch.float32 else "/bfloat16")
    timing.BUDGET = SWEEP_SECONDS if stage == "sweep" else RACE_SECONDS
    if stage == "race":
        race(report, OPERATIONS[name], t, label, best.get(label))
    else:
        best[label] = sweep(report, compiler, OPERATIONS[name], t, label)


def clusters_at_a_time() -> dict[str, int]:
    """How many clusters of each size this GPU runs at a time, a block an SM."""
    counts = {}
    for cluster in CLUSTERS:
        shape = shape_for(8192 * cluster, cluster=cluster, kept=16)
        try:
            kernel = fast.load("fast_softmax.cu", "softmax_fast", shape, torch.float32)
            counts[cluster] = kernel.clusters
        except Exception as error:
            counts[cluster] = str(error)
    return counts


def ask_for_all(compiler: Compiler, options) -> None:
    """Begin to compile everything, what is needed first first."""
    if not options.no_check:
        for rows, columns, dtype in small_sizes():
            for operation in OPERATIONS.values():
                shapes = shapes_to_check(operation, rows, columns, dtype)
                compiler.ask(operation, shapes, dtype)
    dtype = DTYPES[options.dtype]
    for columns, name in targets_of(options.tune):
        operation = OPERATIONS[name]
        compiler.ask(operation, candidates(operation, columns, dtype.itemsize), dtype)
    for columns in options.columns:
        for operation in map(OPERATIONS.get, options.operations):
            shape = best_shape(operation.deals, columns, dtype.itemsize, operation.inputs)
            compiler.ask(operation, [shape], dtype)


def table(report: Report) -> str:
    """A line an operation and length: our rate, its share of a copy, and the rivals'."""
    lines = []
    for label, entry in report.entries["races"].items():
        rates = "  ".join(
            f"{name} {entry[name]['GB/s']:5.0f}"
            for name in ("ours", "torch", "compile")
            if name in entry
        )
        share = entry["ours"]["share_of_copy"]
        lines.append(
            f"{label:<28} {rates}  copy {share:4.0%}  x {entry.get('speedup_over_best', 0):.2f}"
        )
    for label, rates in report.entries["sweeps"].items():
        if label not in report.entries["races"]:
            name, rate = next(iter(rates.items()))
            lines.append(f"{label:<28} ours {rate:5.0f}  ({name})")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=150, help="seconds")
    parser.add_argument("--operations", nargs="*", default=list(OPERATIONS), choices=OPERATIONS)
    parser.add_argument("--columns", nargs="*", type=int, default=list(COLUMNS))
    parser.add_argument(
        "--tune", nargs="*", default=[], help="try all shapes, e.g. of softmax/4096"
    )
    parser.add_argument("--dtype", default="float32", choices=DTYPES)
    parser.add_argument("--ladder", action="store_true", help="time softmax rung by rung, too")
    parser.add_argument("--no-check", action="store_true", help="skip the small sizes")
    options = parser.parse_args()
    report = Report(options.out, options.budget)
    if has_gpu():
        report.watch()
    compiler = Compiler() if fast.available() else None
    if compiler:
        ask_for_all(compiler, options)
    if not options.no_check:
        check_small(report, compiler)
        report.put("clock", "checked, seconds left", round(report.left(), 1))
        failed = len(report.entries["errors"])
        print("right:", report.entries["checks"], "failed:", failed, flush=True)
    if compiler:
        if options.ladder:
            ladders(report, compiler)
        timed(report, compiler, options)
        print(table(report))
        print("variants:", report.entries["variants"])
        rungs = report.entries["ladder"].items()
        print("ladder:", {name: rates for name, rates in rungs if "Numba" not in name})
        print("clock:", report.entries["clock"])
        compiler.pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
